"""The causes, in the order in which people want to know them."""

from collections.abc import Callable, Iterable

from gpushare_cli.decide.why.causes.cards import cards_that_do_not_fit, cards_with_room, impossible_pods
from gpushare_cli.decide.why.finding import Finding
from gpushare_cli.decide.why.situation import PodSituation

CAUSES: tuple[Callable[[PodSituation], Iterable[Finding]], ...] = (
    impossible_pods,
    cards_that_do_not_fit,
    cards_with_room,
)
"""Each looks at the facts, and says what it finds."""
