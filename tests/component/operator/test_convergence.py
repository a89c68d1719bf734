"""From whatever state it was left in, the operator ends where an undisturbed one ends."""

import asyncio
import copy
import logging
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.operator_cluster import (
    DAEMON_SETS,
    JOBS,
    MEMORY,
    PODS,
    Cluster,
    KilledError,
    Operator,
    converge,
)

from gpushare_core.api.names import CONTROL_PLANE_LABEL, POLICY_LABEL
from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.response import Page
from gpushare_operator.backends.kube_scheduler.job_history import EDIT_VISIBLE_AFTER, MAX_BACKOFF
from gpushare_operator.cluster.kinds import SCHEDULER_PODS
from gpushare_operator.cluster.labels import COMPARE_LABEL
from gpushare_operator.reconcile import CLUSTER, SCHEDULERS

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
        for condition in body.get("status", {}).get("conditions", ()):
            condition.pop("lastTransitionTime", None)
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
@given(before=lives, after=lives, chance=chances, broken=st.integers(0, 3))
def test_never_two_schedulers_are_edited_at_a_time(
    before: list[int], after: list[int], chance: random.Random, broken: int
) -> None:
    cluster = workers_and_control_planes()
    cluster.broken = {"install": broken, "restore": broken}
    running: list[int] = []
    cluster.api.on_change = lambda *_: running.append(
        sum("status" not in job for job in cluster.api.of(JOBS).values())
    )
    apply(cluster, "default")
    for writes in before:
        asyncio.run(one_life(cluster, writes, chance))
    asyncio.run(converge(cluster))
    cluster.delete_policy("default")
    for writes in after:
        asyncio.run(one_life(cluster, writes, chance))
    asyncio.run(converge(cluster))
    assert max(running) == 1


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
    is_shared = bool({"gpu-1", "gpu-2"} & present)
    assert cluster.edited == ({"cp-1", "cp-2"} & present if is_shared else set())


@pytest.mark.parametrize("label_comes_back", [True, False])
async def test_an_edited_host_is_restored_though_its_node_was_made_anew(*, label_comes_back: bool) -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    await converge(cluster)
    cluster.api.remove(paths.NODES, "cp-1")
    await converge(cluster)
    cluster.add_node("cp-1", control_plane=label_comes_back)
    await converge(cluster)
    assert cluster.edited == ({"cp-1", "cp-2"} if label_comes_back else {"cp-2"})
    cluster.delete_policy("default")
    await converge(cluster, Operator(cluster))
    assert not any(cluster.traces().values()), cluster.traces()


async def test_an_edited_host_is_restored_though_it_is_no_control_plane_any_more() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    await converge(cluster)
    cluster.api.change(paths.NODES, "cp-1", {"metadata": {"labels": {CONTROL_PLANE_LABEL: None}}})
    await converge(cluster)
    assert "extender-cp-1" in cluster.api.of(PODS), "its scheduler still asks the extender"
    cluster.delete_policy("default")
    await converge(cluster, Operator(cluster))
    assert not any(cluster.traces().values()), cluster.traces()


async def test_a_policy_that_comes_back_while_hosts_are_restored_gets_fresh_extenders() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    operator = await converge(cluster)
    cluster.delete_policy("default")
    while len(cluster.edited) == 2:  # until the first of them is restored
        await operator.resync()
        for key in operator.work_keys():
            await operator.work(key)
        for step in cluster.steps():
            step()
    (restored,) = {"cp-1", "cp-2"} - cluster.edited
    before = cluster.api.of(PODS)[f"extender-{restored}"]["metadata"]["uid"]
    apply(cluster, "later")
    await converge(cluster, operator)
    assert cluster.edited == {"cp-1", "cp-2"}
    assert cluster.api.of(PODS)[f"extender-{restored}"]["metadata"]["uid"] != before
    for name in ("default", "later"):
        if name in cluster.api.of(paths.POLICIES):
            cluster.delete_policy(name)
    await converge(cluster, operator)
    assert not any(cluster.traces().values()), cluster.traces()


