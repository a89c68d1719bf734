"""A round does only so much: others have their turn, and the queue shows that it lives."""

import logging
from datetime import timedelta

import pytest
from tests.component.operator.test_app import CARDS
from tests.fakes.operator_cluster import Cluster, Operator, converge

from gpushare_core.api.names import MODE_LABEL, POLICY_LABEL
from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_core.text.json_object import Json
from gpushare_operator import apply, reconcile
from gpushare_operator.decide import policy_plan
from gpushare_operator.reconcile import CLUSTER, UnfinishedError

NODES = tuple(f"gpu-{number}" for number in range(5))
MOST = 3


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """With a policy over more nodes than one round writes to."""
    monkeypatch.setattr(reconcile, "MAX_ACTIONS", MOST)
    cluster = Cluster()
    for name in NODES:
        cluster.add_node(name)
    cluster.add_node("cp", control_plane=True)
    cluster.add_policy("default", {"names": list(NODES), "devices": CARDS})
    return cluster


def to_nodes(cluster: Cluster) -> list[str]:
    return [write for write in cluster.api.writes if paths.SHARE_NODES in write or paths.NODES in write]


async def test_a_roll_out_over_many_nodes_takes_several_rounds(cluster: Cluster) -> None:
    """It was one round, however long that took: over 50,000 nodes longer than the queue may be silent."""
    operator = Operator(cluster)
    await operator.resync()
    await operator.work("default")  # the finalizer
    for _ in range(2):
        before = len(to_nodes(cluster))
        operator.asked.clear()
        await operator.work("default")
        assert 0 < len(to_nodes(cluster)) - before <= MOST
        assert operator.asked >= {"default", CLUSTER}, "the rest is asked for, and others have their turn"


async def test_the_rest_of_a_roll_out_does_not_wait(cluster: Cluster) -> None:
    """Each round of a roll-out over thousands of nodes was followed by the debounce, in which nothing was
    written."""
    operator = Operator(cluster)
    await operator.resync()
    await operator.work("default")  # the finalizer
    work, waits = operator.reconciler.work, list[float | None]()
    for _ in range(2 * len(NODES)):
        waits.append(await work("default"))
    assert waits[0] == 0.0
    assert waits[-1] != 0.0, "nothing is left, and the policy is at rest"


async def test_all_of_it_is_done_in_the_end(cluster: Cluster) -> None:
    await converge(cluster)
    assert sorted(cluster.api.of(paths.SHARE_NODES)) == sorted(NODES)
    labels = {name: node["metadata"]["labels"] for name, node in cluster.api.of(paths.NODES).items()}
    assert {name for name in labels if labels[name].get(POLICY_LABEL) == "default"} == set(NODES)
    cluster.delete_policy("default")
    await converge(cluster)
    assert cluster.api.of(paths.SHARE_NODES) == {}


