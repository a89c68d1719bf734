"""One policy says to admission policies what nodes serve, as long as any node shares its cards."""

import pytest
from tests.fakes.operator_cluster import Cluster, converge

from gpushare_core.api.names import ADMISSION_LABEL, SERVED_ANNOTATION
from gpushare_core.kube import paths

RULE = {
    "names": ["gpu-1"],
    "mode": "Memory",
    "devices": {"source": "Simulated", "simulated": [{"count": 1, "memory": "16Gi"}]},
}


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.add_node("gpu-1")
    made.add_node("cp", control_plane=True)
    return made


def marks(cluster: Cluster) -> dict[str, tuple[str | None, str | None]]:
    found = {}
    for name, body in cluster.api.of(paths.POLICIES).items():
        labels, annotations = (body["metadata"].get(key) or {} for key in ("labels", "annotations"))
        found[name] = (labels.get(ADMISSION_LABEL), annotations.get(SERVED_ANNOTATION))
    return found


async def test_the_policy_of_nodes_that_share_is_marked(cluster: Cluster) -> None:
    cluster.add_policy("default", RULE, admission={"visibleDevices": "Deny"})
    await converge(cluster)
    assert marks(cluster) == {"default": ("Deny", "gpushare.io/memory")}


async def test_one_without_nodes_is_not(cluster: Cluster) -> None:
    cluster.add_policy("default", {**RULE, "names": ["nobody"]}, admission={"visibleDevices": "Deny"})
    await converge(cluster)
    assert marks(cluster) == {"default": (None, None)}


async def test_when_it_goes_nothing_is_left(cluster: Cluster) -> None:
    cluster.add_policy("default", RULE)
    await converge(cluster)
    cluster.delete_policy("default")
    await converge(cluster)
    assert marks(cluster) == {}
