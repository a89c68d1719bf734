"""The kubelet gets each list once, on the newest stream."""

import asyncio

import pytest

from gpushare_plugin.kubelet.device_stream import DeviceStream


async def test_the_end_of_an_older_stream_means_nothing() -> None:
    stream = DeviceStream()
    stream.offer(b"list")
    older, newer = stream.serve(), stream.serve()
    assert await anext(older) == b"list"
    assert await anext(newer) == b"list"
    await older.aclose()  # type: ignore[attr-defined]
    assert stream.is_open
    await newer.aclose()  # type: ignore[attr-defined]
    assert not stream.is_open


async def test_an_older_stream_gets_no_more_lists_and_a_list_is_sent_once() -> None:
    stream = DeviceStream()
    stream.offer(b"one")
    older = stream.serve()
    assert await anext(older) == b"one"
    newer = stream.serve()
    assert await anext(newer) == b"one"
    stream.offer(b"one")
    stream.offer(b"two")
    assert await anext(newer) == b"two"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await anext(older)
