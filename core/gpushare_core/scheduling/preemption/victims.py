"""Which pods to evict so that a request fits a node's cards, as the ledger says. Pure.

In this order: 1. no pod goes that is more important than need be; 2. as few as possible; 3. those that began
last.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from gpushare_core.placement.requests import Request, ResourceRequest
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.preemption.bound_pods import BoundPod
from gpushare_core.scheduling.preemption.disruption_budgets import Budget, violating

Cost = tuple[float, int, int, float]
"""Cost of evicting pods: the highest priority, how many, the sum of priorities, and when the first began."""

Fits = Callable[[frozenset[str]], bool]
"""Whether a request fits once the pods with these UIDs are gone."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """What makes a request fit a node."""

    node: str
    victims: tuple[BoundPod, ...]
    """Least important first; none where pods that are ending already will do."""
    ending: tuple[BoundPod, ...] = ()
    """Pods that are ending already, and that have to be gone too."""

    @property
    def pods(self) -> tuple[BoundPod, ...]:
        return self.victims + self.ending

    @property
    def cost(self) -> Cost:
        return cost(self.victims)


@dataclass(frozen=True, slots=True)
class NodeWithout:
    """A node of the ledger as it would be without some pods. ``ignorable``: UIDs of the pods whose holds do
    not count for this request."""

    name: str
    ledger: NodeLedger
    request: Request
    ignorable: Collection[str] = ()

    def fits(self, gone: frozenset[str]) -> bool:
        return bool(self.ledger.choose_together(self.request, gone={*gone, *self.ignorable}))

    def fits_card(self, card: str, asked: ResourceRequest, gone: frozenset[str]) -> bool:
        return self.ledger.card_fits(card, asked, gone={*gone, *self.ignorable})


def cost(victims: Iterable[BoundPod]) -> Cost:
    pods = list(victims)
    priorities = [pod.priority for pod in pods]
    earliest = min((pod.started for pod in pods), default=0.0)
    return (max(priorities, default=float("-inf")), len(priorities), sum(priorities), -earliest)


def evictable(pods: Iterable[BoundPod], *, below: int) -> list[BoundPod]:
    """Returns those of ``pods`` that it helps a pod of priority ``below`` to evict."""
    return [pod for pod in pods if pod.priority < below and not (pod.is_terminating or pod.comes_back)]


def find_eviction(
    node: NodeWithout, pods: Sequence[BoundPod], *, gone: frozenset[str], budgets: Sequence[Budget] = ()
) -> Eviction | None:
    """Returns what to evict of ``pods`` besides those that are ``gone``, or None when nothing helps. Where
    the cheapest victims would violate a budget, others are looked for."""
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
            for card in node.ledger.cards()
            if (option := _to_free(card.uuid, asked, node, pods, away))
        ]
        if not options:
            return None
        chosen += min(options, key=cost)
    needed = _without_needless(chosen, lambda uids: node.fits(gone | uids))
    spread = (pod for pod in pods if (holder := node.ledger.holders.get(pod.uid)) and len(holder.cards) > 1)
    return sorted(_fewer(needed, spread, lambda uids: node.fits(gone | uids)), key=_importance)


def _fewer(chosen: list[BoundPod], spread: Iterable[BoundPod], fits: Fits) -> list[BoundPod]:
    """Returns ``chosen``, or fewer: one pod that is ``spread`` over several cards for two or more others."""
    for one in sorted(spread, key=_importance):
        if len(chosen) > 1 and one.priority <= cost(chosen)[0] and one.uid not in _uids(chosen):
            chosen = min(chosen, _with_one(one, chosen, fits), key=len)
    return chosen


def _with_one(one: BoundPod, others: list[BoundPod], fits: Fits) -> list[BoundPod]:
    """Returns ``one``, and those of ``others`` that have to go as well."""
    return [one, *_without_needless(others, lambda uids: fits(uids | {one.uid}))]


def _to_free(
    card: str, asked: ResourceRequest, node: NodeWithout, pods: Sequence[BoundPod], gone: frozenset[str]
) -> list[BoundPod] | None:
    """Returns None where nothing helps, and where the card fits already."""
    if node.fits_card(card, asked, gone):
        return None
    units = {share.uid: share.units for share in node.ledger.shares(card)}
    there = [pod for pod in pods if pod.uid in units and pod.uid not in gone]
    return fewest(there, units, lambda uids: node.fits_card(card, asked, gone | uids))


def fewest(pods: Iterable[BoundPod], units: dict[str, int], fits: Fits) -> list[BoundPod] | None:
    """Returns the least important of ``pods`` without which the request ``fits``, as few as possible, or
    None. ``units``: what each of them has, by UID."""
    allowed = _up_to_least_priority(pods, fits)
    if allowed is None:
        return None
    by_size = sorted(allowed, key=lambda pod: (-units[pod.uid], pod.importance))
    count = next(n for n in range(1, len(by_size) + 1) if fits(_uids(by_size[:n])))
    chosen = _without_needless(by_size[:count], fits)
    return _less_important(chosen, sorted(allowed, key=_importance), fits)


def _up_to_least_priority(pods: Iterable[BoundPod], fits: Fits) -> list[BoundPod] | None:
    """Returns all pods up to the lowest priority that is enough."""
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
        others = [other for other in kept if other is not pod]
        if fits(_uids(others)):
            kept = others
    return kept


def _less_important(chosen: list[BoundPod], allowed: Sequence[BoundPod], fits: Fits) -> list[BoundPod]:
    """Returns ``chosen``, each replaced by the least important pod that will do in its place."""
    kept = sorted(chosen, key=_importance, reverse=True)
    for place, pod in enumerate(kept):
        others = _uids(kept) - {pod.uid}
        kept[place] = next(
            (
                other
                for other in allowed
                if other.uid not in others and (other is pod or fits(others | {other.uid}))
            ),
            pod,
        )
    return kept


def _uids(pods: Iterable[BoundPod]) -> frozenset[str]:
    return frozenset(pod.uid for pod in pods)


def _importance(pod: BoundPod) -> tuple[int, float]:
    return pod.importance
