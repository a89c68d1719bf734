"""What kube-scheduler proposes to evict on a node, completed so that it frees a card. Pure."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gpushare_core.scheduling.preemption.bound_pods import BoundPod
from gpushare_core.scheduling.preemption.disruption_budgets import Budget, violating
from gpushare_core.scheduling.preemption.victims import Cost, NodeWithout, cost, evictable, find_eviction


@dataclass(frozen=True, slots=True)
class Proposal:
    """What kube-scheduler would evict on a node, or is to evict."""

    victims: tuple[str, ...] = ()
    """UIDs, highest priority first."""
    violations: int = 0
    """How many of them a PodDisruptionBudget protects."""


@dataclass(frozen=True, slots=True)
class NodeToFree:
    """A node as it is, for a pod of priority ``below``."""

    without: NodeWithout
    pods: Sequence[BoundPod]
    gone: frozenset[str]
    """UIDs of those that are ending already."""
    below: int
    budgets: Sequence[Budget] = ()


@dataclass(frozen=True, slots=True)
class Completed:
    """What kube-scheduler is to evict on a node."""

    proposal: Proposal
    node: NodeToFree

    @property
    def victims(self) -> list[BoundPod]:
        """Those to be evicted, and those that are ending already."""
        return _pods({*self.proposal.victims, *self.node.gone}, self.node)

    @property
    def cost(self) -> tuple[int, Cost]:
        """Compared as in kube-scheduler's ``pickOneNodeForPreemption``: budgets first."""
        return self.proposal.violations, cost(_pods(self.proposal.victims, self.node))


def complete(proposal: Proposal, node: NodeToFree, *, may_add: bool) -> Proposal | None:
    """Returns ``proposal``, completed so that the request fits a card afterwards; None when nothing helps.

    Only with ``may_add`` other pods than those proposed are evicted; no budget is violated by these.
    """
    theirs = frozenset(proposal.victims)
    if node.without.fits(node.gone | theirs):
        return _proposal(theirs, node) if theirs else None
    options = [*_options(theirs, node)] if may_add else []
    return _proposal(min(options, key=lambda uids: cost(_pods(uids, node))), node) if options else None


def _options(theirs: frozenset[str], node: NodeToFree) -> Iterator[frozenset[str]]:
    """kube-scheduler may need its victims for a resource of its own, such as CPU. So those without our units
    stay in the proposal. The others are replaced only by pods that free as much of all that is not ours."""
    mine = evictable(node.pods, below=node.below)
    others = [pod for pod in mine if pod.uid not in theirs]
    if more := find_eviction(node.without, others, gone=node.gone | theirs, budgets=node.budgets):
        yield theirs | {pod.uid for pod in more.victims}
    kept = frozenset(uid for uid in theirs if uid not in node.without.ledger.holders)
    instead = find_eviction(node.without, mine, gone=node.gone | kept, budgets=node.budgets)
    if instead and instead.victims and _frees_as_much(instead.victims, _pods(theirs - kept, node)):
        yield kept | {pod.uid for pod in instead.victims}


def _proposal(uids: frozenset[str], node: NodeToFree) -> Proposal:
    known = sorted(_pods(uids, node), key=lambda pod: pod.importance, reverse=True)
    unknown = sorted(uids.difference(pod.uid for pod in known))
    return Proposal((*(pod.uid for pod in known), *unknown), len(violating(known, node.budgets)))


def _pods(uids: Collection[str], node: NodeToFree) -> list[BoundPod]:
    return [pod for pod in node.pods if pod.uid in uids]


def _frees_as_much(some: Iterable[BoundPod], others: Iterable[BoundPod]) -> bool:
    freed = _sums(some)
    return all(freed.get(name, 0) >= needed for name, needed in _sums(others).items())


def _sums(pods: Iterable[BoundPod]) -> dict[str, Fraction]:
    sums: dict[str, Fraction] = {}
    for pod in pods:
        for name, amount in pod.frees.items():
            sums[name] = sums.get(name, Fraction(0)) + amount
    return sums
