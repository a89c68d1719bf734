"""Which of the nodes that fit a pod are offered to kube-scheduler, and their scores. Pure.

kube-scheduler scores every node that it is offered, which costs more than the rest of a pod's scheduling.
Each policy says how many of its nodes are offered: those that rank first. Pods that follow one another
closely do not see each other's units yet. So of equal nodes Binpack offers all pods the same one, and Spread
offers each pod other ones.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.node_ranking import BEST, SECOND, key_scores
from gpushare_core.placement.requests import Request
from gpushare_core.scheduling.ledger.fit_index import Answer, Fit
from gpushare_core.scheduling.ledger.ledger import Ledger

SAMPLE = 100
"""kube-scheduler offers all nodes that it finds fit, if they are fewer: its ``minFeasibleNodesToFind``."""

Alike = Mapping[Answer, Sequence[str]]
"""Nodes by what the ledger answers of them: thousands of nodes share few answers."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The nodes that fit a pod, each in one of the two."""

    offered: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def may_be_sampled(offered: int) -> bool:
    """Returns whether there may be more fit nodes than the ``offered`` ones."""
    return offered >= SAMPLE


def scores(answers: Mapping[str, Answer]) -> dict[str, int]:
    """Returns a score for every node by core's ranking; 0 for a node that does not fit.

    Each strategy ranks its own nodes. Of equal nodes the first by name is the best one with Binpack.
    """
    fits = {answer for answer in answers.values() if isinstance(answer, Fit)}
    by_strategy = {
        strategy: key_scores(fit.key for fit in fits if fit.strategy is strategy)
        for strategy in {fit.strategy for fit in fits}
    }
    points = {fit: by_strategy[fit.strategy][fit.key] for fit in fits}
    scored = {name: points[answer] if isinstance(answer, Fit) else 0 for name, answer in answers.items()}
    packed = [name for name, answer in answers.items() if isinstance(answer, Fit) and _packs(answer)]
    best = sorted(name for name in packed if scored[name] == BEST)
    return scored | dict.fromkeys(best[1:], SECOND)


def _packs(fit: Fit) -> bool:
    return fit.strategy is Strategy.BINPACK


def alike(names: Sequence[str], answers: Sequence[Answer]) -> Alike:
    groups: defaultdict[Answer, list[str]] = defaultdict(list)
    for name, answer in zip(names, answers, strict=True):
        groups[answer].append(name)
    return groups


def offer(nodes: Alike, *, uid: str, always: Collection[str] = ()) -> Offer:
    """Returns which of ``nodes`` are offered for the pod, and which are not although they fit. Those in
    ``always`` are offered if they fit, however they rank."""
    made = Offer()
    for most, fits in _policies(nodes):
        left = most or sum(len(nodes[fit]) for fit in fits)
        for fit in fits:
            same = sorted(nodes[fit]) if _packs(fit) and left < len(nodes[fit]) else nodes[fit]
            taken, others = _taken(same, min(left, len(same)), begin_by="" if _packs(fit) else uid)
            left -= len(taken)
            made.offered.extend(taken)
            made.left_out.extend(others)
    for name in filter(made.left_out.__contains__, always):
        made.left_out.remove(name)
        made.offered.append(name)
    return made


def _policies(nodes: Alike) -> Iterator[tuple[int, list[Fit]]]:
    """Yields, for all policies that say the same, how many nodes are offered, and their fits, the best
    first."""
    groups: dict[tuple[Strategy, int], list[Fit]] = {}
    for node in nodes:
        if isinstance(node, Fit):
            groups.setdefault((node.strategy, node.candidates), []).append(node)
    for (_, most), fits in groups.items():
        yield most, sorted(fits, key=lambda fit: fit.key)


def _taken(names: Sequence[str], most: int, *, begin_by: str) -> tuple[Sequence[str], Sequence[str]]:
    """Returns ``most`` of ``names`` from a place that ``begin_by`` decides, and the others."""
    if most in (0, len(names)) or not begin_by:
        return names[:most], names[most:]
    begin = crc32(begin_by.encode(errors="replace")) % len(names)
    turned = [*names[begin:], *names[:begin]]
    return turned[:most], turned[most:]


def prioritize_nodes(ledger: Ledger, names: Sequence[str], request: Request) -> dict[str, int]:
    """Returns a score for every name."""
    return scores(dict(zip(names, ledger.answers(names, request), strict=True)))
