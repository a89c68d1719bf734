"""Which pods to evict so that a request fits a node: the least important ones, and of those the fewest. Pure.

What counts is whether the request fits cards afterwards, as the engine that binds says. First no pod goes
that is more important than need be, then as few as possible, then those that began last.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from gpushare_core.placement.requests import Request, ResourceRequest
from gpushare_extender.decide.preemption.bound_pods import BoundPod
from gpushare_extender.decide.preemption.disruption_budgets import Budget, violating
from gpushare_extender.ledger.node_ledger import NodeLedger

Cost = tuple[float, int, int, float]
"""Of evicting some pods: the highest priority, how many, the sum of priorities, and when the first began."""

Fits = Callable[[frozenset[str]], bool]
"""Whether a request fits once the pods with these UIDs are gone."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """What makes a request fit a node."""

    node: str
    victims: tuple[BoundPod, ...]
    """Least important first; none where pods that end already will do."""
    ending: tuple[BoundPod, ...] = ()
    """Pods that end already, on which it counts."""

    @property
    def pods(self) -> tuple[BoundPod, ...]:
        """All that have to go first."""
        return self.victims + self.ending

    @property
    def cost(self) -> Cost:
        return cost(self.victims)


@dataclass(frozen=True, slots=True)
class NodeWithout:
    """A node of the ledger as it would be without some pods.

    ``passed``: UIDs of pods for which units are held that do not count for this request.
    """

    name: str
    ledger: NodeLedger
    request: Request
    passed: Collection[str] = ()

    def fits(self, gone: frozenset[str]) -> bool:
        return bool(self.ledger.choose_together(self.request, gone={*gone, *self.passed}))

    def fits_card(self, card: str, asked: ResourceRequest, gone: frozenset[str]) -> bool:
        """Returns whether ``card`` (UUID) would be one of those that ``asked`` could get."""
        return self.ledger.card_fits(card, asked, gone={*gone, *self.passed})

    def uuids(self) -> list[str]:
        return [card.uuid for card in self.ledger.cards()]

    def units(self, card: str) -> dict[str, int]:
        """Returns the units of ``card`` (UUID) by the UIDs of the pods that have them."""
        return {share.uid: share.units for share in self.ledger.shares(card)}


def cost(victims: Iterable[BoundPod]) -> Cost:
    """Returns what evicting ``victims`` costs, to be compared; nothing costs least."""
    pods = list(victims)
    priorities = [pod.priority for pod in pods]
    earliest = min((pod.started for pod in pods), default=0.0)
    return (max(priorities, default=float("-inf")), len(priorities), sum(priorities), -earliest)


def evictable(pods: Iterable[BoundPod], *, below: int) -> list[BoundPod]:
    """Returns those of ``pods`` that a pod of priority ``below`` may evict with some use."""
    return [pod for pod in pods if pod.priority < below and not (pod.is_terminating or pod.comes_back)]


def find_eviction(
    node: NodeWithout, pods: Sequence[BoundPod], *, gone: frozenset[str], budgets: Sequence[Budget] = ()
) -> Eviction | None:
    """Returns what to evict of ``pods`` besides those that are ``gone``, or None when that does not help.

    No budget is violated by it: where the cheapest victims would, others are looked for.
    """
    left = list(pods)
    while (victims := _victims(node, left, gone)) is not None:
        if not (protected := {pod.uid for pod in violating(victims, budgets)}):
            return Eviction(node.name, tuple(victims))
        left = [pod for pod in left if pod.uid not in protected]
    return None


def _victims(node: NodeWithout, pods: Sequence[BoundPod], gone: frozenset[str]) -> list[BoundPod] | None:
    """Frees one card after the other, the cheapest first, until the request fits."""
    chosen: list[BoundPod] = []
    while not node.fits(away := gone | _uids(chosen)):
        options = [
            option
            for asked in node.request.resources
            for card in node.uuids()
            if (option := _to_free(card, asked, node, pods, away))
        ]
        if not options:
            return None
        chosen += min(options, key=cost)
    needed = _without_needless(chosen, lambda uids: node.fits(gone | uids))
    return sorted(needed, key=_importance)


def _to_free(
    card: str, asked: ResourceRequest, node: NodeWithout, pods: Sequence[BoundPod], gone: frozenset[str]
) -> list[BoundPod] | None:
    """Returns None where nothing helps, or nothing has to be done."""
    if node.fits_card(card, asked, gone):
        return None
    units = node.units(card)
    there = [pod for pod in pods if pod.uid in units and pod.uid not in gone]
    return fewest(there, units, lambda uids: node.fits_card(card, asked, gone | uids))


def fewest(pods: Iterable[BoundPod], units: dict[str, int], fits: Fits) -> list[BoundPod] | None:
    """Returns the least important of ``pods`` after which it ``fits``, as few as possible, or None.

    ``units``: what each of them has, by UID.
    """
    allowed = _up_to_least_priority(pods, fits)
    if allowed is None:
        return None
    by_size = sorted(allowed, key=lambda pod: (-units[pod.uid], pod.importance))
    count = next(n for n in range(1, len(by_size) + 1) if fits(_uids(by_size[:n])))
    chosen = _without_needless(by_size[:count], fits)
    return _less_important(chosen, sorted(allowed, key=_importance), fits)


def _up_to_least_priority(pods: Iterable[BoundPod], fits: Fits) -> list[BoundPod] | None:
    """Returns all pods up to the lowest priority with which they are enough."""
    allowed: list[BoundPod] = []
    for _, group in groupby(sorted(pods, key=_importance), key=lambda pod: pod.priority):
        allowed += group
        if fits(_uids(allowed)):
            return allowed
    return None


def _without_needless(pods: Iterable[BoundPod], fits: Fits) -> list[BoundPod]:
    """Spares the most important ones first."""
    kept = sorted(pods, key=_importance, reverse=True)
    for pod in list(kept):
        others = [each for each in kept if each is not pod]
        if fits(_uids(others)):
            kept = others
    return kept


def _less_important(chosen: list[BoundPod], allowed: Sequence[BoundPod], fits: Fits) -> list[BoundPod]:
    """Returns as many pods, each replaced by the least important one that will do in its place."""
    kept = sorted(chosen, key=_importance, reverse=True)
    for place, pod in enumerate(kept):
        others = _uids(kept) - {pod.uid}
        kept[place] = next(
            (
                each
                for each in allowed
                if each.uid not in others and (each is pod or fits(others | {each.uid}))
            ),
            pod,
        )
    return kept


def _uids(pods: Iterable[BoundPod]) -> frozenset[str]:
    return frozenset(pod.uid for pod in pods)


def _importance(pod: BoundPod) -> tuple[int, float]:
    return pod.importance
