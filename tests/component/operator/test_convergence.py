"""From whatever state it was left in, the operator ends where an undisturbed one ends."""

import asyncio
import copy
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.operator_cluster import DAEMON_SETS, Cluster, KilledError, Operator, converge

from gpushare_core.kube import paths
from gpushare_core.kube.client import Page
from gpushare_core.kube.errors import ApiError

CARDS = {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]}
WORKERS = ("gpu-1", "gpu-2", "gpu-3")


def rule(*names: str, **extra: Any) -> dict[str, Any]:
    return {"names": list(names), "mode": "Memory", "devices": CARDS, **extra}


def workers_and_control_planes() -> Cluster:
    cluster = Cluster()
    for name in WORKERS:
        cluster.add_node(name)
    for name in ("cp-1", "cp-2"):
        cluster.add_node(name, control_plane=True)
    return cluster


def without_times(cluster: Cluster) -> Any:
    """The cluster without what depends on when things happened."""
    objects = copy.deepcopy(cluster.api.objects)
    objects.pop(paths.events("default"), None)
    for body in (body for kind in objects.values() for body in kind.values()):
        for key in ("resourceVersion", "uid", "generation", "creationTimestamp", "ownerReferences"):
            body["metadata"].pop(key, None)
        for each in body.get("status", {}).get("conditions", ()):
            each.pop("lastTransitionTime", None)
        body.get("status", {}).pop("observedGeneration", None)
    for name, kind in objects.items():
        if name.endswith("/jobs"):
            # Which try it was depends on how often the process died.
            objects[name] = {str(len(kind)): {}}
    return objects, cluster.edited


def undisturbed(*policies: str) -> Any:
    cluster = workers_and_control_planes()
    for name in policies:
        apply(cluster, name)
    asyncio.run(converge(cluster))
    return without_times(cluster)


def apply(cluster: Cluster, name: str) -> None:
    chosen = {"default": rule("gpu-1", "gpu-2"), "later": rule("gpu-2", "gpu-3")}
    cluster.add_policy(name, chosen[name])


async def one_life(cluster: Cluster, writes: int, chance: random.Random) -> None:
    """An operator that dies before its write number ``writes``, in a cluster that moves as it likes."""
    cluster.api.fuse = writes
    operator = Operator(cluster)
    try:
        for _ in range(chance.randrange(1, 12)):
            await operator.resync()
            await operator.work(chance.choice(operator.work_keys()))
            for step in chance.sample(steps := cluster.steps(), chance.randrange(len(steps) + 1)):
                step()
    except KilledError:
        pass
    finally:
        cluster.api.fuse = None


lives = st.lists(st.integers(min_value=0, max_value=12), max_size=8)
chances = st.randoms(use_true_random=False)


@settings(max_examples=60, deadline=None)
@given(lives=lives, chance=chances)
def test_however_often_it_is_killed_a_policy_ends_in_force(lives: list[int], chance: random.Random) -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    for writes in lives:
        asyncio.run(one_life(cluster, writes, chance))
    asyncio.run(converge(cluster))
    assert without_times(cluster) == undisturbed("default")


@settings(max_examples=80, deadline=None)
@given(before=lives, after=lives, chance=chances)
def test_however_often_it_is_killed_nothing_is_left_of_a_deleted_policy(
    before: list[int], after: list[int], chance: random.Random
) -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    for writes in before:
        asyncio.run(one_life(cluster, writes, chance))
    cluster.delete_policy("default")
    for writes in after:
        asyncio.run(one_life(cluster, writes, chance))
    asyncio.run(converge(cluster))
    assert cluster.api.of(paths.POLICIES) == {}
    assert not any(cluster.traces().values()), cluster.traces()


@settings(max_examples=60, deadline=None)
@given(lives=lives, chance=chances, broken=st.integers(0, 3))
def test_policies_come_and_go_in_any_order(lives: list[int], chance: random.Random, broken: int) -> None:
    cluster = workers_and_control_planes()
    cluster.broken = {"install": broken, "restore": broken}
    for writes in lives:
        name = chance.choice(["default", "later"])
        if name in cluster.api.of(paths.POLICIES):
            cluster.delete_policy(name)
        else:
            apply(cluster, name)
        asyncio.run(one_life(cluster, writes, chance))
    asyncio.run(converge(cluster))
    left = list(cluster.api.of(paths.POLICIES))
    if not left:
        assert not any(cluster.traces().values()), cluster.traces()
    owners = {share["spec"]["policy"] for share in cluster.api.of(paths.SHARE_NODES).values()}
    assert owners == set(left)
    assert cluster.edited == ({"cp-1", "cp-2"} if left else set())


