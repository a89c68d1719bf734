"""Which of the nodes that a request fits are better. Pure."""

from collections.abc import Sequence

from gpushare_core.placement.requests import Request
from gpushare_extender.decide.fit.candidates import scores
from gpushare_extender.ledger.ledger import Ledger


def prioritize_nodes(ledger: Ledger, names: Sequence[str], request: Request) -> dict[str, int]:
    """Returns a score for every name; 0 for a node that ``request`` does not fit."""
    return scores(dict(zip(names, ledger.answers(names, request), strict=True)))
