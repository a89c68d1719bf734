"""Rows that are measured on a cluster: what they ask of the API server and of the scheduler."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from bench.cluster.cluster_objects import NAMESPACE, RARE_IMAGE, pending_pod
from bench.fill_cluster import fill_share_nodes
from bench.measuring.figures import Figure, NotMeasuredError
from bench.measuring.size import QUICK
from bench.readings.audit_log import ACCOUNT
from bench.rows import candidates, churn, one_node, pending, pods, storm, throughput
from tests.fakes.bench_cluster import PretendCluster, pretend_cluster

from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[PretendCluster]:
    async with pretend_cluster(tmp_path) as cluster:
        yield cluster


def by_name(figures: Sequence[Figure]) -> dict[str, Figure]:
    return {figure.what: figure for figure in figures}


async def pods_of(cluster: PretendCluster) -> list[Json]:
    items: list[Json] = (await cluster.client.get(paths.pods(NAMESPACE)))["items"]
    return items


async def test_plain_and_shared_pods_take_turns_and_three_rows_use_them(cluster: PretendCluster) -> None:
    shared = by_name(await throughput.shared(cluster))
    bound = len(cluster.scheduler.bound)
    algorithm = by_name(await throughput.algorithm(cluster))
    cpu = by_name(await throughput.extender_cpu(cluster))
    assert shared["shared over plain"].measured > 0
    assert algorithm["scheduling algorithm, shared pod"].measured == pytest.approx(1.0)
    assert cpu["extender per shared pod"].measured == pytest.approx(10 / 6)
    assert bound == len(cluster.scheduler.bound) == 18, "one run to warm up, one of each kind"
    assert await pods_of(cluster) == []


async def test_ordinary_pods_are_measured_without_us_first(
    cluster: PretendCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pods, "QUIET_SECONDS", 0.05)
    figures = by_name(await throughput.ordinary(cluster))
    assert figures["with us over without us"].target is not None
    with pytest.raises(NotMeasuredError, match="installed already"):
        await throughput.ordinary(cluster)


async def test_a_storm_is_looked_at_before_its_pods_go(cluster: PretendCluster) -> None:
    figures = by_name(await storm.storm(cluster))
    assert figures["bound of 20 pods created at once"].reached
    assert figures["cards given out beyond their size"].measured == 0
    assert figures["binds that failed"].measured == 0
    assert await pods_of(cluster) == []


async def test_pods_that_do_not_fit_wait_beside_the_others(
    cluster: PretendCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(pending, "LOOK_SECONDS", 0.25)
    figures = by_name(await pending.pending(cluster))
    assert figures["first over alone"].measured > 0
    assert figures["beside over alone"].measured > 0
    events = (await cluster.client.get(paths.storage_capacities(NAMESPACE)))["items"]
    assert events == [], "what was added is taken away"
    assert not any(name.startswith("unfit") for name in cluster.scheduler.bound)
    assert await pods_of(cluster) == []


async def test_pods_that_do_not_fit_are_not_refused_often_at_quick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pending, "QUIET_SECONDS", 0.05)
    async with pretend_cluster(tmp_path, unfit_rounds=QUICK.unfit_rounds) as cluster:
        figures = by_name(await pending.pending(cluster))
    assert figures["first over alone"].measured > 0
    assert "beside over alone" not in figures


async def test_what_is_written_is_waited_for_from_then_on(
    cluster: PretendCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pods, "QUIET_SECONDS", 0.6)
    clock = asyncio.get_running_loop().time
    begun = clock()
    asyncio.get_running_loop().call_later(0.1, add_write, cluster)
    await pods.settled(cluster)
    assert 0.7 <= clock() - begun < 1.1, "not two times 0.6 s, of which the first one ends with a write in it"


async def test_who_never_stops_writing_is_named(
    cluster: PretendCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("QUIET_SECONDS", 0.6), ("SETTLED_SECONDS", 0.2), ("NODES_A_SECOND", 1e6)):
        monkeypatch.setattr(pods, name, seconds)
    for moment in range(1, 10):
        asyncio.get_running_loop().call_later(0.1 * moment, add_write, cluster)
    with pytest.raises(NotMeasuredError, match=r"still written after 0\.2.* s: plugin gpusharenodes/status"):
        await pods.settled(cluster)


def add_write(cluster: PretendCluster) -> None:
    """As the API server notes it."""
    event = {
        "stage": "ResponseComplete",
        "verb": "patch",
        "user": {"username": f"{ACCOUNT}plugin"},
        "objectRef": {"resource": "gpusharenodes", "subresource": "status"},
    }
    with cluster.audit.path.open("a") as log:
        log.write(f"{json.dumps(event)}\n")


async def test_every_number_of_offered_nodes_is_asked_of_all_nodes_in_turn(cluster: PretendCluster) -> None:
    await fill_share_nodes(cluster.client, cluster.layout)
    figures = by_name(await candidates.offers(cluster))
    assert figures["all offered: shared pods"].measured > 0
    assert figures["16 offered: shared pods"].measured > 0
    # This scheduler goes round all three nodes; one has the image, and each is a zone.
    assert figures["plain pods: of 60 that run where their image is"].measured == 20
    assert figures["16 offered: skew of 60 over 3 zones"].measured == 0
    share_nodes = (await cluster.client.get(paths.SHARE_NODES))["items"]
    assert [share_node["spec"].get("candidates") for share_node in share_nodes] == [None] * 3, "as before"
    assert await pods_of(cluster) == []


async def test_pods_may_go_at_once_to_a_node_that_was_cordoned(cluster: PretendCluster) -> None:
    taints = [{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
    spec = {"unschedulable": True, "taints": taints}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-2"}, "spec": spec}
    await cluster.client.create(paths.NODES, body)
    await cluster.uncordon("gpu-2")
    assert (await cluster.client.get(f"{paths.NODES}/gpu-2"))["spec"] == {}


def test_pods_ask_for_what_kube_scheduler_scores() -> None:
    pod = pending_pod("a", units=4)
    assert candidates.with_rare_image(pod)["spec"]["containers"][0]["image"] == RARE_IMAGE
    constraint = candidates.spread_over_zones(pod)["spec"]["topologySpreadConstraints"][0]
    assert constraint["labelSelector"]["matchLabels"] == pod["metadata"]["labels"]


@pytest.mark.parametrize(("attempts", "reached"), [(1, True), (3, False)])
async def test_attempts_are_kube_schedulers_own_count(
    cluster: PretendCluster, monkeypatch: pytest.MonkeyPatch, *, attempts: int, reached: bool
) -> None:
    monkeypatch.setattr(one_node, "SETTLED_SECONDS", 0.0)
    cluster.scheduler.attempts = attempts
    at_once, most, longest = await one_node.attempts(cluster)
    assert (most.measured, at_once.reached) == (attempts, reached)
    assert longest.measured > 0
    assert at_once.measured == (one_node.PODS if reached else 0)
    for collection in (paths.NODES, paths.SHARE_NODES, paths.PODS):
        assert (await cluster.client.get(collection))["items"] == [], "what was added is taken away"


async def test_churn_compares_its_begin_with_its_end(
    cluster: PretendCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, seconds in (("LIFE", 0.1), ("QUIET_SECONDS", 0.1), ("WINDOW", 0.45), ("POLL_SECONDS", 0.05)):
        monkeypatch.setattr(churn, name, seconds)
    figures = by_name(await churn.churn(cluster))
    assert figures["pods created and deleted"].measured >= 2
    assert figures["memory, end over begin"].measured == 1
    assert figures["differences between books that were not there before"].reached
    assert await pods_of(cluster) == []
