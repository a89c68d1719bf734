"""How often a policy's status is written: sums and wording once a second, conditions at once."""

import asyncio
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.component.operator.test_app import CARDS, SECONDS, is_ready, running, until
from tests.fakes.operator_cluster import DAEMON_SETS, Cluster, Operator, converge
from tests.fakes.operator_server import Server

from gpushare_core.api.names import MODE_LABEL
from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import ClearCapacity, LabelNode
from gpushare_operator.cluster.kinds import POLICIES
from gpushare_operator.reconcile import CLUSTER, SCHEDULERS, PolicyReconciler, UnfinishedError

STATUS = f"merge {paths.POLICIES}/default/status"
EVENT = f"create {paths.events('default')}"
"""Of the node that is lost."""


async def in_force(*names: str) -> tuple[Cluster, Operator]:
    """A policy on these nodes, at rest."""
    cluster = Cluster()
    for name in names:
        cluster.add_node(name)
    cluster.add_node("cp", control_plane=True)
    cluster.add_policy("default", {"names": list(names), "devices": CARDS})
    operator = await converge(cluster)
    cluster.api.writes.clear()
    return cluster, operator


def statuses(cluster: Cluster) -> list[str]:
    """Returns the writes but for the Events of nodes that are lost, one for each."""
    return [write for write in cluster.api.writes if write != EVENT]


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def allocate(cluster: Cluster, units: int) -> None:
    """The plugin says that pods have so many units."""
    cluster.api.change(paths.SHARE_NODES, "gpu-1", {"status": {"units": {"allocated": units}}})


def fail(cluster: Cluster, node: str = "gpu-1") -> None:
    """The kubelet of the node is away."""
    status = {"conditions": [{"type": "Ready", "status": "False"}]}
    cluster.api.change(paths.NODES, node, {"status": status})


def nodes_ready(cluster: Cluster) -> str:
    """What the condition NodesReady says."""
    conditions = cluster.api.of(paths.POLICIES)["default"]["status"]["conditions"]
    return str(next(condition["message"] for condition in conditions if condition["type"] == "NodesReady"))


def allocated(cluster: Cluster) -> int:
    status: Json = cluster.api.of(paths.POLICIES)["default"]["status"]
    return int(status["units"]["allocated"])


async def test_sums_that_move_on_are_written_a_second_later() -> None:
    """They were written with every change, some ten times a second in a large cluster."""
    cluster, operator = await in_force("gpu-1")
    work = operator.reconciler.work
    begun = operator.now
    for tenth in range(10):
        allocate(cluster, tenth + 1)
        await operator.resync()
        operator.now = begun + timedelta(seconds=tenth / 10)
        again = await work("default")
    assert cluster.api.writes == [STATUS]
    assert allocated(cluster) == 1
    assert again == pytest.approx(0.1), "the rest is written although nothing more happens"
    operator.now = begun + timedelta(seconds=1)
    assert await work("default") is None
    assert cluster.api.writes == [STATUS, STATUS]
    assert allocated(cluster) == 10


async def test_sums_do_not_wait_for_the_backoff_of_what_fails() -> None:
    cluster, operator = await in_force("gpu-1")
    later: list[str] = []
    operator.reconciler.enqueue_later = later.append
    allocate(cluster, 1)
    await operator.resync()
    await operator.work("default")
    allocate(cluster, 2)
    cluster.api.refuse = lambda write: write.endswith("/gpu-1")
    cluster.api.change(paths.NODES, "gpu-1", {"metadata": {"labels": {MODE_LABEL: "wrong"}}})
    for _ in range(2):  # the refusal is a condition, which does not wait; then sums alone are new
        await operator.resync()
        await operator.work("default")
        allocate(cluster, 3)
        operator.now += timedelta(seconds=0.6)
    assert later == ["default"]


async def test_a_condition_does_not_wait() -> None:
    cluster, operator = await in_force("gpu-1")
    allocate(cluster, 1)
    await operator.resync()
    await operator.work("default")
    allocate(cluster, 2)
    fail(cluster)
    await operator.resync()
    await operator.work("default")
    assert cluster.api.writes == [STATUS, STATUS, EVENT]
    assert allocated(cluster) == 2
    assert not is_ready(cluster)


