"""The startup taint goes when nobody has to be waited for any more, and never stays behind."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.fakes.operator_cluster import JOBS, Cluster, Operator, converge

from gpushare_core.api.names import STARTUP_TAINT
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json

CARDS = {"source": "Simulated", "simulated": [{"count": 1, "memory": "16Gi"}]}
STARTING = {"key": STARTUP_TAINT, "effect": "NoSchedule"}
OTHER = {"key": "example.com/gpu", "value": "a", "effect": "NoExecute"}


def rule(*names: str, mode: str = "Memory") -> Json:
    return {"names": list(names), "mode": mode, "devices": CARDS}


def add_node(cluster: Cluster, name: str, *taints: Mapping[str, str]) -> None:
    cluster.add_node(name)
    cluster.api.of(paths.NODES)[name]["spec"] = {"taints": [dict(taint) for taint in taints]}


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    made.add_node("cp", control_plane=True)
    add_node(made, "gpu-1", OTHER, STARTING)
    return made


def taints(cluster: Cluster, name: str = "gpu-1") -> Any:
    return cluster.api.of(paths.NODES)[name]["spec"]["taints"]


async def test_it_goes_when_the_plugin_has_registered_and_others_stay(cluster: Cluster) -> None:
    cluster.add_policy("default", rule("gpu-1"), startupTaint="Remove")
    operator = Operator(cluster)
    await operator.resync()
    for _ in range(3):  # the plugin has not come yet
        for key in operator.work_keys():
            await operator.work(key)
    assert STARTING in taints(cluster)
    await converge(cluster, operator)
    assert taints(cluster) == [OTHER]


@pytest.mark.parametrize("amount", [None, "0"])
async def test_it_stays_until_the_node_shows_the_units_that_its_plugin_has_registered(
    cluster: Cluster, amount: str | None
) -> None:
    """Until the kubelet has written its status an autoscaler would see a node without them. A Node that was
    made anew under the name of one that had them has none either."""
    cluster.add_policy("default", rule("gpu-1"), startupTaint="Remove")
    operator = await converge(cluster)
    shown = cluster.api.of(paths.NODES)["gpu-1"]["status"]
    late = {part: {"gpushare.io/memory": amount} if amount else {} for part in ("capacity", "allocatable")}
    body = cluster.api.of(paths.NODES)["gpu-1"]
    cluster.api.put(paths.NODES, {**body, "spec": {"taints": [STARTING]}, "status": {**shown, **late}})
    await converge(cluster, operator)
    assert taints(cluster) == [STARTING]
    cluster.api.change(paths.NODES, "gpu-1", {"status": shown})
    await converge(cluster, operator)
    assert taints(cluster) == []


async def test_it_stays_until_the_scheduler_knows_of_cards(cluster: Cluster) -> None:
    """The first node of a policy comes while kube-scheduler counts sums: pods that fit no card would go there
    and be refused for good."""
    cluster.add_policy("default", rule("gpu-1"), startupTaint="Remove")
    operator = Operator(cluster)
    cluster.hangs.add("install")
    await converge(cluster, operator)
    assert cluster.api.of(JOBS)
    assert cluster.api.of(paths.NODES)["gpu-1"]["status"]["allocatable"]
    assert STARTING in taints(cluster)
    cluster.hangs.clear()
    await converge(cluster, operator)
    assert taints(cluster) == [OTHER]


async def test_nobody_waits_for_a_scheduler_that_cannot_be_connected(cluster: Cluster) -> None:
    cluster.unfit.add("cp")
    cluster.add_policy("default", rule("gpu-1"), startupTaint="Remove")
    await converge(cluster)
    assert taints(cluster) == [OTHER]


async def test_it_goes_once_and_what_others_do_meanwhile_is_kept(cluster: Cluster) -> None:
    """The list can only be replaced as a whole: what the operator has not seen must not be lost."""
    cluster.add_policy("default", rule("gpu-1"), startupTaint="Remove")
    operator = await converge(cluster, Operator(cluster))
    shown = cluster.api.of(paths.NODES)["gpu-1"]["status"]
    add_node(cluster, "gpu-1", STARTING)
    cluster.api.of(paths.NODES)["gpu-1"]["status"] = shown
    await operator.resync()
    added = cluster.api.of(paths.NODES)["gpu-1"]
    cluster.api.put(paths.NODES, {**added, "spec": {"taints": [STARTING, OTHER]}})
    for key in operator.work_keys():
        await operator.work(key)
    assert OTHER in taints(cluster)
    await converge(cluster, operator)
    assert taints(cluster) == [OTHER]


async def test_by_default_it_is_none_of_our_business(cluster: Cluster) -> None:
    cluster.add_policy("default", rule("gpu-1"))
    operator = await converge(cluster)
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert taints(cluster) == [OTHER, STARTING]


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([rule("elsewhere")], id="of no policy"),
        pytest.param([rule("gpu-1", mode="Off")], id="mode Off"),
    ],
)
async def test_where_nobody_shares_nobody_is_waited_for(cluster: Cluster, rules: list[Json]) -> None:
    cluster.add_policy("default", *rules, startupTaint="Remove")
    await converge(cluster)
    assert taints(cluster) == [OTHER]


async def test_with_the_policy_it_goes_from_nodes_that_never_came_that_far(cluster: Cluster) -> None:
    cluster.add_policy("default", rule("gpu-1"), startupTaint="Remove")
    operator = Operator(cluster)
    await operator.resync()
    for key in operator.work_keys():
        await operator.work(key)
    assert STARTING in taints(cluster)
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert (cluster.api.of(paths.POLICIES), taints(cluster)) == ({}, [OTHER])


async def test_another_policy_that_ignores_it_keeps_it(cluster: Cluster) -> None:
    cluster.add_policy("theirs", rule("gpu-1"))
    cluster.add_policy("ours", rule("gpu-2"), startupTaint="Remove")
    await converge(cluster)
    assert taints(cluster) == [OTHER, STARTING]
