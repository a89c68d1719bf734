"""Which of several nodes that fit is better: the node half of placement. What comes first decides first.

Shared work (memory, slices) goes to nodes

1. with slow cards,
2. that share already,
3. where it leaves the least of its cards over,
4. with few free cards.

Whole cards go the other way round, so that free cards stay free for pods that need whole ones: to nodes

1. with fast cards,
2. where the cards lie together,
3. that nobody shares,
4. that hold whole cards already,
5. where the fewest free cards are left over: a node is filled before another is begun.

The strategy Spread keeps the order of speed, and then takes the emptiest node and card.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpushare_core.placement.card_choice import Card, Strategy
from gpushare_core.placement.requests import ResourceClass

BEST = 10
"""``MaxExtenderPriority`` of ``k8s.io/kube-scheduler/extender/v1``; the worst is 0."""

SECOND = 2
"""The most that any but the best gets: the distance to the best is what has to outweigh others' scores."""

WEIGHT = 5
"""Default weight of the extender's scores, on the scale of kube-scheduler's plugins (``getDefaultPlugins``):
the sum of those that would rather have pods apart, or know nothing of cards. ``PodTopologySpread`` 2,
``NodeResourcesFit``, ``NodeResourcesBalancedAllocation``, ``ImageLocality`` 1."""

MAX_WEIGHT = 100
"""Beyond it nothing else that kube-scheduler knows counts."""

CANDIDATES = 16
"""How many of the fitting nodes are offered for a pod, where the policy says nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A node that fits, as far as ranking goes."""

    resource: ResourceClass
    """What the request asks for."""
    compute_score: int
    """Of the node's fastest card."""
    allocated: int
    """Units allocated on the node."""
    holds: frozenset[ResourceClass] = frozenset()
    """The classes that pods have of its cards now."""
    left_over: int
    """Units that the chosen cards together have free afterwards."""
    free_cards: int = 0
    """Healthy cards that nobody uses afterwards."""
    numa_nodes: int = 1
    """Of the chosen cards, as are ``link_groups``."""
    link_groups: int = 1

    @classmethod
    def of_cards(
        cls,
        cards: Sequence[Card],
        chosen: Mapping[str, int],
        *,
        resource: ResourceClass,
        holds: frozenset[ResourceClass],
        compute_score: int,
    ) -> "Candidate":
        """Returns what the node with ``cards`` is once those ``chosen`` (UUID -> units) are taken."""
        allocated = left_over = free_cards = 0
        groups: set[tuple[int, int]] = set()
        for card in cards:  # once: ranking thousands of nodes spends its time here
            allocated += card.allocated
            if card.uuid in chosen:
                left_over += card.free - chosen[card.uuid]
                groups.add((card.numa_node, card.link_group))
            else:
                free_cards += card.is_unused
        return cls(
            resource=resource,
            compute_score=compute_score,
            allocated=allocated,
            holds=holds,
            left_over=left_over,
            free_cards=free_cards,
            numa_nodes=len({numa_node for numa_node, _ in groups}),
            link_groups=len(groups),
        )


Key = tuple[int, ...]
"""The least is best."""


def _shared_binpack(candidate: Candidate) -> Key:
    is_new = candidate.resource not in candidate.holds
    return (candidate.compute_score, is_new, candidate.left_over, candidate.free_cards)


def _shared_spread(candidate: Candidate) -> Key:
    return (candidate.compute_score, candidate.allocated, -candidate.left_over)


def _whole_binpack(candidate: Candidate) -> Key:
    is_new = ResourceClass.CARD not in candidate.holds
    is_shared = bool(candidate.holds - {ResourceClass.CARD})
    return (*_speed_and_nearness(candidate), is_shared, is_new, candidate.free_cards)


def _whole_spread(candidate: Candidate) -> Key:
    return (*_speed_and_nearness(candidate), candidate.allocated)


def _speed_and_nearness(candidate: Candidate) -> Key:
    return (-candidate.compute_score, candidate.numa_nodes, candidate.link_groups)


_SHARED = {Strategy.BINPACK: _shared_binpack, Strategy.SPREAD: _shared_spread}
_WHOLE = {Strategy.BINPACK: _whole_binpack, Strategy.SPREAD: _whole_spread}
_KEYS: Mapping[ResourceClass, Mapping[Strategy, Callable[[Candidate], Key]]] = {
    ResourceClass.MEMORY: _SHARED,
    ResourceClass.SLICE: _SHARED,
    ResourceClass.CARD: _WHOLE,
}


def ranking_key(candidate: Candidate, strategy: Strategy) -> Key:
    """Returns the key by which candidates for the same request are compared."""
    return _KEYS[candidate.resource][strategy](candidate)


def key_scores(keys: Iterable[Key]) -> dict[Key, int]:
    """Returns a score for every key: ``BEST`` for the best, from ``SECOND`` down to 1 for the others."""
    best, *others = sorted(set(keys)) or [()]
    steps = max(1, len(others))
    return {best: BEST, **{key: SECOND - place * SECOND // steps for place, key in enumerate(others)}}
