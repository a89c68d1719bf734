"""What could be done about a pod that waits, in the order of least trouble."""

from collections.abc import Callable, Iterable

from gpushare_cli.decide.why.finding import Remedy
from gpushare_cli.decide.why.remedies.another_node import another_node, free_elsewhere
from gpushare_cli.decide.why.remedies.closed_cards import mending, uncordoning
from gpushare_cli.decide.why.remedies.evictions import evictions
from gpushare_cli.decide.why.remedies.queue_ahead import queue_ahead
from gpushare_cli.decide.why.remedies.smaller_request import smaller_request
from gpushare_cli.decide.why.situation import PodSituation

REMEDIES: tuple[Callable[[PodSituation], Iterable[Remedy]], ...] = (
    smaller_request,
    uncordoning,
    evictions,
    mending,
    another_node,
    free_elsewhere,
    queue_ahead,
)
"""Each tries one way on the ledger, and says whether it helps."""
