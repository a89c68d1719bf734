"""Every row, in the order in which it is measured: without a cluster first, then cluster by cluster."""

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from bench.cluster import bench_cluster
from bench.cluster.bench_cluster import BenchCluster, Setting
from bench.cluster.cluster_objects import Layout
from bench.cluster.installation import UNLIMITED
from bench.engines import engine_cluster
from bench.engines.engine import CLAIMS, EXTENDER, PLUGIN, Engine
from bench.engines.engine_cluster import EngineCluster
from bench.measuring.runner import Row, Stage
from bench.measuring.size import FULL, Size
from bench.rows import candidates, churn, command_line, one_node, pending, pods, policy, storm, throughput
from bench.rows.engines import exactness, preemption, resources, waiting
from bench.rows.engines.throughput import shared as shared_by_engine
from bench.rows.policy import PolicyCluster
from bench.rows.programs import (
    extender_books,
    hook,
    plugin,
    program_starts,
    scale,
    web_page,
    workplace,
)
from bench.rows.programs.scale_extender import sampled

HOUR = 3600.0
CANDIDATE_NODES = 1000
"""Enough that kube-scheduler has more to score than the largest number of candidates."""


def stages(size: Size) -> list[Stage[Any]]:
    """Returns everything that is measured at ``size``."""
    return [_programs(size), *scale.stages(size), *_throughput(size), *_engines(size), _policy(size)]


def names() -> list[str]:
    """Returns the names of all rows, each once, in order."""
    return list(dict.fromkeys(row.name for stage in stages(FULL) for row in stage.rows))


def _programs(size: Size) -> Stage[workplace.Workplace]:
    starts = (Row("start", title, measure) for title, measure in program_starts.ROWS)
    rows = (
        *starts,
        Row("memory", "Extender with a whole cluster in its books", extender_books.memory, 300),
        Row("filter", "Filter with mutual TLS, one connection", extender_books.filters, 300),
        Row("allocate", "Admission of one pod after the other", plugin.admissions, 900),
        Row("plugin", "What a plugin takes of its node", plugin.footprint, 900),
        Row("hook", "What isolation costs a program", hook.costs, 120),
        Row("web", "What the page of kubectl gpushare web takes", web_page.costs, 600),
    )
    return Stage("without a cluster", partial(workplace.entered, size), rows)


def _throughput(size: Size) -> Iterator[Stage[BenchCluster]]:
    for nodes in size.nodes:
        layout = Layout(nodes=nodes)
        unlimited = Setting(layout=layout, scheduler_flags=UNLIMITED)
        yield _cluster(unlimited, "its client unlimited", size, _rows(size, nodes))
        if nodes in size.limited:
            limited = Setting(layout=layout)
            yield _cluster(limited, "its client with its default of 50/s", size, [_shared(nodes)])
        if nodes in size.dedicated:
            dedicated = Setting(layout=layout, backend="Dedicated", scheduler_flags=UNLIMITED)
            yield _cluster(dedicated, "the stock client unlimited", size, _dedicated_rows(size, nodes))
            for backend in ("Dedicated", "KubeScheduler"):
                plugin = Setting(
                    layout=layout, backend=backend, engine=PLUGIN.name, scheduler_flags=UNLIMITED
                )
                yield _cluster(plugin, "the stock client unlimited", size, [_ordinary(nodes)])


def _cluster(
    setting: Setting, client: str, size: Size, rows: Iterable[Row[BenchCluster]]
) -> Stage[BenchCluster]:
    """``client``: how kube-scheduler's client is limited."""
    nodes = setting.layout.nodes
    engine = f" with engine {setting.engine}" if setting.engine else ""
    name = f"{nodes:,} nodes, backend {setting.backend}{engine}, {client}"
    return Stage(name, partial(bench_cluster.entered, setting, size), tuple(rows), 300.0 + nodes)


def _rows(size: Size, nodes: int) -> Iterator[Row[BenchCluster]]:
    """Of a cluster with backend KubeScheduler. What the size of the cluster does not change is measured on
    the smallest one."""
    yield _ordinary(nodes)
    if nodes == min(size.nodes):
        yield Row("create", "Create to Running, same node and run", pods.create_to_running, 900)
        yield Row("writes", "Writes to the API server for a shared pod", pods.writes, 600)
    yield _shared(nodes)
    yield Row("algorithm", "Scheduling algorithm", throughput.algorithm, _seconds(nodes))
    yield Row("cpu", "Processor of the extender", throughput.extender_cpu, _seconds(nodes))
    yield Row("storm", "Storm of binds", storm.storm, _seconds(nodes))
    yield _pending()
    if size.candidates and nodes == min(CANDIDATE_NODES, max(size.nodes)):
        yield Row("candidates", "How many nodes are offered", candidates.offers, HOUR / 2)
    if nodes == max(size.nodes):
        yield _one_node()
        yield Row("cli", "What commands take of people's time and memory", command_line.commands, HOUR / 4)
    if size.churn_seconds and nodes == size.churn_nodes:
        yield Row("churn", "Churn", churn.churn, size.churn_seconds + HOUR / 2)


