"""Which of several nodes that fit is better: the node half of placement.

Shared work goes first to nodes with slow cards, then to nodes that share already, then where it leaves the
least of a card over; the strategy Spread turns the last two round.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from gpushare_core.placement.card_choice import Strategy

BEST = 10
"""``MaxExtenderPriority`` of ``k8s.io/kube-scheduler/extender/v1``; the worst is 0."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that fits, as far as ranking goes."""

    compute_score: int
    """Of its fastest card."""
    allocated: int
    """Units allocated on the node."""
    left_over: int
    """Units that the chosen card has free afterwards."""


Key = tuple[int, bool | int, int]


def rank(candidates: Mapping[str, Candidate], strategy: Strategy = Strategy.BINPACK) -> dict[str, int]:
    """Returns a score from 0 to ``BEST`` for every node; equal nodes score alike, the best get ``BEST``."""
    keys = {name: _key(candidate, strategy) for name, candidate in candidates.items()}
    places = {key: place for place, key in enumerate(sorted(set(keys.values())))}
    steps = max(BEST, len(places) - 1)
    return {name: BEST - places[key] * BEST // steps for name, key in keys.items()}


def _key(candidate: Candidate, strategy: Strategy) -> Key:
    """Less is better."""
    if strategy is Strategy.SPREAD:
        return (candidate.compute_score, candidate.allocated, -candidate.left_over)
    return (candidate.compute_score, candidate.allocated == 0, candidate.left_over)
