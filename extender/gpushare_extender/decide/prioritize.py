"""Which of the nodes that a request fits are better. Pure."""

from collections.abc import Sequence

from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.node_ranking import Candidate, rank
from gpushare_core.placement.requests import ResourceRequest
from gpushare_extender.ledger.ledger import Ledger


def prioritize_nodes(ledger: Ledger, names: Sequence[str], request: ResourceRequest) -> dict[str, int]:
    """Returns a score for every name, as core's ranking gives it; 0 for a node that ``request`` does not fit.

    Nodes of policies with different strategies can meet here: each strategy ranks its own.
    """
    candidates: dict[Strategy, dict[str, Candidate]] = {}
    for name in names:
        node = ledger.node(name)
        if node and node.share_node and (candidate := node.candidate(request)):
            candidates.setdefault(node.share_node.strategy, {})[name] = candidate
    scores = dict.fromkeys(names, 0)
    for strategy, nodes in candidates.items():
        scores.update(rank(nodes, strategy))
    return scores
