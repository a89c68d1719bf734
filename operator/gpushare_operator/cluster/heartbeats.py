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
from gpushare_operator.cluster.readers import read_time


@dataclass(frozen=True, slots=True)
class _Heard:
    said: str
    """The time that the plugin wrote."""
    at: float
    """When that was seen first, by our clock."""


@dataclass(slots=True)
class Heartbeats:
    """``clock``: of durations, in seconds."""

    clock: Callable[[], float] = time.monotonic
    _heard: dict[str, _Heard] = field(default_factory=dict)
    """Node name -> the last renewal."""

    def silent(self, leases: Iterable[Json], now: datetime) -> Mapping[str, datetime]:
        """Returns node name -> when its plugin was heard of last, of those that are silent, by all ``leases``
        that there are. A node without a Lease is none: its plugin may be of an earlier version."""
        specs = {
            name: spec for lease in leases if (spec := lease.get("spec") or {}) and (name := _node(spec))
        }
        self._heard = {name: self._note(name, spec, now) for name, spec in specs.items()}
        return {
            name: since
            for name, spec in specs.items()
            if self.clock() - self._heard[name].at > _duration(spec)
            and (since := read_time(self._heard[name].said))
        }

    def _note(self, node: str, spec: Json, now: datetime) -> _Heard:
        said, known = str(spec.get("renewTime", "")), self._heard.get(node)
        if known is not None:
            return known if known.said == said else _Heard(said, self.clock())
        renewed = read_time(said) or now
        return _Heard(said, self.clock() - max(0.0, (now - renewed).total_seconds()))


def _node(spec: Json) -> str:
    return str(spec.get("holderIdentity") or "")


def _duration(spec: Json) -> float:
    seconds = spec.get("leaseDurationSeconds")
    return float(seconds) if isinstance(seconds, int) else float(SILENT_SECONDS)
