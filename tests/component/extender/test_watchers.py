"""The ledger follows the cluster: what the API server has is what it counts."""

import asyncio
import gc
import json
import logging
import time
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web
from tests.fakes.api_server import PODS, SHARE_NODES, FakeApi, error_event, fake_api, status, stream
from tests.fakes.patience import PATIENCE
from tests.samples.extender import ANNOTATION, RESOURCE, annotation, holder_json, pod_json, share_node_json

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.request import METADATA_LIST
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.unreleased_pods import UNRELEASED_SECONDS
from gpushare_core.scheduling.objects.holder import PodUpdate, read_pod
from gpushare_core.text.json_object import Json
from gpushare_extender.cluster.watchers import (
    WatchHealth,
    free_unreleased_pods,
    read_known_pod,
    read_known_share_node,
    watch_pods,
    watch_share_nodes,
)


class FollowedLedger:
    """A ledger that follows the cluster, and waiting for it."""

    def __init__(self, ledger: Ledger, pods: WatchHealth, nodes: WatchHealth) -> None:
        self.ledger = ledger
        self.pods = pods
        self.nodes = nodes

    def used(self) -> list[int]:
        sums = self.ledger.node("n1")
        return [card.allocated for card in sums.cards()] if sums else []

    async def wait_for(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until ``holds``, at most PATIENCE seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE
        while not holds():
            state = f"{self.used()}, {dict(self.ledger.greatest[RESOURCE])}"
            assert loop.time() < deadline, f"after {PATIENCE:g} s the ledger does not show {what}: {state}"
            await asyncio.sleep(0.005)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        fake.put(SHARE_NODES, share_node_json("n1"))
        yield fake


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[KubeClient]:
    async with KubeClient(api.credentials()) as opened:
        yield opened


def later() -> float:
    """The time at which every plugin has told of the pods that are gone by now."""
    return time.monotonic() + UNRELEASED_SECONDS


async def pause(_: float) -> None:
    await asyncio.sleep(0.005)


@pytest.fixture
async def followed(client: KubeClient) -> AsyncIterator[FollowedLedger]:
    """Following the cluster; complete once a test begins."""
    ledger, pods, nodes = Ledger(), WatchHealth("pods"), WatchHealth("gpusharenodes")
    tasks = [
        asyncio.create_task(watch_pods(client, ledger, pods)),
        asyncio.create_task(watch_share_nodes(client, ledger, nodes)),
        asyncio.create_task(free_unreleased_pods(ledger, later, pause)),
    ]
    followed = FollowedLedger(ledger, pods, nodes)
    await followed.wait_for("both lists", lambda: pods.listed and nodes.listed)
    yield followed
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_pod_counts_from_its_bind_until_it_is_gone(api: FakeApi, followed: FollowedLedger) -> None:
    api.put(PODS, pod_json("a"))
    api.put(PODS, holder_json("a"))
    await followed.wait_for("the pod", lambda: followed.used() == [4, 0])
    terminating = holder_json("a")
    terminating["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    api.put(PODS, terminating)
    api.put(PODS, holder_json("b", card=1, units=1))
    await followed.wait_for("the next pod", lambda: followed.used() == [4, 1])
    api.delete(PODS, "a", "default")
    await followed.wait_for("the pod gone", lambda: followed.used() == [0, 1])


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_finished_pod_frees_its_units(api: FakeApi, followed: FollowedLedger, phase: str) -> None:
    api.put(PODS, holder_json("a"))
    await followed.wait_for("the pod", lambda: followed.used() == [4, 0])
    api.put(PODS, holder_json("a", phase=phase))
    await followed.wait_for("its units free", lambda: followed.used() == [0, 0])


async def test_a_corrected_annotation_moves_the_units(api: FakeApi, followed: FollowedLedger) -> None:
    api.put(PODS, holder_json("a", card=0))
    await followed.wait_for("the pod", lambda: followed.used() == [4, 0])
    api.put(PODS, holder_json("a", card=1))
    await followed.wait_for("the correction", lambda: followed.used() == [0, 4])


async def unanswered(_: web.Request) -> None:
    """A fault: the server never answers."""
    await asyncio.Event().wait()


def elsewhere(name: str) -> Json:
    """The pod of that name, whose annotation says that it is on n2."""
    return pod_json(name, node="n1", annotations={ANNOTATION: annotation(name, node="n2", c0=6, c1=6)})


async def test_a_pod_that_names_another_node_counts_on_both_and_is_warned_of_once(
    api: FakeApi, followed: FollowedLedger, caplog: pytest.LogCaptureFixture
) -> None:
    api.put(SHARE_NODES, share_node_json("n2"))
    api.put(PODS, holder_json("a"))
    await followed.wait_for("the pod", lambda: followed.used() == [4, 0])
    for _ in range(2):
        api.put(PODS, elsewhere("a"))
    api.forget_history()
    api.put(PODS, holder_json("b", card=1, units=1))
    await followed.wait_for("the next pod", lambda: followed.used() == [4, 1])
    assert dict(followed.ledger.greatest[RESOURCE]) == {"n1": 15, "n2": 10}
    assert sum("names node n2, and named n1 before" in record.message for record in caplog.records) == 1


async def test_an_api_server_that_is_slow_to_show_a_pod_holds_up_no_others(
    api: FakeApi, followed: FollowedLedger
) -> None:
    path = "/api/v1/namespaces/default/pods/a"
    api.put(PODS, holder_json("a"))
    await followed.wait_for("the pod", lambda: followed.used() == [4, 0])
    api.fail("GET", path, unanswered)
    api.put(PODS, elsewhere("a"))
    api.put(PODS, holder_json("b", card=1, units=1))
    await followed.wait_for("the next pod", lambda: followed.used() == [4, 1])
    assert api.requests("GET", path) == []


async def test_a_pod_that_is_gone_is_free_on_both(api: FakeApi, followed: FollowedLedger) -> None:
    api.put(SHARE_NODES, share_node_json("n2"))
    api.put(PODS, holder_json("a"))
    await followed.wait_for("the pod", lambda: followed.used() == [4, 0])
    api.put(PODS, elsewhere("a"))
    api.delete(PODS, "a", "default")
    api.put(PODS, holder_json("b", card=1, units=1))
    await followed.wait_for("the next pod", lambda: followed.used() == [0, 1])
    assert followed.ledger.greatest[RESOURCE]["n2"] == 16


async def test_a_wrong_node_that_was_believed_is_put_right(api: FakeApi, followed: FollowedLedger) -> None:
    """Such as an annotation that was wrong already when the extender started."""
    api.put(SHARE_NODES, share_node_json("n2"))
    api.put(PODS, elsewhere("a"))
    await followed.wait_for("the pod", lambda: followed.ledger.greatest[RESOURCE].get("n2") == 10)
    api.put(PODS, holder_json("a"))
    await followed.wait_for("the other node", lambda: followed.used() == [4, 0])
    assert followed.ledger.greatest[RESOURCE]["n2"] == 10
    reported = share_node_json("n1")
    reported["status"]["cards"][0]["pods"] = [{"uid": "uid-a", "units": 4}]
    api.put(SHARE_NODES, reported)
    await followed.wait_for("only the true node", lambda: followed.ledger.greatest[RESOURCE]["n2"] == 16)
    assert followed.used() == [4, 0]


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({}, id="gone"),
        pytest.param({ANNOTATION: "x"}, id="unreadable"),
        pytest.param({ANNOTATION: annotation("other", c0=1)}, id="another pod's"),
    ],
)
async def test_an_annotation_that_was_spoilt_frees_nothing_and_is_warned_of_once(
    api: FakeApi,
    followed: FollowedLedger,
    caplog: pytest.LogCaptureFixture,
    annotations: dict[str, str],
) -> None:
    api.put(PODS, holder_json("a"))
    await followed.wait_for("the pod", lambda: followed.used() == [4, 0])
    for _ in range(2):
        api.put(PODS, pod_json("a", node="n1", annotations=annotations))
    api.put(PODS, holder_json("b", card=1, units=1))
    await followed.wait_for("the next pod", lambda: followed.used() == [4, 1])
    assert sum("default/a" in record.message for record in caplog.records) == 1


