"""What nodes show of the dialect of their policy: it comes, follows, and goes, and what is others' stays."""

import asyncio
import copy
import random
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.component.operator.test_convergence import CARDS, conditions, one_life
from tests.fakes.operator_cluster import JOBS, Cluster, Operator, converge
from tests.samples.operator import marked

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_core.kube import paths

GPU, OTHER = "gpu-1", "gpu-2"
OTHERS = [name for name in DIALECTS if name != "gpushare.io"]


def rule(mode: str = "Memory", *names: str) -> dict[str, Any]:
    slices = {"slicesPerCard": 2} if mode == "Slices" else {}
    return {"names": list(names or [GPU]), "mode": mode, "devices": CARDS, **slices}


def cluster_with(dialect: str, mode: str = "Memory", gpushare: str = "") -> Cluster:
    """``gpushare``: the value of the administrator's label of that name, if there is one."""
    cluster = Cluster()
    theirs = {"gpushare": gpushare} if gpushare else {}
    cluster.add_node(GPU, control_plane=False, **theirs)
    cluster.add_node(OTHER)
    cluster.add_node("cp", control_plane=True)
    cluster.add_policy("default", rule(mode), dialect=dialect)
    return cluster


def node(cluster: Cluster, name: str = GPU) -> dict[str, Any]:
    return cluster.api.of(paths.NODES)[name]


def labels(cluster: Cluster, name: str = GPU) -> dict[str, str]:
    return dict(node(cluster, name)["metadata"]["labels"])


def capacity(cluster: Cluster, name: str = GPU) -> dict[str, str]:
    status = node(cluster, name)["status"]
    assert status["capacity"] == status["allocatable"]
    return dict(status["capacity"])


def expected_labels(dialect: Dialect, mode: str = "Memory") -> dict[str, str]:
    ours = {**marked("default"), "gpushare.io/mode": mode, "gpushare.io/dialect": dialect.name}
    return {**ours, **dialect.node_labels}


def expected_capacity(dialect: Dialect, cards: int = 2) -> dict[str, str]:
    counts = {dialect.count_resource: str(cards)} if dialect.count_resource else {}
    return {dialect.memory_resource: "32", **counts}


def edit(cluster: Cluster, **spec: Any) -> None:
    cluster.api.change(paths.POLICIES, "default", {"spec": spec})


def managed_resources(cluster: Cluster) -> list[str]:
    """Of the last run of hostctl that edited a scheduler."""
    runs = [job["spec"]["template"]["spec"]["containers"][0]["args"] for job in cluster.api.of(JOBS).values()]
    (args,) = [run for run in runs if run[0] == "install"]
    return [value for flag, value in pairwise(args) if flag == "--managed-resource"]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
async def test_labels_and_counts_come_and_go(dialect: Dialect) -> None:
    cluster = cluster_with(dialect.name)
    before = copy.deepcopy([(labels(cluster, name), capacity(cluster, name)) for name in (GPU, OTHER, "cp")])
    await converge(cluster)
    assert labels(cluster) == expected_labels(dialect)
    assert capacity(cluster) == expected_capacity(dialect)
    assert (labels(cluster, OTHER), capacity(cluster, OTHER)) == ({}, {})
    cluster.delete_policy("default")
    await converge(cluster, Operator(cluster))
    after = [(labels(cluster, name), capacity(cluster, name)) for name in (GPU, OTHER, "cp")]
    assert after == before
    assert not any(cluster.traces().values()), cluster.traces()


@pytest.mark.parametrize("dialect", OTHERS)
async def test_a_node_that_leaves_its_policy_is_as_before(dialect: str) -> None:
    cluster = cluster_with(dialect)
    await converge(cluster)
    edit(cluster, nodes=[rule("Memory", OTHER)])
    await converge(cluster)
    assert (labels(cluster), capacity(cluster)) == ({}, {})
    assert labels(cluster, OTHER) == expected_labels(DIALECTS[dialect])


@pytest.mark.parametrize("value", ["true", "false"])
async def test_a_label_of_the_administrators_stays_what_it_is(value: str) -> None:
    cluster = cluster_with("aliyun.com", gpushare=value)
    operator = await converge(cluster)
    assert labels(cluster)["gpushare"] == value
    cluster.api.writes.clear()
    await converge(cluster, operator)
    assert cluster.api.writes == []
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert labels(cluster) == {"gpushare": value}


@pytest.mark.parametrize("dialect", ["aliyun.com", "enflame.com", "volcano.sh"])
async def test_the_number_of_a_plugin_that_comes_back_stays(dialect: str) -> None:
    """It comes back as soon as the policy's label is gone, registers, and writes its number once."""
    cluster, spoken = cluster_with(dialect), DIALECTS[dialect]
    operator = await converge(cluster)
    theirs = {spoken.memory_resource: "32", spoken.count_resource: "2"}
    observe, came = cluster.api.on_change, list[bool]()

    def come_back(collection: str, event: str, body: dict[str, Any]) -> None:
        observe(collection, event, body)
        is_back = collection == paths.NODES and "gpushare.io/policy" not in body["metadata"]["labels"]
        if is_back and body["metadata"]["name"] == GPU and not came:
            came.append(True)
            status = {"capacity": theirs, "allocatable": theirs}
            cluster.api.change(paths.NODES, GPU, {"status": status}, manager="their-plugin")

    cluster.api.on_change = come_back
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert came
    assert capacity(cluster).get(spoken.count_resource) == "2"
    assert labels(cluster) == {}


