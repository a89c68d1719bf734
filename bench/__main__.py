"""All figures of docs/benchmarks.md: ``python -m bench`` (``make bench``). Prints Markdown tables."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from bench import footprint, schedule_throughput, start_latency
from bench.cluster_objects import Layout, node_name
from bench.fill_cluster import fill
from bench.installation import CONFIG, WORKER, install, install_crds, remove_nodes, stop_operator
from bench.report import show_footprint, show_latency, show_throughput
from bench.schedule_throughput import Throughput

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
    """Measures without the product first, then with it, on one cluster."""
    layout = Layout(nodes=options.nodes)
    install_crds(cluster)
    cluster.kubectl("cordon", WORKER)
    stock = bind_many(cluster, layout, options.pods)
    remove_nodes(cluster, [node_name(index) for index in range(layout.nodes)])
    cluster.kubectl("uncordon", WORKER)
    install(cluster)
    show_latency(asyncio.run(create_to_running(cluster, options.rounds)))
    show_footprint(footprint.measure(cluster))
    stop_operator(cluster)
    cluster.kubectl("cordon", WORKER)
    extended = bind_many(cluster, layout, options.pods)
    show_throughput(
        layout.nodes, {"stock scheduler, no extender": stock, "with gpushare's extender": extended}
    )
    show_footprint(footprint.measure(cluster))


def bind_many(cluster: LocalCluster, layout: Layout, pods: int) -> Throughput:
    """Fills the cluster and has ``pods`` of 4 units bound at once. Returns the median of ``REPEATS``."""

    async def measure() -> list[Throughput]:
        async with KubeClient(from_kubeconfig(cluster.kubeconfig), timeout=60) as client:
            await fill(client, layout)
            return [await schedule_throughput.measure(client, pods=pods, units=4) for _ in range(REPEATS)]

    runs = asyncio.run(measure())
    return sorted(runs, key=lambda run: run.rate)[REPEATS // 2]


async def create_to_running(cluster: LocalCluster, rounds: int) -> dict[str, list[float]]:
    async with KubeClient(from_kubeconfig(cluster.kubeconfig)) as client:
        return await start_latency.measure(client, rounds=rounds)


if __name__ == "__main__":
    sys.exit(main())