async def test_a_copy_that_brings_the_annotation_of_its_original_counts_as_nothing(
    api: FakeApi, followed: FollowedLedger
) -> None:
    api.put(PODS, holder_json("a"))
    copy = holder_json("a")
    copy["metadata"] |= {"name": "copy", "uid": "uid-copy"}
    api.put(PODS, copy)
    api.put(PODS, holder_json("b", card=1, units=1))
    await followed.wait_for("the next pod", lambda: followed.used() == [4, 1])


async def test_the_pods_are_read_as_metadata_only(api: FakeApi, followed: FollowedLedger) -> None:
    assert followed.pods.listed
    listing = api.requests("GET", PODS)[0]
    assert listing.accept == METADATA_LIST
    assert listing.query["fieldSelector"] == "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


async def test_an_unreadable_annotation_is_warned_of_once(
    api: FakeApi, followed: FollowedLedger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        api.put(PODS, pod_json("bad", node="n1", annotations={ANNOTATION: "x"}))
    api.put(PODS, holder_json("good"))
    await followed.wait_for("the readable pod", lambda: followed.used() == [4, 0])
    assert sum("default/bad" in record.message for record in caplog.records) == 1


async def test_an_unreadable_annotation_is_warned_of_once_over_lists_too(
    api: FakeApi, followed: FollowedLedger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    api.fail("GET", PODS, *[stream(error_event(410))] * 3, watch=True)
    api.put(PODS, pod_json("bad", node="n1", annotations={ANNOTATION: "x"}))
    api.put(PODS, holder_json("good"))
    await followed.wait_for("the readable pod", lambda: followed.used() == [4, 0])
    assert sum("default/bad" in record.message for record in caplog.records) == 1


async def test_a_lost_watch_loses_nothing_that_happened_meanwhile(
    api: FakeApi, followed: FollowedLedger
) -> None:
    api.put(PODS, holder_json("gone"))
    await followed.wait_for("the pod", lambda: followed.used() == [4, 0])
    api.delete(PODS, "gone", "default")
    api.put(PODS, holder_json("new", card=1))
    api.forget_history()
    await followed.wait_for("what is true now", lambda: followed.used() == [0, 4])


async def test_a_list_is_not_kept(api: FakeApi, client: KubeClient) -> None:
    api.put(PODS, holder_json("a"))
    ledger, health = Ledger(), WatchHealth("pods")
    following = asyncio.create_task(watch_pods(client, ledger, health))
    await asyncio.wait_for(health.until_applied(0), 30.0)
    assert ledger.holder("uid-a")
    lists = (found for found in gc.get_objects() if isinstance(found, list) and found)
    assert [found for found in lists if isinstance(found[0], PodUpdate)] == []
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)


async def test_of_what_is_listed_again_the_ledger_has_no_second_copy(
    api: FakeApi, followed: FollowedLedger
) -> None:
    api.put(PODS, holder_json("a"))
    await followed.wait_for("the pod", lambda: followed.used() == [4, 0])
    pod, node = (json.dumps(item).encode() for item in (holder_json("a"), share_node_json("n1")))
    ledger = followed.ledger
    assert read_known_pod(ledger, pod).holder is ledger.holder("uid-a")
    assert read_known_share_node(ledger, node) is ledger.share_node("n1")
    moved = json.dumps(holder_json("a", card=1)).encode()
    assert read_known_pod(ledger, moved) == read_pod(moved)
    bare = json.dumps(pod_json("a", node="n1")).encode()
    assert read_known_pod(ledger, bare) == PodUpdate("uid-a")


async def test_a_node_opens_changes_and_closes(api: FakeApi, followed: FollowedLedger) -> None:
    assert dict(followed.ledger.greatest[RESOURCE]) == {"n1": 16}
    api.put(SHARE_NODES, share_node_json("n2", units=32))
    await followed.wait_for("the new node", lambda: followed.ledger.greatest[RESOURCE].get("n2") == 32)
    sick = share_node_json("n2")
    sick["status"]["cards"][0]["health"] = sick["status"]["cards"][1]["health"] = "Unhealthy"
    api.put(SHARE_NODES, sick)
    await followed.wait_for("the node closed", lambda: "n2" not in followed.ledger.greatest[RESOURCE])
    api.delete(SHARE_NODES, "n1")
    await followed.wait_for("the node gone", lambda: not followed.ledger.greatest[RESOURCE])


async def test_why_a_node_is_closed_is_logged_once(
    api: FakeApi, followed: FollowedLedger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sick = share_node_json("n2")
    sick["status"]["cards"][0]["health"] = sick["status"]["cards"][1]["health"] = "Unhealthy"
    for number in range(20):
        api.put(SHARE_NODES, {**sick, "metadata": {"name": "n2", "labels": {"write": str(number)}}})
    api.put(SHARE_NODES, share_node_json("n3"))
    await followed.wait_for("what came last", lambda: "n3" in followed.ledger.greatest[RESOURCE])
    assert [record.message for record in caplog.records if "takes no pods" in record.message] == [
        "the node takes no pods: node(s) without a healthy GPU card"
    ]


async def test_without_the_crd_it_waits_for_it(api: FakeApi, client: KubeClient) -> None:
    api.fail("GET", SHARE_NODES, status(404), status(404))
    health = WatchHealth("gpusharenodes")
    ledger = Ledger()
    task = asyncio.create_task(watch_share_nodes(client, ledger, health))
    await FollowedLedger(ledger, health, health).wait_for("the list", lambda: health.listed)
    task.cancel()
    assert dict(ledger.greatest[RESOURCE]) == {"n1": 16}
