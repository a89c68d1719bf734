"""What the operator costs in a large cluster: ``python -m bench.operator_changes``. Needs no cluster.

The operator's own cache, watches, queue and reconciler run on objects in memory, from the bytes of every
answer on; only HTTP and the API server are not there. Prints Markdown tables.
"""

import argparse
import asyncio
import cProfile
import json
import logging
import math
import os
import pstats
import random
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from bench.cluster.cluster_objects import Layout, node_name
from bench.peers.operator_cluster import NAMESPACE, POLICY, MemoryClient, MemoryCluster

from gpushare_core.kube import paths
from gpushare_core.process.clock import utc_now
from gpushare_core.text.json_object import Json
from gpushare_operator import app
from gpushare_operator.cluster.cache import Cache
from gpushare_operator.cluster.watches import Watches
from gpushare_operator.desired.names import Installation
from gpushare_operator.reconcile import FIGURES_SECONDS, PolicyReconciler
from gpushare_operator.work_queue import WorkQueue

LOOK_SECONDS = 0.05
CALM_LOOKS = 60
"""Without a write: nothing is due any more."""
PATIENCE = 1800.0


@dataclass(frozen=True, slots=True)
class Cost:
    """What one phase took of the operator's process, without what the cluster in memory took."""

    seconds: float
    cpu: float
    writes: dict[str, int]
    resident: int
    """MiB, at its end."""
    peak: int
    """MiB, until then."""
    first: float
    """Seconds until something was written; 0 where nothing was."""

    @property
    def written(self) -> int:
        return sum(self.writes.values())


@dataclass(slots=True)
class Operator:
    """The parts of an operator, wired as ``App`` does it."""

    cluster: MemoryCluster
    queue: WorkQueue = field(init=False)
    reconciler: PolicyReconciler = field(init=False)
    watches: Watches = field(init=False)

    def __post_init__(self) -> None:
        client, cache = MemoryClient(self.cluster), Cache()
        self.queue = WorkQueue(clock=time.monotonic)
        self.reconciler = PolicyReconciler(
            api=client,
            cache=cache,
            installation=Installation(namespace=NAMESPACE, image="gpushare:bench"),
            now=utc_now,
            enqueue=self.queue.add,
            enqueue_later=partial(self.queue.add, delay=FIGURES_SECONDS),
        )
        self.watches = Watches(
            client,
            cache,
            NAMESPACE,
            changed=self.reconciler.enqueue_all,
            figures_changed=self.reconciler.enqueue_figures,
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.watches.run())
            await self.watches.until_read()
            self.reconciler.enqueue_all()
            group.create_task(self.queue.run(self.reconciler.work))


@dataclass(slots=True)
class Measurement:
    """One operator at work, phase by phase."""

    cluster: MemoryCluster
    phases: dict[str, Cost] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        writes, apart = dict(self.cluster.writes), self.cluster.seconds
        self.cluster.first_write = None
        begun, cpu = time.monotonic(), time.process_time()
        yield
        spent = time.process_time() - cpu - (self.cluster.seconds - apart)
        now = self.cluster.writes
        new = {what: count - writes.get(what, 0) for what, count in now.items()}
        done = {what: count for what, count in new.items() if count}
        first = (self.cluster.first_write or begun) - begun
        self.phases[name] = Cost(
            time.monotonic() - begun, spent, done, memory("VmRSS"), memory("VmHWM"), first
        )

    async def until_calm(self) -> None:
        """Returns when nothing has been written for a while. Looks are counted, not seconds: one that comes
        late, after an operator that was busy, says nothing of what it does next."""
        deadline, quiet, last = time.monotonic() + PATIENCE, 0, -1
        while quiet < CALM_LOOKS:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the operator still writes after {PATIENCE:.0f} s: {self.cluster.writes}")
            written = sum(self.cluster.writes.values())
            quiet, last = (quiet + 1 if written == last else 0), written
            await asyncio.sleep(LOOK_SECONDS)


def main() -> int:
    options = parse()
    if options.cluster_alone:
        print(json.dumps({"resident": cluster_alone(options.nodes)}))
        return 0
    with Path(os.devnull).open("w") as nowhere:
        logging.basicConfig(level=logging.INFO, stream=nowhere)
        measured = asyncio.run(measure(options))
    if options.json:
        print(json.dumps(as_json(measured)))
    else:
        show(measured, options)
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.operator_changes", description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=20.0, help="changes of GPUShareNodes in a second")
    parser.add_argument("--seconds", type=float, default=30.0, help="for which they change")
    parser.add_argument("--json", action="store_true", help="print what programs read")
    parser.add_argument(
        "--cluster-alone", action="store_true", help="print the memory of the cluster without an operator"
    )
    parser.add_argument("--profile", default="", help="print a profile of the phase with this name")
    return parser.parse_args()


async def measure(options: argparse.Namespace) -> Measurement:
    cluster = MemoryCluster(Layout(nodes=options.nodes))
    operator, measured = Operator(cluster), Measurement(cluster)
    running = asyncio.create_task(operator.run())
    try:
        for name, play in PHASES.items():
            with profiled(is_wanted=name == options.profile), measured.phase(name):
                await play(operator, measured, options)
    finally:
        running.cancel()
    return measured


