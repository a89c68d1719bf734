"""How GPUShareNodes are written: created where there is none, changed by merge patch where there is one."""

import pytest
from tests.component.operator.test_app import CARDS
from tests.fakes.operator_cluster import Cluster, Operator, converge

from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json

SLICES = {"names": ["gpu-1"], "mode": "Slices", "slicesPerCard": 2, "devices": CARDS}
MEMORY = {"names": ["gpu-1"], "mode": "Memory", "devices": CARDS}


async def with_policy(rule: Json) -> tuple[Cluster, Operator]:
    cluster = Cluster()
    cluster.add_node("gpu-1")
    cluster.add_node("cp", control_plane=True)
    cluster.add_policy("default", rule)
    return cluster, await converge(cluster)


def share_node_writes(cluster: Cluster) -> list[str]:
    return [write for write in cluster.api.writes if paths.SHARE_NODES in write]


async def change_rule(cluster: Cluster, operator: Operator, rule: Json) -> None:
    cluster.api.writes.clear()
    cluster.api.change(paths.POLICIES, "default", {"spec": {"nodes": [rule]}})
    await operator.resync()
    await operator.work("default")


async def test_one_that_is_not_there_is_created() -> None:
    """Server-side apply costs the API server half as much again, of which five thousand feel."""
    cluster, _ = await with_policy(MEMORY)
    assert share_node_writes(cluster) == [f"create {paths.SHARE_NODES}"]


async def test_what_is_not_asked_for_any_more_is_taken_out() -> None:
    cluster, operator = await with_policy(SLICES)
    await change_rule(cluster, operator, MEMORY)
    assert share_node_writes(cluster) == [f"merge {paths.SHARE_NODES}/gpu-1"]
    spec = cluster.api.of(paths.SHARE_NODES)["gpu-1"]["spec"]
    assert (spec["mode"], "slicesPerCard" in spec) == ("Memory", False)


async def test_what_a_newer_crd_has_filled_in_stays() -> None:
    cluster, operator = await with_policy(SLICES)
    cluster.api.change(paths.SHARE_NODES, "gpu-1", {"spec": {"ofTomorrow": "yes"}})
    await change_rule(cluster, operator, MEMORY)
    assert cluster.api.of(paths.SHARE_NODES)["gpu-1"]["spec"]["ofTomorrow"] == "yes"


async def test_what_somebody_adds_that_the_policy_leaves_out_is_taken_out() -> None:
    """It stayed: only what the policy asks for was compared."""
    cluster, operator = await with_policy(MEMORY)
    cluster.api.change(paths.SHARE_NODES, "gpu-1", {"spec": {"candidates": 3, "extenderLogLevel": "debug"}})
    await operator.resync()
    await operator.work("default")
    assert not {"candidates", "extenderLogLevel"} & cluster.api.of(paths.SHARE_NODES)["gpu-1"]["spec"].keys()


@pytest.mark.parametrize("is_anew", [True, False])
async def test_one_that_went_meanwhile_is_made_anew_and_nothing_counts_as_refused(*, is_anew: bool) -> None:
    """Somebody has deleted it, and maybe made another one of that name, since the operator looked."""
    cluster, operator = await with_policy(SLICES)
    share = cluster.api.of(paths.SHARE_NODES)["gpu-1"]
    cluster.api.change(paths.POLICIES, "default", {"spec": {"nodes": [MEMORY]}})
    await operator.resync()
    cluster.api.remove(paths.SHARE_NODES, "gpu-1")
    if is_anew:
        cluster.api.put(paths.SHARE_NODES, {**share, "metadata": {"name": "gpu-1"}})
    await operator.work("default")
    assert operator.reconciler.retry_backoff.errors("default") == []
    await converge(cluster, operator)
    assert cluster.api.of(paths.SHARE_NODES)["gpu-1"]["spec"]["mode"] == "Memory"


async def test_one_that_came_meanwhile_is_taken_over() -> None:
    cluster, operator = await with_policy(MEMORY)
    share = cluster.api.of(paths.SHARE_NODES)["gpu-1"]
    cluster.api.remove(paths.SHARE_NODES, "gpu-1")
    await operator.resync()
    cluster.api.put(paths.SHARE_NODES, {**share, "metadata": {"name": "gpu-1"}})
    await operator.work("default")
    assert operator.reconciler.retry_backoff.errors("default") == []
    await converge(cluster, operator)
    owners = cluster.api.of(paths.SHARE_NODES)["gpu-1"]["metadata"]["ownerReferences"]
    assert [owner["name"] for owner in owners] == ["default"]