async def test_a_condition_that_says_the_same_in_other_words_waits() -> None:
    """While thousands of plugins start, how many are waited for was written ten times a second."""
    cluster, operator = await in_force("gpu-1", "gpu-2", "gpu-3")
    begun = operator.now
    for number in (1, 2, 3):
        fail(cluster, f"gpu-{number}")
        await operator.resync()
        operator.now = begun + timedelta(seconds=number / 10)
        again = await operator.reconciler.work("default")
    assert statuses(cluster) == [STATUS], "that the policy is Ready no more"
    assert "gpu-3" not in nodes_ready(cluster)
    assert again == pytest.approx(0.8), "the rest is written although nothing more happens"
    operator.now = begun + timedelta(seconds=1.2)
    await operator.reconciler.work("default")
    assert statuses(cluster) == [STATUS, STATUS]
    assert "gpu-3" in nodes_ready(cluster)


async def test_a_clock_that_is_set_back_makes_no_sums_wait() -> None:
    cluster, operator = await in_force("gpu-1")
    for units, hours in ((1, 0), (2, 1)):
        allocate(cluster, units)
        await operator.resync()
        operator.now -= timedelta(hours=hours)
        await operator.work("default")
    assert allocated(cluster) == 2


async def test_a_defect_at_one_write_keeps_no_other_node_from_its_labels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"gpu-{number}" for number in range(40)]
    cluster, operator = await in_force(*names)
    whole = cluster.api.merge

    async def defect(path: str, body: Json) -> Json:
        if path.endswith(("/gpu-3", "/gpu-20")):
            raise RuntimeError("of the test")
        return await whole(path, body)

    monkeypatch.setattr(cluster.api, "merge", defect)
    uids = {name: node["metadata"]["uid"] for name, node in cluster.api.of(paths.NODES).items()}
    actions: list[Any] = [
        *(LabelNode(name, uids[name], {"x": "y"}) for name in names),
        ClearCapacity("gpu-1", uids["gpu-1"], ("gpushare.io/memory",)),
    ]
    performed = await operator.reconciler._applier().perform(actions)
    assert {str(failure).partition(" {")[0] for failure in performed.failures} == {
        "label node gpu-3",
        "label node gpu-20",
    }
    assert "gpushare.io/memory" not in cluster.api.of(paths.NODES)["gpu-1"]["status"]["capacity"]
    labelled = {
        name for name, node in cluster.api.of(paths.NODES).items() if "x" in node["metadata"]["labels"]
    }
    assert labelled == {*names} - {"gpu-3", "gpu-20"}


async def test_without_a_change_nothing_is_written() -> None:
    cluster, operator = await in_force("gpu-1", "gpu-2")
    for key in ("default", CLUSTER):
        await operator.work(key)
    assert cluster.api.writes == []


async def test_sums_reach_the_status_though_nothing_else_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole process: several changes within a second, and silence."""
    cluster = Cluster()
    cluster.add_node("gpu-1")
    cluster.add_node("cp", control_plane=True)
    server = Server(cluster.api)
    async with running(server, tmp_path, monkeypatch, unused_port()):
        cluster.add_policy("default", {"names": ["gpu-1"], "devices": CARDS})
        await until(cluster, lambda: is_ready(cluster), "the policy is ready")
        for units in (1, 2, 3):
            allocate(cluster, units)
        deadline = asyncio.get_running_loop().time() + SECONDS
        while allocated(cluster) != 3:
            assert asyncio.get_running_loop().time() < deadline, "the status does not show 3 units"
            await asyncio.sleep(0.05)


async def test_a_spec_that_changes_while_the_status_is_written_is_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer brought it into the cache; the watch, which came later, told nothing new to anybody."""
    cluster, operator = await in_force("gpu-1", "gpu-2")
    whole = cluster.api.merge

    async def merge(path: str, body: Json) -> Json:
        if path.endswith("/status"):
            spec = {"nodes": [{"names": ["gpu-1"], "devices": CARDS}]}
            cluster.api.change(paths.POLICIES, "default", {"spec": spec})
        return await whole(path, body)

    monkeypatch.setattr(cluster.api, "merge", merge)
    allocate(cluster, 1)
    await operator.resync()
    operator.asked.clear()
    await operator.work("default")
    assert operator.asked == {"default", CLUSTER}