def _dedicated_rows(size: Size, nodes: int) -> Iterator[Row[BenchCluster]]:
    """What another scheduler than the cluster's own makes different: that looks at all nodes."""
    yield _ordinary(nodes)
    if sampled(nodes) < nodes:
        yield _pending()
        if nodes == max(size.nodes):
            yield _one_node()


def _engines(size: Size) -> Iterator[Stage[EngineCluster]]:
    """Clusters with one engine after the other. The first one waits for the scheduler to be compiled."""
    for nodes in size.nodes:
        entered = partial(engine_cluster.entered, Layout(nodes=nodes), size)
        yield Stage(
            f"{nodes:,} nodes, engines beside plain pods",
            entered,
            tuple(_engine_rows(size, nodes)),
            900.0 + nodes,
        )


def _engine_rows(size: Size, nodes: int) -> Iterator[Row[EngineCluster]]:
    """Rows of engine Plugin have the plain names; those of others say whose they are."""
    for engine, suffix in (PLUGIN, ""), (EXTENDER, "-extender"), (CLAIMS, "-claims"):
        measure = partial(shared_by_engine, engine=engine)
        title = f"Shared pods beside plain ones, {_named(engine)}"
        yield Row(f"engine-shared{suffix}", title, measure, HOUR)
    for count in size.waiting:
        measure = partial(waiting.beside, count=count)
        yield Row(f"engine-waiting-{count}", f"Beside {count:,} pods that cannot be bound", measure, 2 * HOUR)
    yield from _rows_of_engine(PLUGIN, size, nodes)
    yield from _rows_of_engine(EXTENDER, size, nodes, suffix="-extender")
    yield Row("engine-ordinary", "Ordinary pods, with and without the plugin", resources.ordinary, HOUR)
    if nodes == max(size.nodes):
        yield Row("engine-memory", "Memory of kube-scheduler with the plugin", resources.memory, HOUR)
    if size.churn_seconds and nodes == size.churn_nodes:
        measure = partial(exactness.on_engine, engine=PLUGIN, measured=churn.churn)
        yield Row("engine-churn", "Churn, engine Plugin", measure, size.churn_seconds + HOUR / 2)


def _rows_of_engine(
    engine: Engine, size: Size, nodes: int, *, suffix: str = ""
) -> Iterator[Row[EngineCluster]]:
    """What needs no turns: what is exact is so whatever the machine does meanwhile."""
    named, on_engine = _named(engine), partial(exactness.on_engine, engine=engine)
    storms, one = partial(on_engine, measured=storm.storm), partial(on_engine, measured=one_node.attempts)
    attempts = partial(waiting.attempts, engine=engine)
    preempt = partial(preemption.preemption, engine=engine)
    bursts = partial(exactness.bursts, engine=engine)
    yield Row(f"engine-attempts{suffix}", f"Attempts of pods that wait, {named}", attempts, HOUR)
    yield Row(f"engine-preemption{suffix}", f"A card is freed, {named}", preempt, HOUR / 2)
    yield Row(f"engine-storm{suffix}", f"Storm of binds, {named}", storms, _seconds(nodes))
    yield Row(f"engine-bursts{suffix}", f"Halves of cards, {named}", bursts, HOUR / 4)
    if nodes == max(size.nodes):
        yield Row(f"engine-one-node{suffix}", f"One node fits, {named}", one, HOUR / 2)


def _named(engine: Engine) -> str:
    return engine.name if engine is CLAIMS else f"engine {engine.name}"


def _pending() -> Row[BenchCluster]:
    return Row("pending", "Beside pods that do not fit", pending.pending, HOUR)


def _one_node() -> Row[BenchCluster]:
    return Row("one-node", "One node fits", one_node.attempts, HOUR / 2)


def _ordinary(nodes: int) -> Row[BenchCluster]:
    return Row("ordinary", "Ordinary pods, with and without us", throughput.ordinary, _seconds(nodes))


def _shared(nodes: int) -> Row[BenchCluster]:
    return Row("shared", "Shared pods beside plain ones", throughput.shared, _seconds(nodes))


def _seconds(nodes: int) -> float:
    """For installing, for the GPUShareNodes, and for some runs."""
    return 600.0 + nodes / 5


def _policy(size: Size) -> Stage[PolicyCluster]:
    rows = (
        Row("policy", "One policy over many nodes", policy.application, HOUR),
        Row("changes", "Plugins that report all the time", policy.changes, 600),
        Row("no-op", "A reconcile that changes nothing", policy.no_op, 600),
    )
    return Stage(f"{size.policy_nodes:,} bare nodes, backend External", partial(_policy_cluster, size), rows)


@asynccontextmanager
async def _policy_cluster(size: Size) -> AsyncIterator[PolicyCluster]:
    setting = Setting(layout=Layout(nodes=0), backend="External")
    async with bench_cluster.entered(setting, size) as cluster:
        yield PolicyCluster(cluster)