async def test_a_number_that_was_there_before_us_stays() -> None:
    cluster = cluster_with("aliyun.com")
    theirs = {"aliyun.com/gpu-count": "2"}
    cluster.api.change(paths.NODES, GPU, {"status": {"capacity": theirs, "allocatable": theirs}})
    operator = await converge(cluster)
    assert capacity(cluster) == expected_capacity(DIALECTS["aliyun.com"])
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert (labels(cluster), capacity(cluster)) == ({}, theirs)


async def test_a_label_that_the_administrator_changed_later_is_theirs() -> None:
    cluster = cluster_with("aliyun.com")
    operator = await converge(cluster)
    cluster.api.change(paths.NODES, GPU, {"metadata": {"labels": {"gpushare": "false"}}})
    edit(cluster, dialect="gpushare.io")
    await converge(cluster, operator)
    assert labels(cluster) == {**expected_labels(DIALECTS["gpushare.io"]), "gpushare": "false"}


@pytest.mark.parametrize("after", DIALECTS)
@pytest.mark.parametrize("before", DIALECTS)
async def test_a_change_of_dialect_changes_all_that_is_shown(before: str, after: str) -> None:
    cluster = cluster_with(before)
    operator = await converge(cluster)
    edit(cluster, dialect=after)
    await converge(cluster, operator)
    assert labels(cluster) == expected_labels(DIALECTS[after])
    assert capacity(cluster) == expected_capacity(DIALECTS[after])
    assert DIALECTS[after].memory_resource in managed_resources(cluster)
    if before != after:
        assert DIALECTS[before].memory_resource not in managed_resources(cluster)


async def test_while_pods_are_in_the_way_of_a_change_the_former_dialect_is_shown() -> None:
    cluster = cluster_with("aliyun.com")
    operator = await converge(cluster)
    shown = (labels(cluster), capacity(cluster))
    edit(cluster, dialect="volcano.sh")
    await operator.resync()
    await operator.work("default")
    assert (labels(cluster), capacity(cluster)) == shown, "its plugin has not answered yet"
    blocked = {"type": "UnitChangeBlocked", "status": "True", "reason": "PodsHoldUnits", "message": "1 pod"}
    moment = {"lastTransitionTime": "2026-11-21T12:00:00Z"}
    conditions = cluster.api.of(paths.SHARE_NODES)[GPU]["status"]["conditions"]
    status = {"observedGeneration": 2, "conditions": [*conditions, {**blocked, **moment}]}
    cluster.api.change(paths.SHARE_NODES, GPU, {"status": status})
    await converge(cluster, operator)
    assert (labels(cluster), capacity(cluster)) == shown
    assert "aliyun.com/gpu-mem" in managed_resources(cluster), "it is still offered"
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert (labels(cluster), capacity(cluster)) == ({}, {})


async def test_numbers_of_cards_follow_the_cards() -> None:
    cluster = cluster_with("enflame.com")
    operator = await converge(cluster)
    for number in (3, 1):
        cards = [{"uuid": f"GPU-{index}"} for index in range(number)]
        cluster.api.change(paths.SHARE_NODES, GPU, {"status": {"cards": cards}})
        await converge(cluster, operator)
        assert capacity(cluster) == expected_capacity(DIALECTS["enflame.com"], cards=number)


async def test_a_number_that_the_plugin_registers_is_the_kubelets() -> None:
    cluster = cluster_with("volcano.sh", "Exclusive")
    operator = await converge(cluster)
    assert capacity(cluster) == {"volcano.sh/gpu-number": "32"}
    edit(cluster, nodes=[rule("Memory")])
    await converge(cluster, operator)
    assert capacity(cluster) == expected_capacity(DIALECTS["volcano.sh"])


async def test_a_kubelet_that_zeroes_a_number_is_not_fought() -> None:
    cluster = cluster_with("aliyun.com")
    operator = await converge(cluster)
    cluster.api.writes.clear()
    for _ in range(60):
        zero = {"capacity": {"aliyun.com/gpu-count": "0"}, "allocatable": {"aliyun.com/gpu-count": "0"}}
        cluster.api.change(paths.NODES, GPU, {"status": zero})
        await operator.resync()
        await operator.work("default")
        operator.now += timedelta(seconds=10)
    assert cluster.api.writes.count(f"merge {paths.NODES}/{GPU}/status") <= 3
    await converge(cluster, operator)
    assert capacity(cluster) == expected_capacity(DIALECTS["aliyun.com"])
    (degraded,) = conditions(cluster, "Degraded")
    assert degraded["status"] == "False"


