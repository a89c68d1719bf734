"""List and watch survive everything an API server does, and miss nothing."""

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import count

import pytest
from aiohttp import web
from tests.fakes.api_server import (
    PODS,
    Answer,
    FakeApi,
    bookmark,
    cut,
    error_event,
    fake_api,
    json_answer,
    status,
    stream,
)

from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.follow import (
    DOUBT_SECONDS,
    IDLE_SECONDS,
    WATCH_SECONDS,
    Changed,
    Collection,
    Follower,
    Listed,
    follow,
)
from gpushare_core.kube.request import METADATA, METADATA_LIST
from gpushare_core.text.json_object import Json

NO_BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": ""}}}
COLLECTION = Collection(PODS, field_selector="spec.nodeName!=", metadata_only=True)


class Delays:
    """Records delays instead of sleeping."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        await asyncio.sleep(0)

    def backoff(self) -> Backoff:
        return Backoff(sleep=self, jitter=lambda: 1.0)


class Seen:
    """What a follower yields, one event at a time."""

    def __init__(self, events: AsyncIterator[Listed[Json] | Changed[Json]]) -> None:
        self._events = events

    async def next(self) -> Listed[Json] | Changed[Json]:
        return await asyncio.wait_for(anext(self._events), 30)

    async def listed(self) -> list[str]:
        event = await self.next()
        assert isinstance(event, Listed)
        return [item["metadata"]["name"] for item in event.items]

    async def changed(self) -> tuple[str, str]:
        event = await self.next()
        assert isinstance(event, Changed)
        return event.kind, event.item["metadata"]["name"]


def pod(name: str) -> Json:
    return {"metadata": {"namespace": "default", "name": name, "uid": name}, "spec": {"nodeName": "n"}}


def versioned(name: str, version: int) -> Json:
    bare = pod(name)
    return {**bare, "metadata": {**bare["metadata"], "resourceVersion": str(version)}}


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        fake.put(PODS, pod("first"))
        yield fake


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[KubeClient]:
    async with KubeClient(api.credentials()) as opened:
        yield opened


@pytest.fixture
def delays() -> Delays:
    return Delays()


@pytest.fixture
def seen(client: KubeClient, delays: Delays) -> Seen:
    return Seen(follow(client, COLLECTION, follower=Follower(backoff=delays.backoff())))


async def test_first_the_whole_then_each_change(api: FakeApi, seen: Seen) -> None:
    assert await seen.listed() == ["first"]
    api.put(PODS, pod("second"))
    assert await seen.changed() == ("ADDED", "second")
    api.put(PODS, pod("second"))
    assert await seen.changed() == ("MODIFIED", "second")
    api.delete(PODS, "second", "default")
    assert await seen.changed() == ("DELETED", "second")


async def test_lists_come_in_pages_and_as_one(api: FakeApi, seen: Seen) -> None:
    api.page = 2
    for name in ("second", "third", "fourth", "fifth"):
        api.put(PODS, pod(name))
    assert await seen.listed() == ["first", "second", "third", "fourth", "fifth"]
    assert len(api.seen) == 3


async def test_it_asks_for_metadata_only_with_bookmarks_and_an_end(api: FakeApi, seen: Seen) -> None:
    await seen.listed()
    api.put(PODS, pod("second"))
    await seen.changed()
    listing, watching = api.seen
    assert (listing.accept, watching.accept) == (METADATA_LIST, METADATA)
    assert listing.query == {"fieldSelector": "spec.nodeName!=", "limit": "500"}
    assert watching.query["allowWatchBookmarks"] == "1" or watching.query["allowWatchBookmarks"] == "true"
    assert int(watching.query["timeoutSeconds"]) > 60


async def test_watches_that_began_together_do_not_end_together(
    api: FakeApi, client: KubeClient, delays: Delays
) -> None:
    """After a restart of the API server the watches of a whole cluster begin at once."""
    chances = iter([0.0, 0.5, 1.0])
    follower = Follower(backoff=delays.backoff(), jitter=lambda: next(chances, 0.0))
    api.fail("GET", PODS, stream(), stream(), watch=True)
    seen = Seen(follow(client, COLLECTION, follower=follower))
    await seen.listed()
    waiting = asyncio.create_task(seen.next())
    await api.wait_for("three watches", lambda: sum(request.is_watch for request in api.seen) >= 3)
    api.put(PODS, pod("second"))
    await waiting
    lasting = [int(request.query["timeoutSeconds"]) for request in api.seen if request.is_watch]
    assert lasting[:3] == [WATCH_SECONDS, WATCH_SECONDS * 3 // 2, WATCH_SECONDS * 2]


async def test_bookmarks_move_the_point_to_resume_from(api: FakeApi, seen: Seen) -> None:
    api.fail("GET", PODS, stream(bookmark(4711)), stream(), watch=True)
    await seen.listed()
    api.version = 4711
    waiting = asyncio.create_task(seen.next())
    await api.wait_for("the watch to be resumed", lambda: sum(request.is_watch for request in api.seen) >= 3)
    api.put(PODS, pod("second"))
    await waiting
    assert [request.query["resourceVersion"] for request in api.seen if request.is_watch][1:3] == [
        "4711",
        "4711",
    ]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(stream(), id="stream closed at once"),
        pytest.param(cut, id="connection cut"),
        pytest.param(status(429, "slow down"), id="429"),
        pytest.param(status(503, "overloaded"), id="503"),
    ],
)
async def test_a_broken_watch_resumes_without_a_new_list(api: FakeApi, seen: Seen, fault: Answer) -> None:
    api.fail("GET", PODS, fault, fault, watch=True)
    assert await seen.listed() == ["first"]
    api.put(PODS, pod("second"))
    assert await seen.changed() == ("ADDED", "second")
    assert sum(not request.is_watch for request in api.seen) == 1


async def test_a_watch_that_is_silently_dead_is_noticed_after_a_missing_bookmark(
    api: FakeApi, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 60 < IDLE_SECONDS <= 90

    async def dead(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await asyncio.Event().wait()
        return response

    monkeypatch.setattr("gpushare_core.kube.follow.IDLE_SECONDS", 0.1)
    api.fail("GET", PODS, dead, watch=True)
    assert await seen.listed() == ["first"]
    waiting = asyncio.create_task(seen.next())
    await api.wait_for("the watch resumed", lambda: sum(request.is_watch for request in api.seen) >= 2)
    api.put(PODS, pod("second"))
    await waiting
    assert sum(not request.is_watch for request in api.seen) == 1


def doubting(delays: Delays) -> tuple[Follower, Callable[[], None]]:
    """Returns a follower, and what lets ``DOUBT_SECONDS`` pass on its clock."""
    now = [0.0]

    def wait() -> None:
        now[0] += DOUBT_SECONDS

    return Follower(backoff=delays.backoff(), clock=lambda: now[0]), wait


@pytest.mark.parametrize(
    "silence",
    [
        pytest.param(stream(), id="watches that end without a word"),
        pytest.param(cut, id="connections that a proxy cuts"),
        pytest.param(status(504, "Too large resource version"), id="504"),
    ],
)
async def test_after_etcd_was_restored_from_a_backup_it_is_listed_again(
    api: FakeApi, client: KubeClient, delays: Delays, silence: Answer
) -> None:
    """A server sends nothing for a version in the future: the watch was resumed there for ever."""
    follower, wait = doubting(delays)
    seen = Seen(follow(client, COLLECTION, follower=follower))
    assert await seen.listed() == ["first"]
    waiting = asyncio.create_task(seen.listed())
    await api.wait_for("a watch", lambda: api.seen[-1].is_watch)
    api.restore([pod("of the backup")], version=7)
    api.fail("GET", PODS, silence, silence, watch=True)
    wait()
    api.end_watches()
    assert await waiting == ["of the backup"]
    api.put(PODS, pod("new"))
    assert await seen.changed() == ("ADDED", "new")


async def test_whether_the_server_has_come_to_the_point_is_asked_once_per_silence(
    api: FakeApi, client: KubeClient, delays: Delays
) -> None:
    assert 60 < DOUBT_SECONDS < IDLE_SECONDS, "no bookmark came, and one silent watch is enough"
    follower, wait = doubting(delays)
    seen = Seen(follow(client, COLLECTION, follower=follower))
    await seen.listed()
    waiting = asyncio.create_task(seen.changed())
    await api.wait_for("a watch", lambda: api.seen[-1].is_watch)
    api.fail("GET", PODS, status(503), watch=False)
    api.fail("GET", PODS, stream(), stream(), watch=True)
    wait()
    api.end_watches()
    await api.wait_for("four watches", lambda: sum(request.is_watch for request in api.seen) >= 4)
    api.put(PODS, pod("second"))
    assert await waiting == ("ADDED", "second")
    assert [request.query["limit"] for request in api.seen if not request.is_watch] == ["500", "1", "1"], (
        "the 503 was no answer, and what is there was not listed again"
    )


@pytest.mark.parametrize("past", [bookmark(50), {"type": "ADDED", "object": versioned("late", 50)}])
async def test_what_comes_from_before_the_point_lists_again(api: FakeApi, seen: Seen, past: Json) -> None:
    """Within one history versions only grow. The watch went on from the smaller version, without the changes
    before it."""
    api.fail("GET", PODS, stream(past), watch=True)
    assert await seen.listed() == ["first"]
    assert await seen.listed() == ["first"]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(stream(error_event(410)), id="410 within the stream"),
        pytest.param(status(410, "too old"), id="410 as status"),
        pytest.param(stream(error_event(500)), id="500 within the stream"),
        pytest.param(status(403, "forbidden"), id="403"),
        pytest.param(stream("<html>"), id="garbage"),
        pytest.param(stream(b"x" * 2**20), id="a line without end"),
        pytest.param(stream({"type": "ADDED", "object": pod("x")}), id="an event without a version"),
        pytest.param(
            stream(NO_BOOKMARK),
            id="a bookmark of an empty version",
        ),
        pytest.param(stream('{"type":"ADDED"}'), id="an event without an object"),
        pytest.param(stream('{"type":"ADDED","object":{"metadata":{"x":' + "[" * 5000), id="nested for ever"),
    ],
)
async def test_a_lost_watch_lists_again(
    api: FakeApi, seen: Seen, fault: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpushare_core.kube.transport.proxy.MAX_EVENT", 2**19)
    api.fail("GET", PODS, fault, watch=True)
    assert await seen.listed() == ["first"]
    api.put(PODS, pod("second"))
    assert await seen.listed() == ["first", "second"]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(status(500), id="500"),
        pytest.param(status(403), id="403"),
        pytest.param(status(404), id="404: CRD not there yet"),
        pytest.param(status(410), id="410: a page too late"),
    ],
)
async def test_a_failed_list_is_tried_again(api: FakeApi, seen: Seen, delays: Delays, fault: Answer) -> None:
    api.fail("GET", PODS, fault, fault, fault)
    assert await seen.listed() == ["first"]
    assert delays.taken == [0.2, 0.4, 0.8]


@pytest.mark.parametrize("code", [429, 503])
async def test_the_server_says_when_to_list_again(
    api: FakeApi, seen: Seen, delays: Delays, code: int
) -> None:
    api.fail("GET", PODS, status(code, **{"Retry-After": "5"}), status(code))
    assert await seen.listed() == ["first"]
    assert delays.taken == [7.5, 0.4]


async def test_the_server_says_when_to_resume_a_watch(api: FakeApi, seen: Seen, delays: Delays) -> None:
    api.fail("GET", PODS, status(429, **{"Retry-After": "5"}), status(503), watch=True)
    await seen.listed()
    api.put(PODS, pod("second"))
    await seen.changed()
    assert delays.taken == [7.5, 0.4]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"metadata": {}, "items": []}, id="an empty list"),
        pytest.param({"metadata": {"resourceVersion": ""}, "items": None}, id="of an empty version"),
        pytest.param({"kind": "Status", "metadata": {}, "code": 500}, id="a Status, as if all were well"),
    ],
)
async def test_what_has_no_version_is_no_list(api: FakeApi, seen: Seen, answer: Json) -> None:
    """It said that all is gone."""
    api.fail("GET", PODS, json_answer(answer))
    assert await seen.listed() == ["first"]


async def test_a_list_cut_off_is_tried_again(api: FakeApi, seen: Seen) -> None:
    api.fail("GET", PODS, *[cut] * 5)
    assert await seen.listed() == ["first"]


async def test_under_constant_410_the_lists_become_rare(api: FakeApi, seen: Seen, delays: Delays) -> None:
    api.fail("GET", PODS, *[status(410)] * 8, watch=True)
    for _ in range(8):
        await seen.listed()
    assert delays.taken[-1] == 10.0


async def test_delays_are_short_again_after_the_server_has_spoken(
    api: FakeApi, seen: Seen, delays: Delays
) -> None:
    overloaded = [status(503)] * 6
    api.fail("GET", PODS, *overloaded, stream(bookmark(101)), stream(), watch=True)
    await seen.listed()
    api.put(PODS, pod("second"))
    await seen.changed()
    assert delays.taken[5:8] == [6.4, 0.2, 0.4]


async def test_a_list_tells_when_it_began(api: FakeApi, client: KubeClient, delays: Delays) -> None:
    ticks = count(1.0)
    follower = Follower(backoff=delays.backoff(), clock=lambda: next(ticks))
    api.fail("GET", PODS, status(500))
    event = await anext(follow(client, COLLECTION, follower=follower))
    assert isinstance(event, Listed)
    assert event.begun == 2.0, "the read that succeeded, not the one that failed"


async def test_every_attempt_and_every_event_is_a_sign_of_life(api: FakeApi, client: KubeClient) -> None:
    signs: list[int] = []
    follower = Follower(pulse=lambda: signs.append(1))
    events = follow(client, COLLECTION, follower=follower)
    await anext(events)
    before = len(signs)
    api.put(PODS, pod("second"))
    await asyncio.wait_for(anext(events), 30)
    assert (before, len(signs)) == (1, 3)


async def test_a_reader_keeps_only_what_is_needed(client: KubeClient) -> None:
    events = follow(client, COLLECTION, lambda raw: len(bytes(raw)))
    event = await anext(events)
    assert isinstance(event, Listed)
    assert event.items[0] > 50
