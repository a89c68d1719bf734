"""The kubelet gets each list once, on the newest stream."""

import asyncio
import tracemalloc

import pytest

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.units import parse_node_unit
from gpushare_plugin.decide.offer.device_list import device_lists
from gpushare_plugin.decide.units.layout import lay_out
from gpushare_plugin.decide.units.locks import NO_LOCKS
from gpushare_plugin.devices.card import PhysicalCard
from gpushare_plugin.kubelet.device_stream import DeviceStream


async def test_the_end_of_an_older_stream_means_nothing() -> None:
    stream = DeviceStream()
    stream.offer(b"list")
    older, newer = stream.serve(), stream.serve()
    assert await anext(older) == b"list"
    assert await anext(newer) == b"list"
    await older.aclose()
    assert stream.is_open
    await newer.aclose()
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


async def test_what_was_sent_is_not_kept() -> None:
    """The list of 256,000 units has 4 MiB, a sixteenth of all that the process may have."""
    message = b"".join(b"%08d" % number for number in range(2**19))
    stream = DeviceStream()
    tracemalloc.start()
    try:
        stream.offer(message)
        served = stream.serve()
        assert await anext(served) == message
        waiting = asyncio.ensure_future(anext(served))
        await asyncio.sleep(0)
        kept, _ = tracemalloc.get_traced_memory()
        assert kept < len(message) / 3
        waiting.cancel()
    finally:
        tracemalloc.stop()


async def test_the_largest_list_is_kept_in_a_hundredth_of_its_size() -> None:
    card = PhysicalCard(uuid="GPU-0", index=0, memory=256_000 * 10**6)
    layout = lay_out([card], parse_node_unit("1M"), reserved=0)
    (message,) = device_lists(layout, GPUSHARE, NO_LOCKS).values()
    stream = DeviceStream()
    tracemalloc.start()
    try:
        stream.offer(message)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(message) > 4_000_000
    assert kept < len(message) / 100
    assert await anext(stream.serve()) == message
