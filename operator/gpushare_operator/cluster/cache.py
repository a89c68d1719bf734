"""What the operator knows of the cluster: filled by lists and by watch events, read as snapshots."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from gpushare_core.json_object import Json
from gpushare_core.whole_number import version_number
from gpushare_operator.cluster.kinds import (
    CALLS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    KINDS,
    NODES,
    PODS,
    POLICIES,
    SHARE_NODES,
    VOLCANO_BACKUPS,
    Kind,
)
from gpushare_operator.cluster.objects import (
    SchedulerObject,
    ServerFacts,
    VolcanoConfigObject,
    VolcanoLocation,
)
from gpushare_operator.cluster.snapshot import Snapshot

T = TypeVar("T")

_UNREADABLE = (LookupError, TypeError, AttributeError, ValueError)
"""What readers raise for an object that the API server would not have let pass."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    """``known`` is None for an object that is gone since ``version``."""

    version: int
    known: T | None


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """One object as the API server told it: the whole of it is not kept.

    ``entry`` is None for what cannot be read; then stays what was known before.
    """

    name: str
    version: int
    entry: _Entry[T] | None


@dataclass(slots=True)
class Listing(Generic[T]):
    """A list that is being read page by page: whole objects are not kept."""

    kind: Kind[T]
    entries: dict[str, _Entry[T]] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    """Names of objects of which stays known what was known before."""

    def add(self, bodies: Iterable[Json]) -> None:
        for body in bodies:
            self.take(read(self.kind, body))

    def take(self, reading: Reading[T]) -> None:
        if reading.entry:
            self.entries[reading.name] = reading.entry
        else:
            self.unreadable.add(reading.name)


@dataclass(slots=True)
class Cache:
    """Objects by kind and name.

    Lists, watch events and answers to writes arrive in any order; of one object the newest wins. Resource
    versions can be compared as numbers (KEP-5504).
    """

    _entries: dict[Kind[Any], dict[str, _Entry[Any]]] = field(
        default_factory=lambda: {kind: {} for kind in KINDS}
    )
    _schedulers: dict[str, SchedulerObject] = field(default_factory=dict)
    _volcano_configs: dict[VolcanoLocation, VolcanoConfigObject] = field(default_factory=dict)
    _server: ServerFacts | None = None

    def replace(self, listing: Listing[Any], version: str) -> bool:
        """Takes over a list as of ``version``: what is not in it and no newer is gone.

        Returns whether anything changed.
        """
        before = self._entries[listing.kind]
        newer = {
            name: entry
            for name, entry in before.items()
            if entry.version > version_number(version) or name in listing.unreadable
        }
        after = self._entries[listing.kind] = {**listing.entries, **newer}
        return _present(before) != _present(after)

    def observe(self, kind: Kind[Any], body: Json) -> bool:
        """Takes over one object as it is now; what is known stays where that cannot be read.

        Returns whether anything changed that the operator reads.
        """
        return self.take(kind, read(kind, body))

    def take(self, kind: Kind[T], reading: Reading[T]) -> bool:
        """As ``observe``."""
        return reading.entry is not None and self._update(kind, reading.name, reading.entry)

    def forget(self, kind: Kind[T], gone: Reading[T]) -> bool:
        """Notes that one object is gone, unless a newer one of the same name is known already.

        Returns whether anything changed.
        """
        return self._update(kind, gone.name, _Entry(gone.version, None))

    def replace_schedulers(self, schedulers: Iterable[SchedulerObject]) -> None:
        """Takes over all kube-schedulers that there are."""
        self._schedulers = {each.name: each for each in schedulers}

    def replace_volcano_configs(self, configs: Mapping[VolcanoLocation, VolcanoConfigObject]) -> None:
        """Takes over all configurations of Volcano's scheduler that anybody asked for."""
        self._volcano_configs = dict(configs)

    def replace_server_facts(self, facts: ServerFacts | None) -> None:
        """Takes over what is known of the API server; None: nobody asks any more."""
        self._server = facts

    def observe_volcano_config(self, location: VolcanoLocation, config: VolcanoConfigObject) -> None:
        self._volcano_configs[location] = config

    def forget_volcano_config(self, location: VolcanoLocation) -> None:
        self._volcano_configs.pop(location, None)

    def _update(self, kind: Kind[T], name: str, new: _Entry[T]) -> bool:
        entries = self._entries[kind]
        old = entries.get(name, _Entry(-1, None))
        if old.version > new.version:
            return False
        entries[name] = new
        return bool(old.known != new.known)

    def snapshot(self) -> Snapshot:
        return Snapshot(
            policies=self._objects(POLICIES),
            nodes=self._objects(NODES),
            share_nodes=self._objects(SHARE_NODES),
            daemon_sets=self._objects(DAEMON_SETS),
            deployments=self._objects(DEPLOYMENTS),
            jobs=self._objects(JOBS),
            pods=self._objects(PODS),
            schedulers=self._schedulers,
            calls=self._objects(CALLS),
            volcano_backups=self._objects(VOLCANO_BACKUPS),
            volcano_configs=dict(self._volcano_configs),
            server=self._server,
        )

    def policies(self) -> list[str]:
        """Returns the names of all policies."""
        return list(self._objects(POLICIES))

    def _objects(self, kind: Kind[T]) -> dict[str, T]:
        return _present(self._entries[kind])


def _present(entries: Mapping[str, _Entry[T]]) -> dict[str, T]:
    return {name: entry.known for name, entry in entries.items() if entry.known is not None}


def read(kind: Kind[T], body: Json) -> Reading[T]:
    """Raises nothing: one object that cannot be read must not keep the others from being known."""
    name, version = _name(body), _version(body)
    try:
        return Reading(name, version, _Entry(version, kind.read(body)))
    except _UNREADABLE as error:
        _log.warning("one of %s, %r, cannot be read: %r", kind.plural, name, error)
        return Reading(name, version, None)


def _name(body: Json) -> str:
    """Returns an empty text for what has none."""
    return str(_metadata(body).get("name") or "")


def _version(body: Json) -> int:
    return version_number(str(_metadata(body).get("resourceVersion", "")))


def _metadata(body: Any) -> Json:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return metadata if isinstance(metadata, dict) else {}