async def test_a_server_that_refuses_everything_is_left_to_the_backoff(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = Operator(cluster)
    await operator.resync()
    await operator.work("default")

    async def refuse(path: str, _: object) -> None:
        raise ApiError(500, "InternalError", path)

    monkeypatch.setattr(cluster.api, "create", refuse)
    operator.asked.clear()
    with pytest.raises(UnfinishedError):
        await operator.reconciler.work("default")
    assert operator.asked == set(), "the queue waits ever longer, and tries again"


async def test_nodes_that_are_refused_do_not_keep_the_others_from_their_turn(cluster: Cluster) -> None:
    """As many as a round holds, and refused for ever: they came first again each time that the queue came
    back, and no other node ever got anything."""
    refused = [f"{paths.SHARE_NODES}/{name}" for name in NODES[:MOST]]
    cluster.api.refuse = lambda write: any(name in write for name in refused)
    operator = Operator(cluster)
    await operator.resync()
    for _ in range(8):
        await operator.work("default")
        operator.now += timedelta(seconds=60)
    assert sorted(cluster.api.of(paths.SHARE_NODES)) == sorted(NODES[MOST:])


async def test_what_is_written_of_many_nodes_at_once_is_one_line_of_the_log(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reconcile, "MAX_ACTIONS", 2000)
    monkeypatch.setattr(apply, "MAX_LINES", len(NODES) - 1)
    caplog.set_level(logging.INFO)
    await converge(cluster)
    lines = [record.getMessage() for record in caplog.records]
    (line,) = [line for line in lines if "GPUShareNode gpu-" in line]
    assert line.startswith("ApplyShareNode done 5 times, first and last: apply GPUShareNode gpu-0; apply")


async def test_a_node_has_its_share_node_and_its_labels_in_one_round(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was looked at after all GPUShareNodes of a large cluster, and again after all labels."""
    monkeypatch.setattr(reconcile, "MAX_ACTIONS", 4)
    monkeypatch.setattr(policy_plan, "MAX_NODES_TOGETHER", 2)
    operator = Operator(cluster)
    await operator.resync()
    for _ in range(2):
        await operator.work("default")
    labelled = {name for name in NODES if POLICY_LABEL in labels_of(cluster, name)}
    assert labelled == set(cluster.api.of(paths.SHARE_NODES)) == {"gpu-0", "gpu-1"}


async def test_a_round_ends_in_time_however_slow_the_writes_are(cluster: Cluster) -> None:
    """It had its number of writes. With an admission webhook that hangs that was twenty minutes, in which no
    other policy had its turn; after five the process counted as dead."""
    operator, whole, seconds = Operator(cluster), cluster.api.create, 0.0

    async def slowly(path: str, body: Json) -> Json:
        nonlocal seconds
        seconds += reconcile.ROUND_SECONDS
        return await whole(path, body)

    cluster.api.create = slowly  # type: ignore[method-assign]
    operator.reconciler.clock = lambda: seconds
    await operator.resync()
    await operator.work("default")
    for number in range(1, len(NODES) + 1):
        operator.asked.clear()
        await operator.work("default")
        assert len(cluster.api.of(paths.SHARE_NODES)) == number
        assert operator.asked >= {"default", CLUSTER}, "the rest is asked for, and others have their turn"
        assert is_ready(cluster)["Ready"] == "False"
    await converge(cluster, operator)
    assert is_ready(cluster) == READY


def is_ready(cluster: Cluster) -> dict[str, str]:
    conditions = cluster.api.of(paths.POLICIES)["default"]["status"]["conditions"]
    return {
        condition["type"]: condition["status"]
        for condition in conditions
        if condition["type"] in ("Ready", "NodesReady")
    }


READY = {"Ready": "True", "NodesReady": "True"}


async def test_a_policy_is_not_ready_before_the_last_round_is_done(cluster: Cluster) -> None:
    """Of a new mode the labels are written last, and it was Ready when the first of them were."""
    operator = await converge(cluster)
    assert is_ready(cluster) == READY
    rules = [{"names": list(NODES), "devices": CARDS, "mode": "Slices", "slicesPerCard": 2}]
    cluster.api.change(paths.POLICIES, "default", {"spec": {"nodes": rules}})
    while any(labels_of(cluster, name)[MODE_LABEL] != "Slices" for name in NODES):
        await operator.resync()
        await operator.work("default")
        is_done = all(labels_of(cluster, name)[MODE_LABEL] == "Slices" for name in NODES)
        assert is_done or is_ready(cluster)["NodesReady"] == "False"
        assert is_done or is_ready(cluster)["Ready"] == "False"
        for step in cluster.steps():
            step()
    await converge(cluster, operator)
    assert is_ready(cluster) == READY


async def test_a_policy_is_not_ready_where_a_node_could_not_be_told(cluster: Cluster) -> None:
    """The node's plugin serves what was asked before, and counted as ready."""
    operator = await converge(cluster)
    cluster.api.refuse = lambda write: f"{paths.SHARE_NODES}/{NODES[4]}" in write
    cluster.api.change(paths.POLICIES, "default", {"spec": {"memoryUnit": "256Mi"}})
    for _ in range(6):
        operator.now += timedelta(seconds=1)  # how many are ready is told once a second
        await operator.resync()
        await operator.work("default")
        for step in cluster.steps():
            step()
    assert is_ready(cluster)["NodesReady"] == "False"
    assert cluster.api.of(paths.POLICIES)["default"]["status"]["nodes"]["summary"] == "4/5"
    cluster.api.refuse = lambda _: False
    operator.now += timedelta(seconds=60)
    await converge(cluster, operator)
    assert is_ready(cluster) == READY


def labels_of(cluster: Cluster, name: str) -> dict[str, str]:
    labels: dict[str, str] = cluster.api.of(paths.NODES)[name]["metadata"]["labels"]
    return labels
