"""Rows in which engines take turns: what they ask of the API server and of the scheduler."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench import schedule_throughput
from bench.cluster.cluster_objects import NAMESPACE
from bench.cluster.waiting_pods import LABEL, UNFIT_UNITS, Unfit
from bench.engines import processor
from bench.engines.engine import CLAIMS, EXTENDER, PLUGIN, Engine
from bench.engines.running_engine import RunningEngine
from bench.measuring.figures import Figure, NotMeasuredError
from bench.measuring.percentiles import Percentiles
from bench.rows import one_node, storm
from bench.rows.engines import exactness, preemption, resources, throughput, waiting
from bench.schedule_throughput import Throughput
from tests.fakes.engine_cluster import PretendEngines, pretend_engines

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.text.json_object import Json


@pytest.fixture(autouse=True)
def settled_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (exactness, one_node, preemption, waiting):
        monkeypatch.setattr(module, "SETTLED_SECONDS", 0.0)
    monkeypatch.setattr(waiting, "ONE_CARD_UNITS", UNFIT_UNITS)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[PretendEngines]:
    async with pretend_engines(tmp_path) as cluster:
        yield cluster
        for collection in (paths.PODS, paths.NODES, paths.SHARE_NODES):
            assert await items(cluster, collection) == [], "what was added is taken away"


async def items(cluster: PretendEngines, collection: str) -> list[Json]:
    found: list[Json] = (await cluster.client.get(collection))["items"]
    return found


def by_name(figures: Sequence[Figure]) -> dict[str, Figure]:
    return {figure.what: figure for figure in figures}


@pytest.mark.parametrize("engine", [PLUGIN, CLAIMS])
async def test_an_engine_takes_turns_with_plain_pods(
    engine: Engine, cluster: PretendEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "read", lambda: {1: processor.ProgramUse("etcd", 1.0)})
    cluster.base.size = replace(cluster.size, repeats=3)
    runs = list[str]()
    created = schedule_throughput.measure

    async def noted(client: KubeClient, **options: Any) -> Throughput:
        runs.append("shared" if options.get("scheduler") else "plain")
        return await created(client, **options)

    monkeypatch.setattr(schedule_throughput, "measure", noted)
    figures = by_name(await throughput.shared(cluster, engine=engine))
    assert cluster.started == [engine.name]
    warm_up = ["shared", "plain"]
    assert runs == [*warm_up, "plain", "shared", "shared", "plain", "plain", "shared"]
    assert (figures["shared over plain"].target is None) is (engine is CLAIMS)


async def test_a_run_in_which_nothing_is_bound_does_not_end_the_row() -> None:
    async def run() -> Throughput:
        raise TimeoutError("none of 4 pods was bound")

    assert (await throughput.measured(run)).rate == 0


async def test_pods_that_wait_are_refused_before_others_come(cluster: PretendEngines) -> None:
    figures = by_name(await waiting.beside(cluster, count=4))
    assert figures["shared pods beside 4 that fit no card"].measured > 0
    assert figures["plain pods beside 4 plain ones that lack CPU"].measured > 0
    assert not any(name.startswith("unfit") for name in cluster.pretended.scheduler.bound)


async def test_before_pods_come_the_scheduler_of_those_that_wait_is_at_rest(
    cluster: PretendEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster's own one still tries its pods when the engine's has none any more."""
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.0)
    busy, ran = [3, 2], list[int]()

    async def still_busy() -> str:
        return f'scheduler_pending_pods{{queue="active"}} {busy.pop() if busy else 0}'

    async def idle(_: RunningEngine) -> str:
        return ""

    async def plain(_: PretendEngines) -> Throughput:
        ran.append(len(busy))
        return Throughput(1, 1, 1.0, Percentiles(1, 1, 1))

    monkeypatch.setattr(RunningEngine, "scheduler_metrics", idle)
    monkeypatch.setattr(cluster.base, "scheduler_metrics", still_busy)
    monkeypatch.setattr(PretendEngines, "plain", plain)
    await waiting.beside(cluster, count=4)
    assert ran == [0]