@contextmanager
def profiled(*, is_wanted: bool) -> Iterator[None]:
    if not is_wanted:
        yield
        return
    profile = cProfile.Profile()
    with profile:
        yield
    pstats.Stats(profile).sort_stats("tottime").print_stats(45)


async def start(operator: Operator, measured: Measurement, _: argparse.Namespace) -> None:
    await operator.watches.until_read()
    await measured.until_calm()


async def roll_out(operator: Operator, measured: Measurement, _: argparse.Namespace) -> None:
    operator.cluster.put_policy()
    await measured.until_calm()


async def connect(operator: Operator, measured: Measurement, _: argparse.Namespace) -> None:
    operator.cluster.start_extender()
    await measured.until_calm()
    operator.cluster.finish_jobs()
    await measured.until_calm()


async def answer(operator: Operator, measured: Measurement, options: argparse.Namespace) -> None:
    for index in range(options.nodes):
        operator.cluster.start_plugin(index)
        if index % 20 == 0:
            await asyncio.sleep(0.02)
    await measured.until_calm()


async def change(
    operator: Operator, _: Measurement, options: argparse.Namespace, *, is_decisive: bool = False
) -> None:
    chance, begun = random.Random(1), time.monotonic()  # noqa: S311
    for number in range(math.ceil(options.rate * options.seconds)):
        reason = f"Change{number}" if is_decisive else ""  # in other words alone a condition decides nothing
        node, card, units = chance.randrange(options.nodes), chance.randrange(8), chance.randrange(17)
        operator.cluster.place_pod(node, card, units, reason=reason)
        await asyncio.sleep(begun + (number + 1) / options.rate - time.monotonic())
    await asyncio.sleep(1.5)


async def decide(operator: Operator, measured: Measurement, options: argparse.Namespace) -> None:
    """Changes as ``change``, but of conditions, too: the operator has to look at each of them soon."""
    await change(operator, measured, options, is_decisive=True)


async def ask_again(operator: Operator, _: Measurement, __: argparse.Namespace) -> None:
    for _second in range(5):
        operator.reconciler.enqueue_all()
        await asyncio.sleep(1.0)


async def read_again(operator: Operator, measured: Measurement, _: argparse.Namespace) -> None:
    """As the operator does now and then, although nothing has changed."""
    await operator.reconciler.resync()
    await measured.until_calm()


PHASES: dict[str, Callable[[Operator, Measurement, argparse.Namespace], Awaitable[None]]] = {
    "start": start,
    "roll-out": roll_out,
    "connect": connect,
    "plugins answer": answer,
    "changes": change,
    "changes of conditions": decide,
    "no change": ask_again,
    "read anew": read_again,
}


IMPORTED = app.App
"""What it imports is part of an operator's size."""


def show(measured: Measurement, options: argparse.Namespace) -> None:
    print("| phase | s | CPU s | writes | CPU ms/write | MiB | peak |\n|---|---|---|---|---|---|---|")
    for name, cost in measured.phases.items():
        each = f"{cost.cpu / cost.written * 1000:.2f}" if cost.written else "-"
        sizes = f"{cost.resident} | {cost.peak}"
        print(f"| {name} | {cost.seconds:.1f} | {cost.cpu:.2f} | {cost.writes} | {each} | {sizes} |")
    number = math.ceil(options.rate * options.seconds)
    print("\n| changes | CPU ms each | of a core |\n|---|---|---|")
    for name in ("changes", "changes of conditions"):
        cost = measured.phases[name]
        print(f"| {name} | {cost.cpu / number * 1000:.2f} | {cost.cpu / cost.seconds:.1%} |")
    status = measured.cluster.status_of_policy()
    print(f"\nThe policy says: {status['conditions'][0]['message']}, units {status['units']['summary']}")


def as_json(measured: Measurement) -> Json:
    """Returns the costs of all phases, and the bytes of objects that the cluster has in the end."""
    cluster = measured.cluster
    for card in range(cluster.layout.cards):
        cluster.place_pod(0, card, cluster.layout.units)
    sizes = {
        "Node": cluster.size_of(paths.NODES, node_name(0)),
        "GPUShareNode": cluster.size_of(paths.SHARE_NODES, node_name(0)),
        "GPUSharePolicy": cluster.size_of(paths.POLICIES, POLICY),
    }
    phases = {name: {**asdict(cost), "written": cost.written} for name, cost in measured.phases.items()}
    return {"phases": phases, "sizes": sizes}


def cluster_alone(nodes: int) -> int:
    """Returns the MiB of the same cluster as in the end, where no operator is in the process: what was
    imported is not in it."""
    before, cluster = memory("VmRSS"), MemoryCluster(Layout(nodes=nodes))
    body = {"spec": {"policy": POLICY, "mode": "Memory", "memoryUnit": "1Gi", "devices": {"source": "NVML"}}}
    for index in range(nodes):
        cluster.put_share_node(index, {**body, "metadata": {"name": node_name(index)}})
        cluster.start_plugin(index)
    return memory("VmRSS") - before


def memory(what: str) -> int:
    """Returns MiB, of this process: the cluster in memory is in it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) // 1024


if __name__ == "__main__":
    sys.exit(main())
