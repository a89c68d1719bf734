"""Which differences have lasted: books that are on their way to agree are no alarm. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpushare_core.audit.difference import Difference

LASTING_SECONDS = 5.0
"""Within which all books agree once it is quiet: what differs for longer does not so because of delays."""

_Identity = tuple[str, str, str, str, str]


@dataclass(slots=True)
class LastingDifferences:
    """Remembers since when each difference was seen at every look. Moments are seconds of one clock."""

    seconds: float = LASTING_SECONDS
    _since: dict[_Identity, float] = field(default_factory=dict, init=False)

    def look(self, seen: Iterable[Difference], *, now: float) -> list[Difference]:
        """Returns which of ``seen``, in their order, were seen at every look for ``seconds``."""
        present = list(seen)
        self._since = {each.identity: self._since.get(each.identity, now) for each in present}
        return [each for each in present if self._has_lasted(self._since[each.identity], now)]

    def seconds_until_due(self, *, now: float) -> float | None:
        """Returns the seconds until another one of those seen last will have lasted; None: none will."""
        ends = [since + self.seconds for since in self._since.values() if not self._has_lasted(since, now)]
        return min(ends) - now if ends else None

    def _has_lasted(self, since: float, now: float) -> bool:
        return now >= since + self.seconds
