"""What could be done about a pod that waits, in the order of least trouble."""

from collections.abc import Callable, Iterable

from gpushare_cli.decide.why.finding import Remedy
from gpushare_cli.decide.why.situation import PodSituation

REMEDIES: tuple[Callable[[PodSituation], Iterable[Remedy]], ...] = ()
"""Each tries one way on the ledger, and says whether it helps."""
