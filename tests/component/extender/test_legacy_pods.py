"""Pods that a replaced system bound: they run, and have no annotation of ours. Their units count."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

import pytest
from tests.fakes.api_server import PODS, SHARE_NODES, Answer, FakeApi, cut, fake_api, status
from tests.fakes.following_extender import extender_of, following
from tests.samples.dialects import asking, dialect_node, left_by

from gpushare_core.kube.client import KubeClient
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.legacy_pods import LegacyPod
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.text.json_object import Json
from gpushare_extender.cluster.legacy_pods import LegacyPodReader

REPLACED = ("aliyun.com", "volcano.sh", "enflame.com")
"""Those of which it is published what they leave on pods."""
ALIYUN = left_by("aliyun.com")
OLD = "/api/v1/namespaces/default/pods/old"


def old(
    annotations: dict[str, str],
    amounts: Mapping[str, int] | None = None,
    *,
    node: str = "n1",
    phase: str = "",
) -> Json:
    """The pod that the replaced system bound; asks for 4 of Aliyun's unless told otherwise."""
    return asking(amounts or {"aliyun.com": 4}, "old", node=node, annotations=annotations, phase=phase)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        yield fake


@pytest.mark.parametrize("dialect", REPLACED)
async def test_they_count_before_the_first_answer(api: FakeApi, dialect: str) -> None:
    pod = asking({dialect: 4}, "old", node="n1", annotations=left_by(dialect, card=1))
    async with extender_of(api, dialect_node("n1", dialect), pod) as extender:
        assert extender.used() == [0, 4]
        assert await extender.filter(asking({dialect: 16}), "n1") == ["n1"]
        assert await extender.bind(asking({dialect: 16})) == ""
        assert extender.used() == [16, 4]
        assert "largest free 12" in await extender.refusal(asking({dialect: 13}, "b"), "n1")


@pytest.mark.parametrize("dialect", REPLACED)
async def test_their_node_may_come_later_than_they(api: FakeApi, dialect: str) -> None:
    pod = asking({dialect: 4}, "old", node="n1", annotations=left_by(dialect, card=1))
    async with extender_of(api, pod) as extender:
        assert extender.used() == []
        bare = dialect_node("n1", dialect)
        bare["status"] = {}
        api.put(SHARE_NODES, bare)
        await extender.until("the node", lambda: extender.ledger.share_node("n1") is not None)
        api.put(SHARE_NODES, dialect_node("n1", dialect))
        await extender.until("the pod counts", lambda: extender.used() == [0, 4])


async def test_one_that_the_old_scheduler_binds_meanwhile_counts(api: FakeApi) -> None:
    async with extender_of(api, dialect_node()) as extender:
        api.put(PODS, old(left_by("aliyun.com", card=1)))
        await extender.until("the pod counts", lambda: extender.used() == [0, 4])


async def test_what_they_had_is_free_when_they_are_gone(api: FakeApi) -> None:
    pod = old(ALIYUN)
    reporting = dialect_node(reported={0: {"old": 4}})
    async with extender_of(api, reporting, pod) as extender:
        assert extender.used() == [4, 0]
        api.put(SHARE_NODES, dialect_node())
        api.delete(PODS, "old", "default")
        await extender.until("the units free", lambda: extender.used() == [0, 0])


@pytest.mark.parametrize(
    ("reported", "used"),
    [
        pytest.param({1: {"old": 4}}, [0, 4], id="the same"),
        pytest.param({1: {"old": 6}}, [0, 6], id="more"),
        pytest.param({1: {"old": 2}}, [0, 4], id="less"),
        pytest.param({0: {"old": 4}}, [4, 4], id="another card: both until the annotation is right"),
    ],
)
async def test_what_the_plugin_reports_of_them_counts_once(
    api: FakeApi, reported: dict[int, dict[str, int]], used: list[int]
) -> None:
    pod = asking({"aliyun.com": 4}, "old", node="n1", annotations=left_by("aliyun.com", card=1))
    async with extender_of(api, dialect_node(reported=reported), pod) as extender:
        assert extender.used() == used


async def test_our_annotation_takes_the_place_of_theirs(api: FakeApi) -> None:
    """As soon as the plugin has written what the kubelet's books say."""
    pod = old(left_by("aliyun.com", card=1))
    async with extender_of(api, dialect_node(), pod) as extender:
        assert extender.used() == [0, 4]
        ours = '{"node":"n1","uid":"uid-old","at":"","unit":"1Gi","containers":{"main":{"n1-0":4}}}'
        pod["metadata"]["annotations"]["gpushare.io/allocation"] = ours
        api.put(PODS, pod)
        await extender.until("our annotation counts", lambda: extender.used() == [4, 0])


@pytest.mark.parametrize(
    "beside",
    [
        pytest.param({"scheduler.framework.gpushare.allocation": text}, id=f"containers {text}")
        for text in ("", "{}", '{"main":{"1":4}}')
    ]
    + [
        pytest.param({"gpushare.io/allocation": text}, id=f"ours {text[:12]}")
        for text in ("", "{}", '{"node":"n1","uid":"uid-other","containers":{"main":{"n1-1":4}}}')
    ],
)
async def test_what_its_author_wrote_beside_hides_no_pod_of_the_replaced_system(
    api: FakeApi, beside: dict[str, str]
) -> None:
    async with extender_of(api, dialect_node(), old({**left_by("aliyun.com"), **beside})) as extender:
        assert extender.used() == [4, 0]


