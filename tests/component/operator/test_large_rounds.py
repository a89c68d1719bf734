"""A round does only so much: others have their turn, and the queue shows that it lives."""

import pytest
from tests.component.operator.test_app import CARDS
from tests.fakes.operator_cluster import Cluster, Operator, converge

from gpushare_core.api.names import POLICY_LABEL
from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_operator import reconcile
from gpushare_operator.reconcile import CLUSTER, UnfinishedError

NODES = tuple(f"gpu-{number}" for number in range(5))
MOST = 3


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """With a policy over more nodes than one round writes to."""
    monkeypatch.setattr(reconcile, "MOST_ACTIONS", MOST)
    cluster = Cluster()
    for name in NODES:
        cluster.add_node(name)
    cluster.add_node("cp", control_plane=True)
    cluster.add_policy("default", {"names": list(NODES), "devices": CARDS})
    return cluster


def to_nodes(cluster: Cluster) -> list[str]:
    return [each for each in cluster.api.writes if paths.SHARE_NODES in each or paths.NODES in each]


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

    monkeypatch.setattr(cluster.api, "apply", refuse)
    operator.asked.clear()
    with pytest.raises(UnfinishedError):
        await operator.reconciler.work("default")
    assert operator.asked == set(), "the queue waits ever longer, and tries again"
