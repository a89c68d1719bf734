"""All figures of docs/benchmarks.md: ``python -m bench`` (``make bench``). Prints Markdown tables."""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import footprint, latency, schedule_throughput
from bench.cluster_objects import Layout, node_name
from bench.extender_fill import fill
from bench.installation import CONFIG, WORKER, install, install_crds, remove_nodes, stop_operator
from bench.many import Spread
from bench.schedule_throughput import Throughput
from bench.table import markdown

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_localcluster.cluster import LocalCluster

REPEATS = 3


def main() -> int:
    options = parse()
    with tempfile.TemporaryDirectory() as folder, LocalCluster(Path(folder)) as cluster:
        cluster.start(CONFIG)
        cluster.wait_ready()
        run(cluster, options)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=30, help="pods of each kind for the latency")
    parser.add_argument("--nodes", type=int, default=100, help="nodes for the throughput")
    parser.add_argument("--pods", type=int, default=500, help="pods for the throughput")
    return parser.parse_args()


def run(cluster: LocalCluster, options: argparse.Namespace) -> None:
    """Without the product first, then with it, on one cluster."""
    layout = Layout(nodes=options.nodes)
    rates: list[tuple[str, Throughput]] = []
    install_crds(cluster)
    cluster.kubectl("cordon", WORKER)
    rates.append(("stock scheduler, no extender", bind_many(cluster, layout, options.pods)))
    remove_nodes(cluster, [node_name(index) for index in range(layout.nodes)])
    cluster.kubectl("uncordon", WORKER)
    install(cluster)
    show_latency(asyncio.run(create_to_running(cluster, options.rounds)))
    show_footprint(footprint.measure(cluster))
    stop_operator(cluster)
    cluster.kubectl("cordon", WORKER)
    rates.append(("with gpushare's extender", bind_many(cluster, layout, options.pods)))
    show_throughput(layout, rates)
    show_footprint(footprint.measure(cluster))


def bind_many(cluster: LocalCluster, layout: Layout, pods: int) -> Throughput:
    """Fill the cluster, then have ``pods`` of 4 units bound at once; the median of ``REPEATS`` times."""

    async def measure() -> list[Throughput]:
        async with KubeClient(from_kubeconfig(cluster.kubeconfig), timeout=60) as client:
            await fill(client, layout)
            return [await schedule_throughput.measure(client, pods=pods, units=4) for _ in range(REPEATS)]

    runs = asyncio.run(measure())
    return sorted(runs, key=lambda run: run.rate)[REPEATS // 2]


async def create_to_running(cluster: LocalCluster, rounds: int) -> dict[str, list[float]]:
    async with KubeClient(from_kubeconfig(cluster.kubeconfig)) as client:
        return await latency.measure(client, rounds=rounds)


def show_latency(times: dict[str, list[float]]) -> None:
    rows = [[kind, len(each), *milliseconds(Spread.of(each))] for kind, each in times.items()]
    show("Create to Running", markdown(["pod", "pods", "p50 ms", "p99 ms", "max ms"], rows))


def milliseconds(spread: Spread) -> list[str]:
    return [f"{value:.0f}" for value in (spread.p50, spread.p99, spread.most)]


def show_footprint(found: Sequence[footprint.Footprint]) -> None:
    rows = [[each.container, each.node, f"{each.resident:.1f}", f"{each.peak:.1f}"] for each in found]
    show("Resident size", markdown(["process", "node", "MiB", "peak MiB"], rows))


def show_throughput(layout: Layout, rates: Sequence[tuple[str, Throughput]]) -> None:
    rows = [
        [what, told.bound, f"{told.rate:.0f}", f"{told.wait.p50 * 1e3:.0f}", f"{told.wait.p99 * 1e3:.0f}"]
        for what, told in rates
    ]
    header = ["scheduler", "pods", "pods/s", "create to bound p50 ms", "p99 ms"]
    show(f"Throughput at {layout.nodes} nodes", markdown(header, rows))


def show(title: str, table: str) -> None:
    print(f"\n### {title}\n\n{table}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