async def test_an_edit_that_an_upgrade_undid_is_made_again_and_told() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    operator = await converge(cluster)
    written = cluster.api.writes.count(f"create {JOBS}")
    await operator.work(SCHEDULERS)
    show_schedulers(cluster, upgraded={"cp-2"})
    await operator.work(SCHEDULERS)
    await operator.work("default")
    (configured,) = conditions(cluster, "SchedulerConfigured")
    assert (configured["status"], configured["reason"]) == ("False", "ConnectionLost")
    cluster.edited.discard("cp-2")
    await converge(cluster, operator)
    assert cluster.edited == {"cp-1", "cp-2"}
    assert cluster.api.writes.count(f"create {JOBS}") == written + 1
    show_schedulers(cluster, upgraded=set())
    await operator.work(SCHEDULERS)
    await converge(cluster, operator)
    assert cluster.api.writes.count(f"create {JOBS}") == written + 1
    (configured,) = conditions(cluster, "SchedulerConfigured")
    assert configured["status"] == "True"
    told = [event["reason"] for event in cluster.api.of(paths.events("default")).values()]
    assert told.count("ConnectionLost") == 1


async def test_an_edit_that_is_undone_soon_after_its_repair_is_told_at_once_and_made_again_later() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    operator = await converge(cluster)
    await lose_edit(cluster, operator)
    repaired = cluster.now = operator.now
    await converge(cluster, operator)
    written = cluster.api.writes.count(f"create {JOBS}")

    operator.now = repaired + EDIT_VISIBLE_AFTER
    await lose_edit(cluster, operator)
    assert cluster.api.writes.count(f"create {JOBS}") == written
    await converge(cluster, operator)
    assert cluster.edited == {"cp-1", "cp-2"}
    assert cluster.api.writes.count(f"create {JOBS}") == written + 1
    assert operator.now >= repaired + MAX_BACKOFF


async def lose_edit(cluster: Cluster, operator: Operator) -> None:
    """An upgrade undoes it on one control plane; the policy says so."""
    cluster.edited.discard("cp-2")
    show_schedulers(cluster, upgraded={"cp-2"})
    await operator.work(SCHEDULERS)
    await operator.work("default")
    (configured,) = conditions(cluster, "SchedulerConfigured")
    assert (configured["status"], configured["reason"]) == ("False", "ConnectionLost")


def show_schedulers(cluster: Cluster, *, upgraded: set[str]) -> None:
    """What the kubelets show of their kube-schedulers."""
    for name in ("cp-1", "cp-2"):
        config = [] if name in upgraded else ["--config=/etc/kubernetes/gpushare/scheduler-config-0.yaml"]
        labels = {"component": "kube-scheduler"}
        static = {"annotations": {"kubernetes.io/config.mirror": "0"}, "labels": labels}
        body = {
            "metadata": {"name": f"kube-scheduler-{name}", **static},
            "spec": {"nodeName": name, "containers": [{"command": ["kube-scheduler", *config]}]},
        }
        cluster.api.put(SCHEDULER_PODS, body)
        other = {**body, "metadata": {"name": f"a-second-scheduler-on-{name}", "labels": labels}}
        cluster.api.put(SCHEDULER_PODS, other | {"spec": {"nodeName": name, "containers": [{}]}})


async def test_without_the_right_to_see_kube_schedulers_all_else_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    operator = await converge(cluster)

    async def refused(*_: Any, **__: Any) -> AsyncIterator[Page]:
        raise ApiError(403, "Forbidden", "pods")
        yield Page([], "")

    monkeypatch.setattr(cluster.api, "pages", refused)
    await operator.work(SCHEDULERS)
    await operator.work("default")
    (configured,) = conditions(cluster, "SchedulerConfigured")
    assert configured["status"] == "True"


