"""How much is measured: quick is for every day, full is what docs/benchmarks.md shows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Numbers of objects, of repetitions, and seconds."""

    nodes: tuple[int, ...]
    """Of each cluster in which throughput is measured."""
    pods: int
    """Created at once for a throughput."""
    repeats: int
    """Of plain and shared runs, taking turns."""
    limited: tuple[int, ...]
    """Those of ``nodes`` where shared pods are also measured with the client of kube-scheduler by default:
    that flatters us."""
    dedicated: tuple[int, ...]
    """Those of ``nodes`` where backend Dedicated is measured as well, on a cluster of its own."""
    candidates: tuple[int, ...]
    """How many nodes a shared pod is offered, taking turns; 0: all. Empty: not measured."""
    one_of: int
    """Among so many nodes exactly one fits."""
    storm: int = 500
    """Pods of the bind storm."""
    unfit: int
    """Pending pods that do not fit."""
    unfit_rounds: int
    """How often something happens before these count as refused often: kube-scheduler doubles its patience at
    each refusal. 0: that is not measured."""
    waiting: tuple[int, ...]
    """Pods that wait while engines place others: as many, one after the other."""
    waiting_rounds: int
    """How often they are created anew, for each reason why they wait."""
    preemptions: int
    """Of a card, and as many of a plain pod."""
    bursts: int
    """Of halves for all cards of a node."""
    rounds: int
    """Pods of each kind from create to Running."""
    written: int
    """Pods whose writes are counted."""
    quiet_seconds: float
    """Without any pod: nothing may be written."""
    policy_nodes: int
    """That one policy takes at once."""
    change_seconds: float
    """Of 20 changes of GPUShareNodes a second."""
    book_nodes: int = 5000
    """In the books of an extender without a cluster, with ``book_pods`` each."""
    book_pods: int = 8
    calls: int
    """Of the filter with each number of names."""
    admissions: int = 110
    """Pods of one node, each of them an Allocate."""
    fine_admissions: int
    """Likewise with 256,000 units, where each takes longer."""
    idle_seconds: float
    """Of a plugin with nothing to do."""
    starts: int
    """Of each program; the median counts."""
    scale_nodes: tuple[int, ...]
    """In the books of one extender after the other, and of operators; without a cluster."""
    scale_seconds: float
    """Of each thing that is watched there."""
    churn_nodes: int = 1000
    churn_seconds: float


QUICK = Size(
    nodes=(100,),
    pods=200,
    repeats=2,
    limited=(),
    dedicated=(),
    candidates=(),
    one_of=300,
    unfit=200,
    unfit_rounds=0,
    waiting=(1000,),
    waiting_rounds=1,
    preemptions=6,
    bursts=3,
    rounds=10,
    written=10,
    quiet_seconds=5.0,
    policy_nodes=200,
    change_seconds=5.0,
    calls=300,
    fine_admissions=10,
    idle_seconds=5.0,
    starts=2,
    scale_nodes=(),
    scale_seconds=5.0,
    churn_seconds=0.0,
)
"""Without churn, which tells nothing in seconds, without scale and candidates, which do not in small, and
with one backend and one client of kube-scheduler: another cluster takes a minute and more. Pods that do not
fit are measured when they were just refused: to refuse them often takes minutes. Without the rows of engines
it takes well under 5 minutes."""

FULL = Size(
    nodes=(100, 1000, 5000),
    pods=500,
    repeats=5,
    limited=(100,),
    dedicated=(100, 1000, 5000),
    candidates=(0, 1, 4, 16, 64, 256),
    one_of=5000,
    unfit=5000,
    unfit_rounds=6,
    waiting=(1000, 5000),
    waiting_rounds=2,
    preemptions=20,
    bursts=10,
    rounds=100,
    written=50,
    quiet_seconds=60.0,
    policy_nodes=5000,
    change_seconds=60.0,
    calls=2000,
    fine_admissions=110,
    idle_seconds=60.0,
    starts=5,
    scale_nodes=(5000, 15000, 50000),
    scale_seconds=20.0,
    churn_seconds=3600.0,
)

SIZES = MappingProxyType({"quick": QUICK, "full": FULL})


def with_nodes(size: Size, nodes: Sequence[int]) -> Size:
    """Returns ``size`` with clusters of so many nodes instead of its own; none: its own."""
    if not nodes:
        return size
    return replace(
        size,
        nodes=tuple(nodes),
        limited=tuple(number for number in size.limited if number in nodes),
        dedicated=tuple(number for number in size.dedicated if number in nodes),
        one_of=max(nodes),
        churn_nodes=size.churn_nodes if size.churn_nodes in nodes else max(nodes),
    )
