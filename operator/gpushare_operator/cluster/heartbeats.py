"""Which plugins are not heard of any more, by the Leases that they renew.

As in client-go's leader election and Kubernetes' node controller nobody's clock is believed but our own: a
Lease is as old as the time since it was last seen to change. While we do not look ourselves nobody can be
heard of: after a start, and after the API server was away, everybody's time begins anew.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from gpushare_core.api.plugin_heartbeat import RENEW_SECONDS, SILENT_SECONDS
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.object_parts import read_time

MAX_GAP = RENEW_SECONDS
"""Seconds between two looks; after more we did not look."""


@dataclass(frozen=True, slots=True)
class _Heard:
    renewed: datetime | None
    """As the Lease says, by the node's clock."""
    reported: datetime | None
    """As the GPUShareNode says, by the node's clock."""
    at: float
    """When these were seen first, by our clock."""
    duration: float = SILENT_SECONDS
    """In seconds, as the Lease says."""

    @property
    def said(self) -> datetime | None:
        return max((each for each in (self.renewed, self.reported) if each), default=None)


@dataclass(slots=True)
class Heartbeats:
    """``clock``: of durations, in seconds."""

    clock: Callable[[], float] = time.monotonic
    _heard: dict[str, _Heard] = field(default_factory=dict)
    """Node name -> the last sign."""
    _looked: float = float("-inf")

    def unavailable(self, leases: Iterable[Json], reported: Mapping[str, datetime]) -> Mapping[str, datetime]:
        """Returns node name -> when its plugin was heard of last, of those that are silent.

        ``leases``: all that there are. A node without one is not silent: its plugin may be of an earlier
        version. ``reported``: node name -> since when its GPUShareNode says that it is registered, which is a
        sign, too: a plugin that has just come back renews its Lease a little later.
        """
        now = self.clock()
        before = self._heard if now - self._looked <= MAX_GAP else {**self._unavailable(self._looked)}
        specs = (lease.get("spec") or {} for lease in leases)
        self._heard = {
            name: _note(before.get(name), spec, reported.get(name), now)
            for spec in specs
            if (name := _node(spec))
        }
        self._looked = now
        return {name: heard.said for name, heard in self._unavailable(now).items() if heard.said}

    def _unavailable(self, now: float) -> Mapping[str, _Heard]:
        return {name: heard for name, heard in self._heard.items() if now - heard.at > heard.duration}


def written_by_those_at_work(leases: Iterable[Json], states: Mapping[str, ObservedState]) -> list[Json]:
    """Returns ``leases`` but those of which the plugin that is at work now has renewed none: it is of an
    earlier version, to which somebody went back. Both times are by its node's clock."""
    return [lease for lease in leases if not _is_of_a_predecessor(lease.get("spec") or {}, states)]


def _is_of_a_predecessor(spec: Json, states: Mapping[str, ObservedState]) -> bool:
    state, renewed = states.get(_node(spec)), read_time(spec.get("renewTime"))
    plugin = state.plugin if state else None
    if plugin is None or not plugin.ready or plugin.started is None or renewed is None:
        return False
    return plugin.started > renewed


def _note(known: _Heard | None, spec: Json, reported: datetime | None, now: float) -> _Heard:
    """A GPUShareNode that says no more that it is registered is no sign: we write that ourselves."""
    renewed, duration = read_time(spec.get("renewTime")), _duration(spec)
    if known and known.renewed == renewed and reported in (None, known.reported):
        return replace(known, duration=duration)
    return _Heard(renewed, reported, now, duration)


def _node(spec: Json) -> str:
    return str(spec.get("holderIdentity") or "")


def _duration(spec: Json) -> float:
    seconds = spec.get("leaseDurationSeconds")
    return float(seconds) if isinstance(seconds, int) else float(SILENT_SECONDS)