@pytest.mark.parametrize("what", ["apply", "create"])
async def test_a_refusal_of_what_all_policies_share_reaches_the_administrator(what: str) -> None:
    """Of the extender and of hostctl's Jobs, which belong to no policy."""
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    of = {"apply": f"apply {DAEMON_SETS}/gpushare-extender", "create": f"create {JOBS}"}[what]
    cluster.api.refuse = lambda write: write.startswith(of)
    cluster.api.refusal = (
        "ValidatingAdmissionPolicy 'gpushare-operator-workloads' denied: here are also: hostPID"
    )
    operator = Operator(cluster, now=(await converge(cluster)).now)
    await operator.resync()
    asked: list[str] = []
    operator.reconciler.enqueue = asked.append
    await operator.work(CLUSTER)
    assert "default" in asked, "its condition is where a person reads it"
    await operator.work("default")
    (degraded,) = conditions(cluster, "Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "WorkloadsRefused")
    assert "here are also: hostPID" in degraded["message"]
    cluster.api.refuse = lambda _: False
    await converge(cluster, operator)
    (degraded,) = conditions(cluster, "Degraded")
    assert degraded["status"] == "False"


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


@pytest.mark.parametrize(
    "edit", [{"scheduler": {"backend": "NotYetKnown"}}, {"nodes": [rule("gpu-1", mode="NotYetKnown")]}]
)
async def test_an_edit_to_something_unserved_tears_nothing_down(edit: dict[str, Any]) -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    await converge(cluster)
    before = cluster.traces()
    cluster.api.change(paths.POLICIES, "default", {"spec": edit})
    await converge(cluster, Operator(cluster))
    assert cluster.traces() == before
    cluster.delete_policy("default")
    await converge(cluster, Operator(cluster))
    assert not any(cluster.traces().values()), cluster.traces()


async def test_an_edit_that_fails_on_the_second_of_three_is_tried_once_and_the_third_left_alone() -> None:
    cluster = workers_and_control_planes()
    cluster.add_node("cp-3", control_plane=True)
    cluster.unfit = {"cp-2"}
    apply(cluster, "default")
    operator = await converge(cluster)
    assert cluster.edited == {"cp-1"}
    assert cluster.api.writes.count(f"create {JOBS}") == 2
    (configured,) = conditions(cluster, "SchedulerConfigured")
    assert configured["reason"] == "NeedsAttention"
    assert "gpushare.io/retry" in configured["message"]
    await converge(cluster, Operator(cluster, now=operator.now))
    assert cluster.api.writes.count(f"create {JOBS}") == 2, "not by a restart of the operator either"
    cluster.unfit = set()
    cluster.api.change(paths.POLICIES, "default", {"metadata": {"annotations": {"gpushare.io/retry": "1"}}})
    await converge(cluster, operator)
    assert cluster.edited == {"cp-1", "cp-2", "cp-3"}
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert not any(cluster.traces().values()), cluster.traces()


async def test_another_port_is_taken_over_one_scheduler_after_the_other() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    await converge(cluster)
    cluster.api.change(paths.POLICIES, "default", {"spec": {"scheduler": {"extenderPort": 12000}}})
    await converge(cluster)
    urls = {
        str(job["spec"]["template"]["spec"]["containers"][0]["args"][6])
        for job in cluster.api.of(JOBS).values()
    }
    assert urls == {"https://127.0.0.1:12000/gpushare"}
    (configured,) = conditions(cluster, "SchedulerConfigured")
    assert configured["status"] == "True"


async def test_the_kubelet_is_not_fought_while_it_remembers_a_resource() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    await converge(cluster)
    cluster.delete_policy("default")
    operator = await converge(cluster)
    assert not any(cluster.traces().values()), cluster.traces()
    cluster.api.writes.clear()
    for _ in range(30):
        cluster.api.change(paths.NODES, "gpu-1", status_of("32", "0"))
        await converge(cluster, operator)
    assert cluster.api.writes == []
    cluster.api.change(paths.NODES, "gpu-1", status_of("0", "0"))
    await converge(cluster, operator)
    assert cluster.api.writes == [f"merge {paths.NODES}/gpu-1/status"]
    assert not any(cluster.traces().values()), cluster.traces()


def status_of(capacity: str, allocatable: str) -> dict[str, Any]:
    """What a kubelet writes into its node's status."""
    return {"status": {"capacity": {MEMORY: capacity}, "allocatable": {MEMORY: allocatable}}}


async def writes_in_a_minute(cluster: Cluster, write: str) -> int:
    """How often the operator makes ``write`` while its queue calls it ten times a second."""
    operator = Operator(cluster)
    await operator.resync()
    cluster.api.writes.clear()
    for _ in range(600):
        await operator.resync()
        for key in operator.work_keys():
            await operator.work(key)
        operator.now += timedelta(seconds=0.1)
    return cluster.api.writes.count(write)


@pytest.mark.parametrize("fuse", range(16))
async def test_wherever_it_dies_no_daemon_set_keeps_the_label_of_its_first_write(fuse: int) -> None:
    """With it the garbage collector could not let the DaemonSet go while the operator is not there."""
    cluster, written = workers_and_control_planes(), set[bool]()

    def note(collection: str, body: dict[str, Any]) -> None:
        if collection == DAEMON_SETS:
            written.add(COMPARE_LABEL in body["metadata"]["labels"])

    cluster.api.rewrite = note
    apply(cluster, "default")
    cluster.api.fuse = fuse
    with suppress(KilledError):  # it may have less to write
        await converge(cluster)
    cluster.api.fuse = None
    await converge(cluster)
    assert written == {True, False}
    left = [
        name
        for name, daemon_set in cluster.api.of(DAEMON_SETS).items()
        if COMPARE_LABEL in daemon_set["metadata"]["labels"]
    ]
    assert left == []


async def test_the_label_is_taken_off_whoever_put_it_there() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    await converge(cluster)
    name = "gpushare-plugin-default"
    cluster.api.change(DAEMON_SETS, name, {"metadata": {"labels": {COMPARE_LABEL: ""}}})
    await converge(cluster)
    assert COMPARE_LABEL not in cluster.api.of(DAEMON_SETS)[name]["metadata"]["labels"]


async def test_a_webhook_that_rewrites_a_daemon_set_is_not_fought_and_named() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    await converge(cluster)

    def rewrite(collection: str, body: dict[str, Any]) -> None:
        if collection == DAEMON_SETS:
            body["spec"]["template"]["spec"]["priorityClassName"] = "theirs"

    cluster.api.rewrite = rewrite
    cluster.api.change(DAEMON_SETS, "gpushare-plugin-default", {"metadata": {"labels": {"touched": "yes"}}})
    written = await writes_in_a_minute(cluster, f"apply {DAEMON_SETS}/gpushare-plugin-default")
    assert written < 12, written
    (degraded,) = conditions(cluster, "Degraded")
    assert degraded["reason"] == "ChangesContested"
    assert "an admission webhook changes spec.template.spec.priorityClassName" in degraded["message"]
    cluster.api.rewrite = lambda *_: None
    await converge(cluster)
    (degraded,) = conditions(cluster, "Degraded")
    assert degraded["status"] == "False"


@pytest.mark.parametrize("collection", [paths.NODES, paths.SHARE_NODES])
async def test_somebody_who_makes_two_parts_of_the_operator_take_turns_is_not_fought_for_ever(
    collection: str,
) -> None:
    """What names another policy is taken away for that policy, which is gone, and made anew for this one."""
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    await converge(cluster)

    def rewrite(kind: str, body: dict[str, Any]) -> None:
        place = body["metadata"]["labels"] if kind == paths.NODES else body.get("spec", {})
        key = POLICY_LABEL if kind == paths.NODES else "policy"
        if kind == collection and body["metadata"]["name"] == "gpu-1" and place.get(key) == "default":
            place[key] = "old"

    cluster.api.rewrite = rewrite
    cluster.api.change(collection, "gpu-1", {"metadata": {"annotations": {"touched": "yes"}}})
    writes = {
        paths.NODES: f"merge {paths.NODES}/gpu-1",
        paths.SHARE_NODES: f"create {paths.SHARE_NODES}",
    }
    written = await writes_in_a_minute(cluster, writes[collection])
    assert 0 < written < 36, written
    (degraded,) = conditions(cluster, "Degraded")
    assert degraded["reason"] == "ChangesContested"


async def test_a_field_that_a_newer_crd_fills_in_is_left_alone() -> None:
    cluster = workers_and_control_planes()

    def fill_in(collection: str, body: dict[str, Any]) -> None:
        if collection == paths.SHARE_NODES:
            body["spec"].setdefault("newField", "default")

    cluster.api.rewrite = fill_in
    apply(cluster, "default")
    operator = await converge(cluster)
    cluster.api.writes.clear()
    await converge(cluster, operator)
    assert cluster.api.writes == []


async def test_a_write_that_is_refused_is_not_repeated_as_fast_as_events_come() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    cluster.api.refuse = lambda write: write == f"merge {paths.NODES}/gpu-1"
    tried: list[str] = []
    refuse = cluster.api.refuse
    cluster.api.refuse = lambda write: tried.append(write) or refuse(write)  # type: ignore[func-returns-value]
    await writes_in_a_minute(cluster, "")
    assert tried.count(f"merge {paths.NODES}/gpu-1") < 12
    (degraded,) = conditions(cluster, "Degraded")
    assert degraded["reason"] == "ApiErrors"


async def test_a_job_that_stays_in_deletion_is_not_created_over_and_over() -> None:
    cluster = workers_and_control_planes()
    apply(cluster, "default")
    await converge(cluster)
    for body in cluster.api.of(JOBS).values():
        body["metadata"]["finalizers"] = ["foregroundDeletion"]
    for name in list(cluster.api.of(JOBS)):
        cluster.api.remove(JOBS, name)
    assert await writes_in_a_minute(cluster, f"create {JOBS}") == 0


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


@pytest.mark.parametrize("dialect", ["gpushare.io", "volcano.sh"])
async def test_a_policy_that_comes_and_goes_is_held_up_by_nobody(dialect: str) -> None:
    """What the operator itself took back is no lasting fight with somebody."""
    cluster = workers_and_control_planes()
    operator = Operator(cluster)
    for turn in range(12):
        cluster.add_policy("default", rule("gpu-1", "gpu-2"), dialect=dialect)
        there = await seconds_until_idle(operator)
        assert conditions(cluster, "Ready")[0]["status"] == "True"
        cluster.delete_policy("default")
        gone = await seconds_until_idle(operator)
        assert cluster.api.of(paths.POLICIES) == {}
        assert not any(cluster.traces().values()), cluster.traces()
        assert max(there, gone) <= 20, (turn, there, gone)


async def seconds_until_idle(operator: Operator) -> int:
    """Let operator and cluster go on, second by second, until nothing is written for five of them."""
    cluster, idle = operator.cluster, 0
    for second in range(400):
        before = len(cluster.api.writes)
        await operator.resync()
        for key in operator.work_keys():
            await operator.work(key)
        steps = cluster.steps()
        for step in steps:
            step()
        operator.now += timedelta(seconds=1)
        cluster.now = operator.now
        idle = 0 if steps or len(cluster.api.writes) > before else idle + 1
        if idle == 5 and not waits_for_something(cluster):
            return second - idle
    raise AssertionError(f"still busy: {cluster.api.writes[-5:]}")


def waits_for_something(cluster: Cluster) -> bool:
    """Whether a policy is neither Ready nor gone."""
    policies = cluster.api.of(paths.POLICIES).values()
    deleting = any(policy["metadata"].get("deletionTimestamp") for policy in policies)
    return deleting or any(
        condition["status"] != "True" for condition in conditions(cluster, "Ready") if policies
    )


def conditions(cluster: Cluster, kind: str) -> list[dict[str, Any]]:
    status = cluster.api.of(paths.POLICIES).get("default", {}).get("status", {})
    return [condition for condition in status.get("conditions", ()) if condition["type"] == kind]


async def test_the_operators_log_goes_by_the_most_verbose_policy(caplog: pytest.LogCaptureFixture) -> None:
    root = logging.getLogger()
    caplog.set_level("INFO")  # puts the level back afterwards
    cluster = Cluster()
    cluster.add_node("gpu-1")
    operator = await converge(cluster)
    for name, level in (("quiet", "error"), ("curious", "debug")):
        cluster.add_policy(name, {"names": [name], "devices": CARDS}, operator={"logLevel": level})
        await converge(cluster, operator)
        assert logging.getLevelName(root.level) == level.upper()
    cluster.delete_policy("curious")
    await converge(cluster, operator)
    assert root.level == logging.ERROR
    cluster.delete_policy("quiet")
    await converge(cluster, operator)
    assert root.level == logging.INFO, "as it was started"
