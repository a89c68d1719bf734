"""Which plugins are not heard of any more, by the age of the Leases that they renew.

As in client-go's leader election nobody's clock is believed but our own: a Lease is as old as the time since
it was last seen to change. Only of one that was never seen before its own time is taken.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gpushare_core.api.plugin_heartbeat import SILENT_SECONDS
from gpushare_core.json_object import Json
from gpushare_operator.cluster.object_parts import read_time


@dataclass(frozen=True, slots=True)
class _Heard:
    said: datetime | None
    """The newest time that the plugin wrote, by its node's clock."""
    at: float
    """When that was seen first, by our clock."""


@dataclass(slots=True)
class Heartbeats:
    """``clock``: of durations, in seconds."""

    clock: Callable[[], float] = time.monotonic
    _heard: dict[str, _Heard] = field(default_factory=dict)
    """Node name -> the last sign."""

    def silent(
        self, leases: Iterable[Json], reported: Mapping[str, datetime], now: datetime
    ) -> Mapping[str, datetime]:
        """Returns node name -> when its plugin was heard of last, of those that are silent.

        ``leases``: all that there are. A node without one is not silent: its plugin may be of an earlier
        version. ``reported``: node name -> since when its GPUShareNode says that it is registered, which is a
        sign, too: a plugin that has just come back renews its Lease a little later.
        """
        specs = {
            name: spec for lease in leases if (spec := lease.get("spec") or {}) and (name := _node(spec))
        }
        self._heard = {
            name: self._note(name, _newest(read_time(spec.get("renewTime")), reported.get(name)), now)
            for name, spec in specs.items()
        }
        return {
            name: heard.said
            for name, heard in self._heard.items()
            if heard.said and self.clock() - heard.at > _duration(specs[name])
        }

    def _note(self, node: str, said: datetime | None, now: datetime) -> _Heard:
        known = self._heard.get(node)
        if known is not None:
            return known if known.said == said else _Heard(said, self.clock())
        age = (now - said).total_seconds() if said else 0.0
        return _Heard(said, self.clock() - max(0.0, age))


def _newest(*times: datetime | None) -> datetime | None:
    return max((time for time in times if time), default=None)


def _node(spec: Json) -> str:
    return str(spec.get("holderIdentity") or "")


def _duration(spec: Json) -> float:
    seconds = spec.get("leaseDurationSeconds")
    return float(seconds) if isinstance(seconds, int) else float(SILENT_SECONDS)
