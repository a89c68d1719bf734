"""Row ``scale`` of the operator: what grows with the nodes of one policy, and what etcd holds of us."""

from dataclasses import dataclass
from functools import partial

from bench.measuring.figures import Figure
from bench.peers.programs import printed_json
from bench.rows.programs.workplace import Workplace

from gpushare_core.text.json_object import Json

RATE = 20
"""GPUShareNode changes a second."""
NODES_A_SECOND = 20.0
"""So many the slowest machine gets through all phases of."""
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Phase:
    """What one phase took of the operator."""

    seconds: float
    cpu: float
    written: int
    resident: float
    peak: float
    first: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Bytes of one object each, as etcd has it."""

    node: int
    share_node: int
    policy: int


@dataclass(frozen=True, slots=True)
class Measured:
    """``cluster``: MiB that the cluster takes of the process in which the operator is measured."""

    nodes: int
    phases: dict[str, Phase]
    sizes: Sizes
    cluster: float


async def operator(workplace: Workplace, nodes: int) -> list[Figure]:
    """Runs the operator over a cluster in memory, in a process of its own."""
    seconds = workplace.size.scale_seconds
    program = partial(
        printed_json,
        "bench.operator_changes",
        log=workplace.subfolder("operator") / "log",
        deadline=120 + nodes / NODES_A_SECOND,
    )
    found = await program("--nodes", nodes, "--rate", RATE, "--seconds", seconds, "--json")
    alone = await program("--nodes", nodes, "--cluster-alone")
    return figures(measured(nodes, found, alone))


def measured(nodes: int, found: Json, alone: Json) -> Measured:
    names = Phase.__dataclass_fields__
    phases = {phase: Phase(**{name: cost[name] for name in names}) for phase, cost in found["phases"].items()}
    sizes = found["sizes"]
    return Measured(
        nodes,
        phases,
        Sizes(node=sizes["Node"], share_node=sizes["GPUShareNode"], policy=sizes["GPUSharePolicy"]),
        alone["resident"],
    )


def figures(found: Measured) -> list[Figure]:
    """The memory is what the process has without the cluster in it."""
    nodes, phases = found.nodes, found.phases
    start, roll_out, answers = phases["start"], phases["roll-out"], phases["plugins answer"]
    changes, decisive, again = phases["changes"], phases["changes of conditions"], phases["read anew"]
    return [
        Figure(f"start with {nodes:,} nodes: processor", start.cpu, "s"),
        Figure("a policy for all of them: seconds to its first write", roll_out.first, "s"),
        Figure("the same, processor until all is written", roll_out.cpu, "s"),
        Figure("the same, writes", roll_out.written),
        Figure("all plugins answer: processor", answers.cpu, "s"),
        Figure(f"{RATE} changes/s of units: processor", 100 * changes.cpu / changes.seconds, "% of a core"),
        Figure(
            f"{RATE} changes/s of conditions: processor",
            100 * decisive.cpu / decisive.seconds,
            "% of a core",
        ),
        Figure("everything read anew, nothing changed: processor", again.cpu, "s"),
        Figure("operator: resident", decisive.resident - found.cluster, "MiB"),
        Figure("operator: peak when everything is read anew", again.peak - found.cluster, "MiB"),
        *object_figures(found),
    ]


def object_figures(found: Measured) -> list[Figure]:
    """What etcd holds."""
    nodes, sizes = found.nodes, found.sizes
    return [
        Figure("one GPUShareNode of 8 cards and 8 pods", sizes.share_node / 1024, "KiB"),
        Figure(f"{nodes:,} of them", nodes * sizes.share_node / MIB, "MiB"),
        Figure("all Nodes, as the operator reads them", nodes * sizes.node / MIB, "MiB"),
        Figure("the policy with its status", sizes.policy / 1024, "KiB"),
    ]
