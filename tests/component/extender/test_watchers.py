"""The books follow the cluster: what the API server has is what the ledger counts."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection

import pytest
from tests.fakes.api_server import PODS, SHARE_NODES, FakeApi, error_event, fake_api, status, stream
from tests.samples.extender import ANNOTATION, Json, annotation, inventory, pod, share_node

from gpushare_core.books.dialects import GPUSHARE
from gpushare_core.kube.client import METADATA_LIST, KubeClient
from gpushare_extender.bind.delivery import Times
from gpushare_extender.bind.stale_reservations import OVERDUE_SECONDS, review_reservations
from gpushare_extender.cluster.watchers import Watcher, watch_pods, watch_share_nodes
from gpushare_extender.ledger.ledger import Ledger


def holder(name: str = "a", *, phase: str = "Running", card: int = 0, units: int = 4) -> Json:
    shares = {f"c{card}": units}
    item = pod(name, node="n1", annotations={ANNOTATION: annotation(**shares)})  # type: ignore[arg-type]
    item["status"]["phase"] = phase
    return item


class Books:
    """A ledger, and waiting for it."""

    def __init__(self, ledger: Ledger, pods: Watcher, nodes: Watcher) -> None:
        self.ledger = ledger
        self.pods = pods
        self.nodes = nodes

    def used(self) -> list[int]:
        books = self.ledger.node("n1")
        return [card.allocated for card in books.cards()] if books else []

    async def show(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until ``holds``, at most 5 s."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + 5
        while not holds():
            state = f"{self.used()}, {dict(self.ledger.largest_free)}"
            assert loop.time() < deadline, f"after 5 s the books do not show {what}: {state}"
            await asyncio.sleep(0.005)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        fake.put(SHARE_NODES, share_node("n1"))
        yield fake


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[KubeClient]:
    async with KubeClient(api.credentials()) as opened:
        yield opened


@pytest.fixture
async def books(client: KubeClient) -> AsyncIterator[Books]:
    """Following the cluster; complete once a test begins."""
    ledger, pods, nodes = Ledger(), Watcher("pods"), Watcher("gpusharenodes")
    tasks = [
        asyncio.create_task(watch_pods(client, ledger, GPUSHARE, pods)),
        asyncio.create_task(watch_share_nodes(client, ledger, nodes)),
    ]
    shown = Books(ledger, pods, nodes)
    await shown.show("both lists", lambda: pods.listed and nodes.listed)
    yield shown
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_pod_counts_from_its_bind_until_it_is_gone(api: FakeApi, books: Books) -> None:
    api.put(PODS, pod("a"))
    api.put(PODS, holder("a"))
    await books.show("the pod", lambda: books.used() == [4, 0])
    terminating = holder("a")
    terminating["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    api.put(PODS, terminating)
    api.put(PODS, holder("b", card=1, units=1))
    await books.show("the next pod", lambda: books.used() == [4, 1])
    api.delete(PODS, "a", "default")
    await books.show("the pod gone", lambda: books.used() == [0, 1])


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_frees_its_units(api: FakeApi, books: Books, phase: str) -> None:
    api.put(PODS, holder("a"))
    await books.show("the pod", lambda: books.used() == [4, 0])
    api.put(PODS, holder("a", phase=phase))
    await books.show("its units free", lambda: books.used() == [0, 0])


async def test_a_corrected_annotation_moves_the_units(api: FakeApi, books: Books) -> None:
    api.put(PODS, holder("a", card=0))
    await books.show("the pod", lambda: books.used() == [4, 0])
    api.put(PODS, holder("a", card=1))
    await books.show("the correction", lambda: books.used() == [0, 4])


async def test_the_pods_are_read_as_metadata_only(api: FakeApi, books: Books) -> None:
    assert books.pods.listed
    listing = api.requests("GET", PODS)[0]
    assert listing.accept == METADATA_LIST
    assert listing.query["fieldSelector"] == "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


async def test_an_unreadable_annotation_is_told_once(
    api: FakeApi, books: Books, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        api.put(PODS, pod("bad", node="n1", annotations={ANNOTATION: "x"}))
    api.put(PODS, holder("good"))
    await books.show("the readable pod", lambda: books.used() == [4, 0])
    assert sum("default/bad" in each.message for each in caplog.records) == 1


async def test_an_unreadable_annotation_is_told_once_over_lists_too(
    api: FakeApi, books: Books, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    api.fail("GET", PODS, *[stream(error_event(410))] * 3, watch=True)
    api.put(PODS, pod("bad", node="n1", annotations={ANNOTATION: "x"}))
    api.put(PODS, holder("good"))
    await books.show("the readable pod", lambda: books.used() == [4, 0])
    assert sum("default/bad" in each.message for each in caplog.records) == 1


async def test_a_lost_watch_does_not_lose_what_happened_meanwhile(api: FakeApi, books: Books) -> None:
    api.put(PODS, holder("gone"))
    await books.show("the pod", lambda: books.used() == [4, 0])
    api.delete(PODS, "gone", "default")
    api.put(PODS, holder("new", card=1))
    api.forget_history()
    await books.show("what is true now", lambda: books.used() == [0, 4])


async def test_a_node_opens_changes_and_closes(api: FakeApi, books: Books) -> None:
    assert dict(books.ledger.largest_free) == {"n1": 16}
    api.put(SHARE_NODES, share_node("n2", units=32))
    await books.show("the new node", lambda: books.ledger.largest_free.get("n2") == 32)
    sick = share_node("n2")
    sick["status"]["cards"][0]["health"] = sick["status"]["cards"][1]["health"] = "Unhealthy"
    api.put(SHARE_NODES, sick)
    await books.show("the node closed", lambda: "n2" not in books.ledger.largest_free)
    api.delete(SHARE_NODES, "n1")
    await books.show("the node gone", lambda: not books.ledger.largest_free)


async def test_without_the_crd_it_waits_for_it(api: FakeApi, client: KubeClient) -> None:
    api.fail("GET", SHARE_NODES, status(404), status(404))
    watcher = Watcher("gpusharenodes")
    ledger = Ledger()
    task = asyncio.create_task(watch_share_nodes(client, ledger, watcher))
    await Books(ledger, watcher, watcher).show("the list", lambda: watcher.listed)
    task.cancel()
    assert dict(ledger.largest_free) == {"n1": 16}


class TestReview:
    """Reservations confirmed long ago that no watch has shown."""

    @pytest.fixture
    def ledger(self) -> Ledger:
        books = Ledger()
        books.set_inventory(inventory("n1"))
        books.reserve(uid="uid-a", namespace="default", name="a", node="n1", units=4)
        books.confirm("uid-a", now=0.0)
        return books

    async def review_once(
        self, client: KubeClient, ledger: Ledger, *, now: float = 100.0, under_way: Collection[str] = ()
    ) -> None:
        rounds = iter([None])

        async def sleep(seconds: float) -> None:
            assert seconds == OVERDUE_SECONDS
            if next(rounds, "over") == "over":
                raise EOFError

        times = Times(clock=lambda: now, sleep=sleep)
        with pytest.raises(EOFError):
            await review_reservations(client, ledger, times, under_way=lambda: under_way)

    @pytest.mark.parametrize(
        "bearer",
        [
            pytest.param(None, id="deleted"),
            pytest.param(pod("a", uid="uid-b"), id="recreated"),
            pytest.param(holder("a", phase="Failed"), id="finished"),
        ],
    )
    async def test_a_pod_that_is_gone_is_freed(
        self, api: FakeApi, client: KubeClient, ledger: Ledger, bearer: Json | None
    ) -> None:
        if bearer:
            api.put(PODS, bearer)
        await self.review_once(client, ledger)
        assert ledger.holding("uid-a") is None

    async def test_a_pod_that_runs_keeps_its_units(
        self, api: FakeApi, client: KubeClient, ledger: Ledger
    ) -> None:
        api.put(PODS, holder("a"))
        await self.review_once(client, ledger)
        assert ledger.holding("uid-a") is not None

    async def test_without_an_answer_the_units_stay(
        self, api: FakeApi, client: KubeClient, ledger: Ledger
    ) -> None:
        api.fail("GET", "/api/v1/namespaces/default/pods/a", status(503))
        await self.review_once(client, ledger)
        assert ledger.holding("uid-a") is not None

    async def test_what_was_confirmed_just_now_is_left_to_the_watch(
        self, api: FakeApi, client: KubeClient, ledger: Ledger
    ) -> None:
        await self.review_once(client, ledger, now=OVERDUE_SECONDS - 1)
        assert api.seen == []

    async def test_what_a_defect_left_in_flight_is_freed_with_its_pod(
        self, client: KubeClient, ledger: Ledger
    ) -> None:
        ledger.reserve(uid="uid-c", namespace="default", name="c", node="n1", units=4)
        await self.review_once(client, ledger)
        assert ledger.holding("uid-c") is None

    async def test_a_bind_under_way_looks_after_its_units_itself(
        self, client: KubeClient, ledger: Ledger
    ) -> None:
        ledger.reserve(uid="uid-c", namespace="default", name="c", node="n1", units=4)
        await self.review_once(client, ledger, under_way={"uid-c"})
        assert ledger.holding("uid-c") is not None