async def test_what_nothing_was_done_for_is_not_called_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A spec that came while a round was under way: its status called it observed, and the policy Ready."""
    cluster, operator = await in_force("gpu-1")
    whole = cluster.api.merge
    rest = {"plugin": {"runtimeClassName": "nvidia"}}

    async def merge(path: str, body: Json) -> Json:
        if path.endswith("/nodes/gpu-1"):
            operator.reconciler.cache.observe(
                POLICIES, cluster.api.change(paths.POLICIES, "default", {"spec": rest})
            )
        return await whole(path, body)

    monkeypatch.setattr(cluster.api, "merge", merge)
    cluster.api.change(paths.NODES, "gpu-1", {"metadata": {"labels": {MODE_LABEL: "Slices"}}})
    allocate(cluster, 1)
    await operator.resync()
    operator.asked.clear()
    await operator.work("default")
    observed = cluster.api.of(paths.POLICIES)["default"]["status"]["observedGeneration"]
    assert (observed, runtime_class(cluster)) == (1, ""), "the plugins are as the former spec says"
    assert "default" in operator.asked
    await operator.work("default")
    observed = cluster.api.of(paths.POLICIES)["default"]["status"]["observedGeneration"]
    assert (observed, runtime_class(cluster)) == (2, "nvidia")


def runtime_class(cluster: Cluster) -> str:
    """Returns what the plugins of the policy run with."""
    plugin = cluster.api.of(DAEMON_SETS)["gpushare-plugin-default"]
    return str(plugin["spec"]["template"]["spec"].get("runtimeClassName", ""))


async def test_a_node_that_goes_while_it_is_labelled_is_no_trouble() -> None:
    """The policy was Degraded by an error of the API server's, with an Event, until the next round."""
    cluster, operator = await in_force("gpu-1", "gpu-2")
    for name in ("gpu-1", "gpu-2"):
        cluster.api.change(paths.NODES, name, {"metadata": {"labels": {MODE_LABEL: "Slices"}}})
    await operator.resync()
    cluster.api.remove(paths.NODES, "gpu-2")
    with pytest.raises(UnfinishedError):
        await operator.reconciler.work("default")
    conditions = cluster.api.of(paths.POLICIES)["default"]["status"]["conditions"]
    assert {condition["status"] for condition in conditions if condition["type"] == "Degraded"} == {"False"}
    assert not [write for write in cluster.api.writes if "events" in write]


async def test_a_defect_at_one_write_keeps_no_sums_from_the_status(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was raised past the status: that stood still, and nobody saw why."""
    cluster, operator = await in_force("gpu-1", "gpu-2")
    whole = cluster.api.merge

    async def defect(path: str, body: Json) -> Json:
        if path.endswith("/nodes/gpu-2"):
            raise RuntimeError("of the test")
        return await whole(path, body)

    monkeypatch.setattr(cluster.api, "merge", defect)
    cluster.api.change(paths.NODES, "gpu-2", {"metadata": {"labels": {MODE_LABEL: "Slices"}}})
    allocate(cluster, 1)
    await operator.resync()
    await operator.work("default")
    assert allocated(cluster) == 1
    conditions = cluster.api.of(paths.POLICIES)["default"]["status"]["conditions"]
    message = next(condition["message"] for condition in conditions if condition["type"] == "Degraded")
    assert "label node gpu-2" in message
    assert "a defect of the operator, see its log: RuntimeError('of the test')" in message
    assert "of the test" in caplog.text


async def test_schedulers_are_looked_at_before_any_status_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With backend Volcano a policy was not Ready for a moment after every restart, and Events told of it."""
    keys: list[str] = []
    whole = PolicyReconciler.work

    async def work(reconciler: PolicyReconciler, key: str) -> float | None:
        keys.append(key)
        return await whole(reconciler, key)

    cluster, _ = await in_force("gpu-1")
    monkeypatch.setattr(PolicyReconciler, "work", work)
    async with running(Server(cluster.api), tmp_path, monkeypatch, unused_port()):
        await until(cluster, lambda: len(keys) > 2, "the queue works")
    assert keys[0] == SCHEDULERS, keys


async def test_nothing_is_kept_of_policies_that_are_gone() -> None:
    cluster, operator = await in_force("gpu-1")
    for number in range(3):
        cluster.add_policy(f"p{number}", {"names": ["none"], "devices": CARDS})
        await operator.resync()
        await operator.work(f"p{number}")
        await operator.work(f"p{number}")
        cluster.api.of(paths.POLICIES).pop(f"p{number}")
    await operator.resync()
    assert operator.reconciler._reported.keys() == {"default"}


async def test_what_was_done_is_followed_though_the_status_is_refused() -> None:
    """Who waited for it was asked half a minute later: the watch tells nothing that the answer has told."""
    cluster, operator = await in_force("gpu-1")
    cluster.api.change(paths.NODES, "gpu-1", {"metadata": {"labels": {MODE_LABEL: "Slices"}}})
    allocate(cluster, 1)
    await operator.resync()
    operator.asked.clear()
    cluster.api.refuse = lambda write: write.endswith("/status")
    with pytest.raises(ApiError):
        await operator.work("default")
    assert cluster.api.of(paths.NODES)["gpu-1"]["metadata"]["labels"][MODE_LABEL] == "Memory"
    assert operator.asked == {"default", CLUSTER}
