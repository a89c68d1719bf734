"""What the operator knows of the cluster: filled by lists and by watch events, read as snapshots."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any, Generic, TypeVar

from gpushare_core.text.json_object import Json
from gpushare_core.text.whole_number import version_number
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
from gpushare_operator.cluster.nodes.node_index import NodeIndexes
from gpushare_operator.cluster.nodes.observed_states import StateKeeper
from gpushare_operator.cluster.objects import (
    SchedulerObject,
    ServerFacts,
    VolcanoConfigObject,
    VolcanoLocation,
)
from gpushare_operator.cluster.snapshot import ClusterSnapshot

T = TypeVar("T")

_UNREADABLE = (LookupError, TypeError, AttributeError, ValueError)
"""What readers raise for an object that the API server would not have let pass."""
_UNSURE = -1
"""The version of what was known when the API server's history went back: whatever it says now is newer."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    """``known`` is None for an object that is gone since ``version``."""

    version: int
    known: T | None


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """One object as the API server told it: the whole of it is not kept.

    ``entry`` is None for what cannot be read, and for what is known already: then stays what was known.
    """

    name: str
    version: int
    entry: _Entry[T] | None


@dataclass(slots=True)
class Listing(Generic[T]):
    """A list that is being read page by page: whole objects are not kept. Made before it is asked for."""

    kind: Kind[T]
    known: Mapping[str, _Entry[T]] = field(default_factory=dict)
    """What is known already. Of thousands of objects most are as they were, and need not be held twice."""
    entries: dict[str, _Entry[T]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    """Names of objects of which stays known what was known before."""
    since: int = _UNSURE
    """The newest version that was known when the list was asked for: it is of that one or of a newer one."""
    history: int = 0
    """Which of the API server's histories was known then."""

    def add(self, bodies: Iterable[Json]) -> None:
        for body in bodies:
            name, version = _name(body), _version(body)
            known = self.known.get(name)
            is_known = known is not None and known.version == version
            self.take(Reading(name, version, None) if is_known else read(self.kind, body))

    def take(self, reading: Reading[T]) -> None:
        if reading.entry is None:
            self.kept.add(reading.name)
            return
        known, entry = self.known.get(reading.name), reading.entry
        is_same = known is not None and known.known == entry.known
        self.entries[reading.name] = _Entry(entry.version, known.known) if known and is_same else entry


class Change(IntEnum):
    """What a new version of an object changes of what the operator reads; false for nothing."""

    NOTHING = 0
    FIGURES = 1
    """Only what is summed up in statuses: nothing is decided by it."""
    ALL = 2


@dataclass(slots=True)
class _Objects(Generic[T]):
    """The objects of one kind. A mapping that was handed out is never changed afterwards."""

    entries: dict[str, _Entry[T]] = field(default_factory=dict)
    listed: int = _UNSURE
    """The version of the last list: what is not in ``entries`` was not there then."""
    newest: int = _UNSURE
    """The newest version that anything was of."""
    history: int = 0
    """Counts how often the API server's history went back."""
    _present: dict[str, T] = field(default_factory=dict)
    _is_shared: bool = False

    def put(self, name: str, entry: _Entry[T]) -> T | None:
        """Returns what was known before."""
        old = self.entries.get(name)
        self.entries[name] = entry
        before = old.known if old else None
        if before is not entry.known:
            self._show(name, entry.known)
        return before

    def drop(self, name: str) -> T | None:
        """As ``put``; of what is gone nothing is kept."""
        old = self.entries.pop(name)
        self._show(name, None)
        return old.known

    def _show(self, name: str, known: T | None) -> None:
        if self._is_shared:
            self._present, self._is_shared = dict(self._present), False
        if known is None:
            self._present.pop(name, None)
        else:
            self._present[name] = known

    def version(self, name: str) -> int:
        """Returns the version as of which the object is known, or known not to be there."""
        entry = self.entries.get(name)
        return entry.version if entry else self.listed

    def go_back(self) -> None:
        """The API server's history went back: what is known goes on being shown, until something else is."""
        known = {name: entry.known for name, entry in self.entries.items() if entry.known is not None}
        self.entries = {name: _Entry(_UNSURE, each) for name, each in known.items()}
        self.listed = self.newest = _UNSURE
        self.history += 1

    def note(self, version: int) -> None:
        self.newest = max(self.newest, version)

    def hand_out(self) -> dict[str, T]:
        self._is_shared = True
        return self._present


@dataclass(slots=True)
class Cache:
    """Objects by kind and name.

    Lists, watch events and answers to writes arrive in any order; of one object the newest wins. Resource
    versions can be compared as numbers (KEP-5504).

    They go back when etcd is restored from a backup. Lists are consistent reads: one that is of an older
    version than was known when it was asked for tells of that.
    """

    _kinds: dict[Kind[Any], _Objects[Any]] = field(
        default_factory=lambda: {kind: _Objects() for kind in KINDS}
    )
    _schedulers: dict[str, SchedulerObject] = field(default_factory=dict)
    _volcano_configs: dict[VolcanoLocation, VolcanoConfigObject] = field(default_factory=dict)
    _server: ServerFacts | None = None
    _refusals: Mapping[str, str] = field(default_factory=dict)
    _states: StateKeeper = field(default_factory=StateKeeper)
    _indexes: NodeIndexes = field(default_factory=NodeIndexes)
    _snapshot: ClusterSnapshot | None = None
    """Until something changes."""

    def listing(self, kind: Kind[T]) -> Listing[T]:
        """Returns an empty list to be asked for now, filled, and given to ``replace``."""
        objects = self._kinds[kind]
        return Listing(kind, known=objects.entries, since=objects.newest, history=objects.history)

    def replace(self, listing: Listing[Any], version: str) -> Change:
        """Takes over a list as of ``version``: what is not in it and no newer is gone.

        A list that comes after a newer one says nothing. Returns what changed.
        """
        kind, objects, listed = listing.kind, self._kinds[listing.kind], version_number(version)
        if self._is_of_lost_history(listing, listed) or listed < objects.listed:
            return Change.NOTHING
        objects.note(listed)
        # What is known of versions before the list's is as the list says, whatever is known.
        older = {name: entry for name, entry in listing.entries.items() if objects.version(name) <= listed}
        changes = [self._put(kind, name, entry) for name, entry in older.items()]
        stays = listing.entries.keys() | listing.kept
        gone = [
            name for name, entry in objects.entries.items() if name not in stays and entry.version <= listed
        ]
        changes += [self._changed(kind, objects.drop(name), None) for name in gone]
        objects.listed = listed
        return max(changes, default=Change.NOTHING)

    def _is_of_lost_history(self, listing: Listing[Any], listed: int) -> bool:
        """Returns whether the API server's history went back since the list was read. If the list is the
        first to tell of it nothing that is known counts as newer any more."""
        objects, goes_back = self._kinds[listing.kind], listed < listing.since
        if listing.history != objects.history:
            return not goes_back
        if goes_back:
            _log.warning(
                "%s went back from version %d to %d: was etcd restored from a backup?",
                listing.kind.plural,
                listing.since,
                listed,
            )
            objects.go_back()
        return False

    def known_version(self, kind: Kind[Any], name: str) -> int:
        """Returns as of which version the object is known, or known to be gone; -1 for neither."""
        entry = self._kinds[kind].entries.get(name)
        return entry.version if entry else _UNSURE

    def observe(self, kind: Kind[Any], body: Json) -> Change:
        """Takes over one object as it is now; what is known stays where that cannot be read.

        Returns what changed of what the operator reads.
        """
        return self.take(kind, read(kind, body))

    def take(self, kind: Kind[T], reading: Reading[T]) -> Change:
        """As ``observe``."""
        return Change.NOTHING if reading.entry is None else self._update(kind, reading.name, reading.entry)

    def forget(self, kind: Kind[T], gone: Reading[T]) -> Change:
        """Notes that one object is gone, unless a newer one of the same name is known already.

        Returns what changed.
        """
        return self._update(kind, gone.name, _Entry(gone.version, None))

    def _update(self, kind: Kind[T], name: str, new: _Entry[T]) -> Change:
        objects = self._kinds[kind]
        objects.note(new.version)
        known = objects.entries.get(name)
        is_gone_since = known is not None and known.known is None and known.version == new.version
        if objects.version(name) > new.version or is_gone_since:
            return Change.NOTHING
        return self._put(kind, name, new)

    def _put(self, kind: Kind[T], name: str, new: _Entry[T]) -> Change:
        objects = self._kinds[kind]
        known = objects.entries.get(name)
        if known and known.known == new.known:
            # The object stays the one that it is: what was made of it still holds.
            objects.entries[name] = _Entry(new.version, known.known)
            return Change.NOTHING
        return self._changed(kind, objects.put(name, new), new.known)

    def _changed(self, kind: Kind[T], old: T | None, new: T | None) -> Change:
        if old is None and new is None:
            return Change.NOTHING
        self._snapshot = None
        self._note(kind, old, new)
        is_same = old is not None and new is not None and kind.is_decided_alike(old, new)
        return Change.FIGURES if is_same else Change.ALL

    def _note(self, kind: Kind[Any], old: Any, new: Any) -> None:
        """Keeps what is derived from objects true to them."""
        if kind is NODES or kind is SHARE_NODES:
            self._states.note({each.name for each in (old, new) if each})
        elif kind is PODS:
            self._states.note_pod(old, new)
        elif kind is POLICIES and new is None:
            self._indexes.forget(old.name)

    def replace_schedulers(self, schedulers: Iterable[SchedulerObject]) -> None:
        """Takes over all kube-schedulers that there are."""
        self._snapshot = None
        self._schedulers = {scheduler.name: scheduler for scheduler in schedulers}

    def replace_volcano_configs(self, configs: Mapping[VolcanoLocation, VolcanoConfigObject]) -> None:
        """Takes over all configurations of Volcano's scheduler that anybody asked for."""
        self._snapshot = None
        self._volcano_configs = dict(configs)

    def replace_unavailable(self, unavailable: Mapping[str, datetime]) -> bool:
        """Takes over which plugins are not heard of, and since when. Returns whether that is new."""
        if unavailable == self._states.unavailable:
            return False
        self._snapshot = None
        self._states.note_unavailable(unavailable)
        return True

    def replace_refusals(self, refusals: Mapping[str, str]) -> bool:
        """Takes over why pods are not made. Returns whether that is new."""
        if refusals == self._refusals:
            return False
        self._snapshot, self._refusals = None, refusals
        return True

    def replace_server_facts(self, facts: ServerFacts | None) -> None:
        """Takes over what is known of the API server; None: nobody asks any more."""
        self._snapshot = None
        self._server = facts

    def observe_volcano_config(self, location: VolcanoLocation, config: VolcanoConfigObject) -> None:
        self._snapshot = None
        self._volcano_configs[location] = config

    def forget_volcano_config(self, location: VolcanoLocation) -> None:
        self._snapshot = None
        self._volcano_configs.pop(location, None)

    def snapshot(self) -> ClusterSnapshot:
        """Returns the same one until something changes."""
        if self._snapshot is None:
            self._snapshot = self._take_snapshot()
        return self._snapshot

    def _take_snapshot(self) -> ClusterSnapshot:
        nodes, share_nodes = self._objects(NODES), self._objects(SHARE_NODES)
        return ClusterSnapshot(
            policies=self._objects(POLICIES),
            nodes=nodes,
            share_nodes=share_nodes,
            daemon_sets=self._objects(DAEMON_SETS),
            deployments=self._objects(DEPLOYMENTS),
            jobs=self._objects(JOBS),
            pods=self._objects(PODS),
            schedulers=self._schedulers,
            calls=self._objects(CALLS),
            volcano_backups=self._objects(VOLCANO_BACKUPS),
            volcano_configs=dict(self._volcano_configs),
            server=self._server,
            unavailable=self._states.unavailable,
            refusals=self._refusals,
            known_states=self._states.hand_out(nodes, share_nodes),
            indexes=self._indexes,
        )

    def policies(self) -> list[str]:
        """Returns the names of all policies."""
        return list(self._objects(POLICIES))

    def _objects(self, kind: Kind[T]) -> dict[str, T]:
        return self._kinds[kind].hand_out()


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