async def test_who_waits_takes_turns_as_well(
    cluster: PretendEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.base.size = replace(cluster.size, waiting_rounds=2)
    waited = list[str]()

    @asynccontextmanager
    async def refused(_: KubeClient, __: int, unfit: Unfit) -> AsyncIterator[None]:
        pod = unfit("a")
        limits = pod["spec"]["containers"][0]["resources"]["limits"]
        waited.append("cards" if GPUSHARE.memory_resource in limits else pod["spec"]["schedulerName"])
        yield

    monkeypatch.setattr(waiting, "refused", refused)
    await waiting.beside(cluster, count=4)
    kinds = ["cards", "gpushare-scheduler", "default-scheduler"]
    assert waited == [*kinds, *reversed(kinds)]


async def test_pods_that_wait_are_bound_when_cards_become_free(
    cluster: PretendEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This scheduler binds nobody who waits."""
    monkeypatch.setattr(waiting, "STEP_SECONDS", 0.0)
    seen = list[list[Json]]()

    async def look(*_: object) -> int:
        seen.append(await items(cluster, paths.SHARE_NODES))
        return 0

    monkeypatch.setattr(waiting, "_bound_in_time", look)
    figures = by_name(await waiting.attempts(cluster, engine=PLUGIN))
    tried = "attempts of 4 waiting pods while 24 others are bound and deleted"
    assert figures[tried].reached
    for when in ("once", "before"):
        assert figures[f"bound, 4 cards reported free: of 4 {when} pods are gone"].measured == 0
        assert figures[f"attempts in vain, 4 cards reported free: of 4 {when} pods are gone"].reached
    assert [sorted(map(held_cards, nodes)) for nodes in seen] == [[7] * 4 + [8] * 4, [7] * 8]


def held_cards(share_node: Json) -> int:
    return sum(bool(card["pods"]) for card in share_node["status"]["cards"])


async def test_a_waiting_pod_that_is_bound_is_counted(cluster: PretendEngines) -> None:
    body = {"metadata": {"name": "a", "labels": {LABEL: "yes"}}, "spec": {"nodeName": "n"}}
    await cluster.client.create(paths.pods(NAMESPACE), body)
    assert await waiting._bound_pods(cluster.client) == 1
    await cluster.client.delete(paths.pod_path(NAMESPACE, "a"))


@pytest.mark.parametrize(
    ("places", "right"), [pytest.param((3,), 2, id="the right one"), pytest.param((1, 2), 0, id="others")]
)
async def test_who_went_for_a_preemptor_is_seen_and_reported(
    cluster: PretendEngines, places: tuple[int, ...], right: int
) -> None:
    def evicting(pod: Json) -> list[str]:
        name, number = pod["metadata"]["name"], pod["metadata"]["name"].rpartition("-")[2]
        is_shared = pod["spec"]["schedulerName"] == PLUGIN.scheduler
        gone = places if is_shared else (preemption.PLAIN.victim,)
        return [f"held-{int(number):05d}-{place}" for place in gone] if name.startswith("preemptor") else []

    cluster.pretended.scheduler.evicting = evicting
    figures = by_name(await preemption.preemption(cluster, engine=PLUGIN))
    assert figures["victims of 2 preemptions of a card"].measured == 2 * len(places)
    chosen = figures["of 2 preemptions with the fewest and least important victims"]
    assert (chosen.measured, chosen.reached) == (right, right == 2)
    assert len(await items(cluster, preemption.PRIORITY_CLASSES)) == len(preemption.PRIORITIES)
    assert figures["the row's own report that the card is free"].measured > 0
    assert figures["the report to bound"].measured > 0
    assert figures["shared over plain, but for the report"].measured < figures[
        "shared over plain, with the report"
    ].measured  # fmt: skip


async def test_rows_of_the_product_are_measured_with_an_engine(cluster: PretendEngines) -> None:
    storms = by_name(await exactness.on_engine(cluster, engine=PLUGIN, measured=storm.storm))
    assert storms["bound of 20 pods created at once"].reached
    found = await exactness.on_engine(cluster, engine=EXTENDER, measured=one_node.attempts)
    assert found[0].measured == one_node.PODS
    assert found[0].target is None
    assert cluster.started == ["Plugin", "Extender"]


async def test_halves_that_share_no_cards_are_no_exact_burst(
    cluster: PretendEngines, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This scheduler puts the first ones on cards of their own."""
    monkeypatch.setattr(exactness, "RELEASE_SECONDS", 0.0)
    bound, over, in_vain = await exactness.bursts(cluster, engine=PLUGIN)
    assert (bound.measured, bound.reached) == (0, False)
    assert (over.measured, in_vain.measured) == (0, 0)


async def test_ordinary_pods_are_compared_beside_the_engine_and_in_it(cluster: PretendEngines) -> None:
    cluster.base.size = replace(cluster.size, repeats=2)
    figures = by_name(await resources.ordinary(cluster))
    without = ["no admission policies", "kube-scheduler without the plugin"]
    with_us = ["Plugin", "kube-scheduler with the plugin"]
    assert cluster.started == [*without, *with_us, *with_us, *without]
    assert [figure.what for figure in figures.values() if figure.target] == [
        "beside ours (Dedicated) over without",
        "with the plugin in it (KubeScheduler) over without",
    ]


@pytest.mark.parametrize(
    ("engine", "nodes"), [pytest.param(PLUGIN, ["n"], id="Plugin"), pytest.param(EXTENDER, [], id="another")]
)
async def test_of_the_plugin_what_kube_scheduler_counts_is_read(
    engine: Engine, nodes: list[str], cluster: PretendEngines
) -> None:
    running = RunningEngine(cluster.base, engine, process=showing([{"name": "n", "cards": []}]))
    assert [*await running.ledger()] == nodes


async def test_a_scheduler_that_does_not_know_what_is_free_has_no_ledger(cluster: PretendEngines) -> None:
    with pytest.raises(NotMeasuredError, match="does not know yet"):
        await RunningEngine(cluster.base, PLUGIN, process=showing(None)).ledger()


def showing(nodes: list[Json] | None) -> Any:
    """A kube-scheduler with the plugin."""

    async def read(path: str) -> bytes:
        assert path == "/configz"
        return json.dumps({"gpushare": {"nodes": nodes}}).encode()

    return SimpleNamespace(read=read)
