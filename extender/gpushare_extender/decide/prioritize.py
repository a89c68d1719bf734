"""Which of the nodes that take a pod are better. Pure."""

from collections.abc import Sequence

from gpushare_core.placement.cards import Strategy
from gpushare_core.placement.ranking import Candidate, rank
from gpushare_extender.ledger.ledger import Ledger


def prioritize_nodes(ledger: Ledger, names: Sequence[str], *, units: int) -> dict[str, int]:
    """A score for every name, as ``core.ranking`` gives it; 0 for a node that does not take the pod.

    Nodes of policies with different strategies can meet here: each strategy ranks its own.
    """
    candidates: dict[Strategy, dict[str, Candidate]] = {}
    for name in names:
        books = ledger.node(name)
        if books and books.inventory and (candidate := books.candidate(units)):
            candidates.setdefault(books.inventory.strategy, {})[name] = candidate
    scores = dict.fromkeys(names, 0)
    for strategy, nodes in candidates.items():
        scores.update(rank(nodes, strategy))
    return scores
