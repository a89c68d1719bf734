"""What an API server, or a proxy before it, may send to a list and a watch: then all is followed again."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from tests.fakes.system_tls import system_tls
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.odd_json import encoded, mutated, nested

from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.errors import MAX_RETRY_AFTER, retry_after_seconds
from gpushare_core.kube.follow import Changed, Collection, Follower, Listed, follow
from gpushare_core.kube.request import ApiRequest
from gpushare_core.kube.response import HttpResponse, refusal

POD = {"metadata": {"name": "a", "namespace": "default", "uid": "uid-a", "resourceVersion": "7"}}
LIST = {"metadata": {"resourceVersion": "5", "continue": ""}, "items": [POD]}
EVENTS: list[Any] = [
    {"type": "ADDED", "object": POD},
    {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}},
    {"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}},
    {"type": "ERROR", "object": {"code": 500}},
    {"type": "DELETED", "object": POD},
    {"type": "NEWER", "object": POD},
]
GOOD = json.dumps(LIST).encode()
LAST = json.dumps({"type": "ADDED", "object": {**POD, "last": True}}).encode()

pages = encoded(mutated(LIST))
lines = st.lists(st.sampled_from(EVENTS).flatmap(lambda event: encoded(mutated(event))), max_size=4)


class ScriptedClient(KubeClient):
    """Its server answers the first list and the first watch oddly, and well from then on."""

    def __init__(self, page: bytes, events: list[bytes]) -> None:
        super().__init__(Credentials("http://127.0.0.1", system_tls, lambda: None))
        self._pages = [page]
        self._events = [events]

    async def _exchange(self, request: ApiRequest) -> bytes:
        del request
        return self._pages.pop() if self._pages else GOOD

    async def stream(self, request: ApiRequest, *, idle: float) -> AsyncIterator[bytes]:
        del request, idle
        for line in self._events.pop() if self._events else [LAST]:
            yield line


async def _until_the_last(page: bytes, events: list[bytes]) -> None:
    async def no_wait(_: float) -> None:
        await asyncio.sleep(0)

    follower = Follower(backoff=Backoff(sleep=no_wait))
    listed = False
    async for event in follow(ScriptedClient(page, events), Collection("/api/v1/pods"), follower=follower):
        listed = listed or isinstance(event, Listed)
        if isinstance(event, Changed) and isinstance(event.item, dict) and event.item.get("last"):
            break
    assert listed


@fuzzes(follow, KubeClient.read)
@given(pages, lines)
@example(b'{"metadata":{"resourceVersion":"\xff"}}', [])
@example(GOOD, [b'{"type":"ADDED","object":{"metadata":{"name":"\xff"}}}'])
@example(GOOD, [b'{"type":"ADDED","object":{"metadata":{},"x":"\xed\xa0\x80"}}'])
@example(GOOD, [nested(100_000)])
@example(GOOD, [b'{"type":"ERROR","object":{"code":"\xff"}}'])
def test_whatever_was_sent_the_good_state_is_followed_afterwards(page: bytes, events: list[bytes]) -> None:
    asyncio.run(asyncio.wait_for(_until_the_last(page, events), 30))


@fuzzes(refusal, retry_after_seconds)
@given(
    st.integers(400, 599),
    encoded(mutated({"reason": "Conflict", "message": "m"})) | st.binary(max_size=400),
    st.text(max_size=30) | st.from_regex(r" *[+-]?[0-9]{1,400}(\.[0-9]*)?", fullmatch=True),
)
@example(500, b'{"message":"\xff"}', "")
@example(500, nested(100_000), "\N{SUPERSCRIPT TWO}")
@example(429, b"[]", "9" * 5000)
@example(503, b"", "Tue, 24 Nov 2026 12:00:00 GMT")
def test_every_refusal_says_why_and_when_to_come_again(status: int, content: bytes, after: str) -> None:
    error = refusal(HttpResponse(status, content, after))
    assert str(status) in str(error)
    assert 0.0 <= error.retry_after <= MAX_RETRY_AFTER
