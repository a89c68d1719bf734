"""Which plugins are unavailable, by the Leases that they renew.

As in client-go's leader election and Kubernetes' node controller only our own clock counts: a Lease is as old
as the time since the operator last saw it change. While the operator itself does not read, it sees nothing
change: after its start, and after the API server was away, the time of every plugin begins anew.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from gpushare_core.api.plugin_heartbeat import (
    RENEW_SECONDS,
    SILENT_SECONDS,
    IsolationFiles,
    read_isolation_files,
)
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.object_parts import read_time

MAX_GAP = RENEW_SECONDS
"""Seconds between two readings; after a longer gap the time of every plugin begins anew."""


@dataclass(frozen=True, slots=True)
class _LastSign:
    renewed: datetime | None
    """From the Lease, by the node's clock."""
    reported: datetime | None
    """From the GPUShareNode, by the node's clock."""
    at: float
    """When these were first seen, by our clock."""
    duration: float = SILENT_SECONDS
    """In seconds, from the Lease."""

    @property
    def moment(self) -> datetime | None:
        return max((moment for moment in (self.renewed, self.reported) if moment), default=None)


@dataclass(slots=True)
class Heartbeats:
    """``clock``: of durations, in seconds."""

    clock: Callable[[], float] = time.monotonic
    _signs: dict[str, _LastSign] = field(default_factory=dict)
    """By node name."""
    _read_at: float = float("-inf")

    def unavailable(self, leases: Iterable[Json], reported: Mapping[str, datetime]) -> Mapping[str, datetime]:
        """Returns node name -> the last sign of its plugin, for unavailable plugins.

        ``leases``: all that there are. A plugin without a Lease is not unavailable: it may be of an earlier
        version. ``reported``: node name -> since when its GPUShareNode says that the plugin is registered.
        That is a sign, too: a plugin that has just come back renews its Lease a little later.
        """
        now = self.clock()
        before = self._signs if now - self._read_at <= MAX_GAP else {**self._old_signs(self._read_at)}
        specs = (lease.get("spec") or {} for lease in leases)
        self._signs = {
            name: _note(before.get(name), spec, reported.get(name), now)
            for spec in specs
            if (name := _node(spec))
        }
        self._read_at = now
        return {name: sign.moment for name, sign in self._old_signs(now).items() if sign.moment}

    def renewed(self, node: str) -> datetime | None:
        """Returns when the Lease of the plugin on ``node`` was renewed, by the node's clock."""
        sign = self._signs.get(node)
        return sign.renewed if sign else None

    def _old_signs(self, now: float) -> Mapping[str, _LastSign]:
        return {name: sign for name, sign in self._signs.items() if now - sign.at > sign.duration}


def written_by_running_plugins(leases: Iterable[Json], states: Mapping[str, ObservedState]) -> list[Json]:
    """Returns ``leases`` without those that a predecessor of the running plugin wrote.

    The running plugin does not renew such a Lease: somebody went back to a version that has none. Both times
    that are compared are by the node's clock.
    """
    return [lease for lease in leases if not _is_of_predecessor(lease.get("spec") or {}, states)]


def isolation_files_by_node(
    leases: Iterable[Json], states: Mapping[str, ObservedState], now: datetime
) -> Mapping[str, IsolationFiles | None]:
    """Returns node name -> the files of isolation there, of nodes that have any; None where the plugin has
    started so lately that it may not have said so yet."""
    by_node = {node: lease for lease in leases if (node := _node(lease.get("spec") or {}))}
    starting = (name for name, state in states.items() if _has_just_started(state, by_node.get(name), now))
    read = ((node, read_isolation_files(lease)) for node, lease in by_node.items())
    return {**dict.fromkeys(starting), **{node: files for node, files in read if files is not None}}


def _has_just_started(state: ObservedState, lease: Json | None, now: datetime) -> bool:
    """Of a Lease that its plugin has renewed, only the node's clock counts."""
    plugin = state.plugin
    if plugin is None or not plugin.ready or plugin.started is None or state.unavailable_since:
        return False
    renewed = read_time((lease.get("spec") or {}).get("renewTime")) if lease else None
    last = renewed if renewed and renewed >= plugin.started else now
    return timedelta() <= last - plugin.started < timedelta(seconds=RENEW_SECONDS)


def _is_of_predecessor(spec: Json, states: Mapping[str, ObservedState]) -> bool:
    state, renewed = states.get(_node(spec)), read_time(spec.get("renewTime"))
    plugin = state.plugin if state else None
    if plugin is None or not plugin.ready or plugin.started is None or renewed is None:
        return False
    return plugin.started > renewed


def _note(known: _LastSign | None, spec: Json, reported: datetime | None, now: float) -> _LastSign:
    """That a GPUShareNode no longer says "registered" is no sign: the operator writes that itself."""
    renewed, duration = read_time(spec.get("renewTime")), _duration(spec)
    if known and known.renewed == renewed and reported in (None, known.reported):
        return replace(known, duration=duration)
    return _LastSign(renewed, reported, now, duration)


def _node(spec: Json) -> str:
    return str(spec.get("holderIdentity") or "")


def _duration(spec: Json) -> float:
    seconds = spec.get("leaseDurationSeconds")
    return float(seconds) if isinstance(seconds, int) else float(SILENT_SECONDS)