@settings(max_examples=40, deadline=None)
@given(chance=chances)
def test_nodes_come_and_go_while_it_works(chance: random.Random) -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    for _ in range(6):
        name = chance.choice(["gpu-1", "gpu-2", "cp-2"])
        if name in cluster.api.of(paths.NODES):
            cluster.api.remove(paths.NODES, name)
            cluster.edited.discard(name)
        else:
            cluster.add_node(name, control_plane=name.startswith("cp"))
        asyncio.run(one_life(cluster, 6, chance))
    asyncio.run(converge(cluster))
    present = set(cluster.api.of(paths.NODES))
    assert set(cluster.api.of(paths.SHARE_NODES)) == {"gpu-1", "gpu-2"} & present
    assert cluster.edited == {"cp-1", "cp-2"} & present


async def test_at_rest_nothing_is_written() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    operator = await converge(cluster)
    cluster.api.writes.clear()
    await converge(cluster, operator)
    await converge(cluster, Operator(cluster))
    assert cluster.api.writes == []


async def test_a_restarted_operator_repeats_no_event() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    await converge(cluster)
    posted = set(cluster.api.of(paths.events("default")))
    assert len(posted) >= 2
    await converge(cluster, Operator(cluster))
    assert set(cluster.api.of(paths.events("default"))) == posted


async def test_one_node_that_cannot_be_written_does_not_hold_up_the_others() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    cluster.api.refuse = lambda write: write == f"merge {paths.NODES}/gpu-1"
    await converge(cluster)
    assert set(cluster.api.of(paths.SHARE_NODES)) == {"gpu-1", "gpu-2"}
    assert "plugin-default-gpu-2" in cluster.api.of("/api/v1/namespaces/gpushare-system/pods")
    (degraded,) = conditions(cluster, "Degraded")
    assert degraded["reason"] == "ApiErrors"
    assert "label node gpu-1" in degraded["message"]
    cluster.api.refuse = lambda _: False
    await converge(cluster)
    (degraded,) = conditions(cluster, "Degraded")
    assert degraded["status"] == "False"


async def test_an_unreadable_cluster_is_not_taken_for_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    await converge(cluster)
    operator, pages = Operator(cluster), cluster.api.pages

    async def no_nodes(path: str, *, limit: int, label_selector: str = "") -> AsyncIterator[Page]:
        if path == paths.NODES:
            raise ApiError(500, "InternalError", "not now")
        async for page in pages(path, limit=limit, label_selector=label_selector):
            yield page

    monkeypatch.setattr(cluster.api, "pages", no_nodes)
    with pytest.raises(ApiError):
        await operator.resync()
    assert operator.work_keys() == ["*"]
    cluster.api.writes.clear()
    await operator.work("*")
    assert cluster.api.writes == []


async def test_an_edit_while_the_policy_is_being_applied_is_just_applied() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    operator = Operator(cluster)
    await operator.resync()
    await operator.work("default")
    await operator.work("default")
    cluster.api.change(paths.POLICIES, "default", {"spec": {"memoryUnit": "256Mi"}})
    await converge(cluster, operator)
    units = {share["spec"]["memoryUnit"] for share in cluster.api.of(paths.SHARE_NODES).values()}
    assert units == {"256Mi"}
    policy = cluster.api.of(paths.POLICIES)["default"]
    assert policy["status"]["observedGeneration"] == policy["metadata"]["generation"]


async def test_a_daemon_set_that_somebody_edited_is_put_right() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    await converge(cluster)
    name = "gpushare-plugin-default"
    good = copy.deepcopy(cluster.api.of(DAEMON_SETS)[name]["spec"])
    edit = {"spec": {"template": {"spec": {"priorityClassName": "none"}}}}
    cluster.api.change(DAEMON_SETS, name, edit)
    await converge(cluster)
    assert cluster.api.of(DAEMON_SETS)[name]["spec"] == good


def conditions(cluster: Cluster, kind: str) -> list[dict[str, Any]]:
    status = cluster.api.of(paths.POLICIES)["default"]["status"]
    return [each for each in status["conditions"] if each["type"] == kind]