async def test_its_creation_is_told(api: FakeApi) -> None:
    node = dialect_node("n1", "enflame.com")
    pod = asking({"enflame.com": 4}, "old", node="n1", annotations=left_by("enflame.com"))
    async with extender_of(api, node, pod) as extender:
        inspected = json.loads(await extender.text("/gcushare-scheduler/inspect/n1"))
    (shown,) = inspected["nodes"][0]["devices"][0]["pods"]
    assert shown["createTime"] == "2026-11-21T09:59:00Z"


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(old(ALIYUN, phase="Succeeded"), id="finished"),
        pytest.param(old(ALIYUN, node="n9"), id="of another node"),
        pytest.param(old(ALIYUN, node=""), id="not bound"),
        pytest.param(old(left_by("enflame.com")), id="of another system"),
        pytest.param(old(ALIYUN, {"enflame.com": 4}), id="asks for another's"),
        pytest.param(old(ALIYUN, {"cpu": 4}), id="forged: asks for nothing"),
        pytest.param(old(ALIYUN, {"gpushare.io/card": 1}), id="forged: asks for what the system lacks"),
        pytest.param(old(left_by("aliyun.com", card=7)), id="forged: no such card"),
        pytest.param(old({**ALIYUN, "ALIYUN_COM_GPU_MEM_IDX": "-1"}), id="malformed"),
    ],
)
async def test_others_do_not_count(api: FakeApi, pod: Json) -> None:
    async with extender_of(api, dialect_node(), pod) as extender:
        assert extender.used() == [0, 0]
        assert await extender.bind(asking({"aliyun.com": 16})) == ""


@pytest.mark.parametrize(
    ("claimed", "asked", "used"),
    [
        pytest.param(900, 4, [4, 0], id="more than it asks for"),
        pytest.param(2, 4, [4, 0], id="less: the kubelet gave it what it asks for"),
    ],
)
async def test_a_pod_counts_for_what_it_asks_for_whatever_is_claimed(
    api: FakeApi, claimed: int, asked: int, used: list[int]
) -> None:
    pod = asking({"aliyun.com": asked}, "old", node="n1", annotations=left_by("aliyun.com", units=claimed))
    async with extender_of(api, dialect_node(), pod) as extender:
        assert extender.used() == used


async def test_a_malformed_one_is_warned_of(api: FakeApi, caplog: pytest.LogCaptureFixture) -> None:
    broken = {**left_by("aliyun.com"), "ALIYUN_COM_GPU_MEM_IDX": "first"}
    async with extender_of(api, dialect_node(), old(broken)):
        told = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert told == ["wrong annotation: pod default/old: ALIYUN_COM_GPU_MEM_IDX is 'first', not a number"]


async def test_nothing_is_answered_while_a_pod_cannot_be_read(api: FakeApi) -> None:
    """Else its units would look free."""
    api.fail("GET", OLD, *[status(500)] * 3)
    pod = old(ALIYUN)
    api.put(PODS, pod)
    api.put(SHARE_NODES, dialect_node())
    async with following(api) as extender:
        await extender.until("a first try", lambda: bool(api.requests("GET", OLD)))
        answer = await extender.caller.post("/gpushare/filter", {"Pod": asking({}), "NodeNames": ["n1"]})
        assert answer["Error"]
        await extender.until("the pod counts", lambda: extender.used() == [4, 0])
        await extender.until("answers", lambda: not extender.health.not_listed())


@pytest.mark.parametrize(
    ("failure", "is_alive"),
    [
        pytest.param(cut, True, id="the API server is away: for the watch as well"),
        pytest.param(
            status(500), False, id="it does not tell of this pod: starting over is all that is left"
        ),
    ],
)
async def test_the_watch_counts_as_alive_while_a_pod_cannot_be_read_if(
    api: FakeApi, failure: Answer, *, is_alive: bool
) -> None:
    async def no_sleep(_: float) -> None:
        await asyncio.sleep(0)

    pulses: list[None] = []
    api.put(PODS, old(ALIYUN))
    api.fail("GET", OLD, *[failure] * 3)
    update = PodUpdate("uid-old", legacy=LegacyPod(pod=PodReference("default", "old", "uid-old"), claims={}))
    async with KubeClient(api.credentials()) as client:
        reader = LegacyPodReader(client, lambda: pulses.append(None), no_sleep)
        found = (await reader.complete(update)).legacy
    assert found
    assert (found.node, found.request.total, bool(pulses)) == ("n1", 4, is_alive)


async def test_each_is_read_once_however_often_it_changes(api: FakeApi) -> None:
    pod = old(ALIYUN)
    async with extender_of(api, dialect_node(), pod) as extender:
        for number in range(3):
            pod["metadata"]["labels"] = {"number": str(number)}
            api.put(PODS, pod)
        api.put(PODS, asking({"aliyun.com": 1}, "next", node="n1", annotations=left_by("aliyun.com", card=1)))
        await extender.until("the next pod", lambda: extender.used() == [4, 1])
    assert len(api.requests("GET", OLD)) == 1


async def test_pods_of_no_system_are_not_read(api: FakeApi) -> None:
    pod = asking({"cpu": 1}, "web", node="n1", annotations={"app": "x"})
    async with extender_of(api, dialect_node(), pod):
        assert not api.requests("GET", "/api/v1/namespaces/default/pods/web")


async def test_where_a_node_serves_another_class_now_they_take_the_whole_card(api: FakeApi) -> None:
    halves = dialect_node("n1", "aliyun.com", 2, 2, mode="Slices", unit="1/2 card")
    pod = asking({"aliyun.com": 1}, "old", node="n1", annotations=left_by("aliyun.com", card=1, units=1))
    async with extender_of(api, halves, pod) as extender:
        assert extender.used() == [0, 2]
