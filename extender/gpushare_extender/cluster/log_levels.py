"""The level of the extender's log, which policies set through the GPUShareNodes."""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpushare_core.api.enums import LogLevel
from gpushare_core.process.log import change_level, most_verbose
from gpushare_core.scheduling.objects.share_node import ShareNode

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class LogLevels:
    """The most verbose level of all nodes is in force; ``otherwise`` while there are none."""

    otherwise: str = LogLevel.INFO
    _by_node: dict[str, str] = field(default_factory=dict, init=False)
    _counts: Counter[str] = field(default_factory=Counter, init=False)
    """Level -> how many nodes have it, as all nodes of a policy change at once."""

    def replace(self, share_nodes: Iterable[ShareNode]) -> None:
        """``share_nodes`` are all there are."""
        self._by_node = {share_node.name: share_node.log_level for share_node in share_nodes}
        self._counts = Counter(self._by_node.values())
        self._apply()

    def set(self, share_node: ShareNode) -> None:
        before = self._by_node.get(share_node.name)
        if before != share_node.log_level:
            self._by_node[share_node.name] = share_node.log_level
            self._counts[share_node.log_level] += 1
            self._uncount(before)
            self._apply()

    def drop(self, name: str) -> None:
        if before := self._by_node.pop(name, None):
            self._uncount(before)
            self._apply()

    def _uncount(self, level: str | None) -> None:
        if level is not None:
            self._counts[level] -= 1
            self._counts = +self._counts

    def _apply(self) -> None:
        level = most_verbose(self._counts, otherwise=self.otherwise)
        if change_level(level):
            _log.info("the log level is now %s", level)