async def test_what_another_systems_plugin_offers_elsewhere_is_left_alone() -> None:
    cluster = cluster_with("tuya.com", "Exclusive")
    theirs = {"nvidia.com/gpu": "0", "aliyun.com/gpu-mem": "80", "aliyun.com/gpu-count": "0"}
    cluster.api.change(paths.NODES, OTHER, {"status": {"capacity": theirs, "allocatable": theirs}})
    cluster.api.change(paths.NODES, GPU, {"metadata": {"labels": {"nvidia.com/gpu.present": "true"}}})
    operator = await converge(cluster)
    assert capacity(cluster) == {"nvidia.com/gpu": "32"}
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert (labels(cluster), capacity(cluster)) == ({"nvidia.com/gpu.present": "true"}, {})
    assert capacity(cluster, OTHER) == theirs


@pytest.mark.parametrize("mode", ["Memory", "Slices"])
async def test_whole_cards_that_nvidias_plugin_offers_beside_us_stay(mode: str) -> None:
    cluster = cluster_with("tuya.com", mode)
    operator = await converge(cluster)
    theirs = {"nvidia.com/gpu": "4"}
    cluster.api.change(paths.NODES, GPU, {"status": {"capacity": theirs, "allocatable": theirs}})
    edit(cluster, dialect="gpushare.io")
    await converge(cluster, operator)
    assert capacity(cluster).items() >= theirs.items()
    edit(cluster, dialect="tuya.com")
    await converge(cluster, operator)
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert (labels(cluster), capacity(cluster)) == ({}, theirs)


async def test_what_kubelets_remember_of_a_former_dialect_is_taken_out_while_the_policy_lives() -> None:
    cluster = cluster_with("aliyun.com")
    operator = await converge(cluster)
    edit(cluster, dialect="volcano.sh")
    await converge(cluster, operator)
    forgotten = {"aliyun.com/gpu-mem": "0"}
    cluster.api.change(paths.NODES, GPU, {"status": {"capacity": forgotten, "allocatable": forgotten}})
    await converge(cluster, operator)
    assert capacity(cluster) == expected_capacity(DIALECTS["volcano.sh"])


async def test_two_policies_of_two_dialects_side_by_side() -> None:
    cluster = cluster_with("aliyun.com")
    cluster.add_policy("second", rule("Memory", OTHER), dialect="tuya.com")
    operator = await converge(cluster)
    assert capacity(cluster) == expected_capacity(DIALECTS["aliyun.com"])
    assert capacity(cluster, OTHER) == expected_capacity(DIALECTS["tuya.com"])
    managed = managed_resources(cluster)
    assert {"aliyun.com/gpu-mem", "tuya.com/vcuda-memory"} <= set(managed)
    assert "nvidia.com/gpu" not in managed, "no node serves whole cards by that name"
    cluster.delete_policy("second")
    await converge(cluster, operator)
    assert managed_resources(cluster) == ["aliyun.com/gpu-mem", "gpushare.io/slice", "gpushare.io/card"]


def kubelet_forgets(cluster: Cluster) -> None:
    """Five minutes after a plugin stopped: of what it offered there is nothing, and that is written once."""
    shares = cluster.api.of(paths.SHARE_NODES).values()
    offered = {DIALECTS[share["spec"]["dialect"]].memory_resource for share in shares}
    zeros = dict.fromkeys((capacity(cluster).keys() & RESOURCES.keys()) - offered, "0")
    cluster.api.change(paths.NODES, GPU, {"status": {"capacity": zeros, "allocatable": zeros}})


lives = st.lists(st.integers(min_value=0, max_value=8), max_size=6)


@settings(max_examples=25, deadline=None)
@given(
    lives=lives,
    chance=st.randoms(use_true_random=False),
    spoken=st.lists(st.sampled_from(list(DIALECTS)), min_size=1, max_size=4),
)
def test_however_often_it_is_killed_and_the_dialect_changed_nothing_is_left(
    lives: list[int], chance: random.Random, spoken: list[str]
) -> None:
    cluster = cluster_with(spoken[0])
    for writes in lives:
        asyncio.run(one_life(cluster, writes, chance))
        edit(cluster, dialect=chance.choice(spoken))
    edit(cluster, dialect=spoken[-1])
    asyncio.run(converge(cluster))
    kubelet_forgets(cluster)
    asyncio.run(converge(cluster))
    assert labels(cluster) == expected_labels(DIALECTS[spoken[-1]])
    assert capacity(cluster) == expected_capacity(DIALECTS[spoken[-1]])
    for writes in lives:
        asyncio.run(one_life(cluster, writes, chance))
    cluster.delete_policy("default")
    for writes in lives:
        asyncio.run(one_life(cluster, writes, chance))
    asyncio.run(converge(cluster))
    kubelet_forgets(cluster)
    asyncio.run(converge(cluster))
    assert (labels(cluster), capacity(cluster)) == ({}, {})
