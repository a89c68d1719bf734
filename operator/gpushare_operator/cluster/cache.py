"""The operator's cache of the cluster: filled by lists, watch events and answers, read as snapshots."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from typing import Any, Generic, TypeVar

from gpushare_core.api.plugin_heartbeat import IsolationFiles
from gpushare_core.text.json_object import Json
from gpushare_core.text.whole_number import version_number
from gpushare_operator.cluster import kinds
from gpushare_operator.cluster.nodes.node_index import NodeIndexes
from gpushare_operator.cluster.nodes.observed_states import StateKeeper
from gpushare_operator.cluster.objects import (
    ReadResult,
    SchedulerObject,
    ServerFacts,
    VolcanoConfigObject,
    VolcanoLocation,
)
from gpushare_operator.cluster.snapshot import ClusterSnapshot

T = TypeVar("T")

_UNREADABLE = (LookupError, TypeError, AttributeError, ValueError)
"""What readers raise for an object that does not keep to its schema."""
_UNSURE = -1
"""Version of what was known before the API server's history went back: any version is newer."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Known(Generic[T]):
    """``known`` is None for an object that is gone since ``version``."""

    version: int
    known: T | None


@dataclass(frozen=True, slots=True)
class ObjectVersion(Generic[T]):
    """One version of an object, of which only what the operator reads is kept.

    ``entry`` is None for a version that cannot be read, or is known: what is known stays.
    """

    name: str
    version: int
    entry: _Known[T] | None


@dataclass(slots=True)
class Listing(Generic[T]):
    """A list that is being read page by page; made before the first page is asked for."""

    kind: kinds.Kind[T]
    known: Mapping[str, _Known[T]] = field(default_factory=dict)
    """Most of thousands of objects are as they were, and are not held twice."""
    entries: dict[str, _Known[T]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    """Names of objects whose ``known`` entry stays."""
    since: int = _UNSURE
    """The newest version known when the list was asked for: the list is of that version or a newer one."""
    history: int = 0
    """``_Objects.history`` then."""

    def add(self, bodies: Iterable[Json]) -> None:
        for body in bodies:
            name, version = _name(body), _version(body)
            known = self.known.get(name)
            is_known = known is not None and known.version == version
            self.take(ObjectVersion(name, version, None) if is_known else read(self.kind, body))

    def take(self, seen: ObjectVersion[T]) -> None:
        if seen.entry is None:
            self.kept.add(seen.name)
            return
        known, entry = self.known.get(seen.name), seen.entry
        is_same = known is not None and known.known == entry.known
        self.entries[seen.name] = _Known(entry.version, known.known) if known and is_same else entry


class Change(IntEnum):
    """What the operator reads differently in a new version of an object; false for nothing."""

    NOTHING = 0
    FIGURES = 1
    """Only what statuses sum up: nothing is decided by it."""
    ALL = 2


@dataclass(slots=True)
class _Objects(Generic[T]):
    """The objects of one kind."""

    entries: dict[str, _Known[T]] = field(default_factory=dict)
    listed: int = _UNSURE
    """Version of the last list: what is not in ``entries`` did not exist then."""
    newest: int = _UNSURE
    history: int = 0
    """How often the API server's history went back."""
    _present: dict[str, T] = field(default_factory=dict)
    _is_shared: bool = False

    def put(self, name: str, entry: _Known[T]) -> T | None:
        """Returns what was known before."""
        old = self.entries.get(name)
        self.entries[name] = entry
        before = old.known if old else None
        if before is not entry.known:
            self._show(name, entry.known)
        return before

    def drop(self, name: str) -> T | None:
        """As ``put``, for an object that is gone."""
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
        """Returns as of which version the object is known, or known not to exist."""
        entry = self.entries.get(name)
        return entry.version if entry else self.listed

    def go_back(self) -> None:
        """The API server's history went back: what is known stays until any version replaces it."""
        known = {name: entry.known for name, entry in self.entries.items() if entry.known is not None}
        self.entries = {name: _Known(_UNSURE, present) for name, present in known.items()}
        self.listed = self.newest = _UNSURE
        self.history += 1

    def note(self, version: int) -> None:
        self.newest = max(self.newest, version)

    def hand_out(self) -> dict[str, T]:
        """Returns a mapping that is never changed afterwards."""
        self._is_shared = True
        return self._present


@dataclass(slots=True)
class Cache:
    """Objects by kind and name.

    Lists, watch events and answers to writes arrive in any order: the newest version of an object wins.
    Resource versions can be compared as numbers (KEP-5504).

    Versions go back when etcd is restored from a backup. Lists are consistent reads, so a list of an older
    version than was known when it was asked for shows that this has happened.
    """

    _kinds: dict[kinds.Kind[Any], _Objects[Any]] = field(
        default_factory=lambda: {kind: _Objects() for kind in kinds.KINDS}
    )
    _schedulers: dict[str, SchedulerObject] = field(default_factory=dict)
    _volcano_configs: dict[VolcanoLocation, VolcanoConfigObject] = field(default_factory=dict)
    _kubernetes: str = ""
    _server: ServerFacts | None = None
    _scheduler_rights: ReadResult | None = None
    _refusals: Mapping[str, str] = field(default_factory=dict)
    _isolation_files: Mapping[str, IsolationFiles | None] | None = None
    _states: StateKeeper = field(default_factory=StateKeeper)
    _indexes: NodeIndexes = field(default_factory=NodeIndexes)
    _snapshot: ClusterSnapshot | None = None
    """None: something has changed since."""

    def listing(self, kind: kinds.Kind[T]) -> Listing[T]:
        """Returns an empty list, to be filled from now on and given to ``replace``."""
        objects = self._kinds[kind]
        return Listing(kind, known=objects.entries, since=objects.newest, history=objects.history)

    def replace(self, listing: Listing[Any], version: str) -> Change:
        """Takes over a list as of ``version``: what is neither in it nor newer is gone.

        A list older than the last one changes nothing.
        """
        kind, objects, listed = listing.kind, self._kinds[listing.kind], version_number(version)
        if self._is_of_lost_history(listing, listed) or listed < objects.listed:
            return Change.NOTHING
        objects.note(listed)
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
        """Returns whether the API server's history went back since the list was read.

        If this list is the first to show that, nothing that is known counts as newer any more.
        """
        objects, goes_back = self._kinds[listing.kind], listed < listing.since
        if listing.history != objects.history:
            return not goes_back
        if goes_back:
            _log.warning(
                "%s went back from resource version %d to %d: was etcd restored from a backup?",
                listing.kind.plural,
                listing.since,
                listed,
            )
            objects.go_back()
        return False

    def known_version(self, kind: kinds.Kind[Any], name: str) -> int:
        """Returns as of which version the object is known, or known to be gone; -1 if it is not known."""
        entry = self._kinds[kind].entries.get(name)
        return entry.version if entry else _UNSURE

    def observe(self, kind: kinds.Kind[Any], body: Json) -> Change:
        """Takes over one object; what is known stays where the new version cannot be read."""
        return self.take(kind, read(kind, body))

    def take(self, kind: kinds.Kind[T], seen: ObjectVersion[T]) -> Change:
        return Change.NOTHING if seen.entry is None else self._update(kind, seen.name, seen.entry)

    def forget(self, kind: kinds.Kind[T], gone: ObjectVersion[T]) -> Change:
        """Notes that one object is gone, unless a newer one of the same name is known."""
        return self._update(kind, gone.name, _Known(gone.version, None))

    def _update(self, kind: kinds.Kind[T], name: str, new: _Known[T]) -> Change:
        objects = self._kinds[kind]
        objects.note(new.version)
        known = objects.entries.get(name)
        is_gone_since = known is not None and known.known is None and known.version == new.version
        if objects.version(name) > new.version or is_gone_since:
            return Change.NOTHING
        return self._put(kind, name, new)

    def _put(self, kind: kinds.Kind[T], name: str, new: _Known[T]) -> Change:
        objects = self._kinds[kind]
        known = objects.entries.get(name)
        if known and known.known == new.known:
            # The same object stays: what was made from it stays, too.
            objects.entries[name] = _Known(new.version, known.known)
            return Change.NOTHING
        return self._changed(kind, objects.put(name, new), new.known)

    def _changed(self, kind: kinds.Kind[T], old: T | None, new: T | None) -> Change:
        if old is None and new is None:
            return Change.NOTHING
        self._snapshot = None
        self._note(kind, old, new)
        is_same = old is not None and new is not None and kind.is_decided_alike(old, new)
        return Change.FIGURES if is_same else Change.ALL

    def _note(self, kind: kinds.Kind[Any], old: Any, new: Any) -> None:
        """Keeps what is derived from objects up to date."""
        if kind is kinds.NODES or kind is kinds.SHARE_NODES:
            self._states.note({(new or old).name})
        elif kind is kinds.PODS:
            self._states.note_pod(old, new)
        elif kind is kinds.POLICIES and new is None:
            self._indexes.forget(old.name)

    def replace_schedulers(self, schedulers: Iterable[SchedulerObject]) -> None:
        self._snapshot = None
        self._schedulers = {scheduler.name: scheduler for scheduler in schedulers}

    def replace_volcano_configs(self, configs: Mapping[VolcanoLocation, VolcanoConfigObject]) -> None:
        self._snapshot = None
        self._volcano_configs = dict(configs)

    def replace_unavailable(self, unavailable: Mapping[str, datetime]) -> bool:
        """Returns whether that is new, as do the next three."""
        if unavailable == self._states.unavailable:
            return False
        self._snapshot = None
        self._states.note_unavailable(unavailable)
        return True

    def replace_isolation_files(self, files: Mapping[str, IsolationFiles | None]) -> bool:
        if files == self._isolation_files:
            return False
        self._snapshot, self._isolation_files = None, files
        return True

    def replace_refusals(self, refusals: Mapping[str, str]) -> bool:
        if refusals == self._refusals:
            return False
        self._snapshot, self._refusals = None, refusals
        return True

    def replace_kubernetes(self, version: str) -> bool:
        if version == self._kubernetes:
            return False
        self._snapshot, self._kubernetes = None, version
        return True

    def replace_server_facts(self, facts: ServerFacts | None) -> None:
        """``facts``: None when nobody needs them any more."""
        self._snapshot = None
        self._server = facts

    def replace_scheduler_rights(self, rights: ReadResult | None) -> None:
        """``rights``: None when nobody needs them any more."""
        self._snapshot, self._scheduler_rights = None, rights

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
        nodes, share_nodes = self._objects(kinds.NODES), self._objects(kinds.SHARE_NODES)
        return ClusterSnapshot(
            policies=self._objects(kinds.POLICIES),
            nodes=nodes,
            share_nodes=share_nodes,
            daemon_sets=self._objects(kinds.DAEMON_SETS),
            deployments=self._objects(kinds.DEPLOYMENTS),
            jobs=self._objects(kinds.JOBS),
            pods=self._objects(kinds.PODS),
            schedulers=self._schedulers,
            calls=self._objects(kinds.CALLS),
            volcano_backups=self._objects(kinds.VOLCANO_BACKUPS),
            volcano_configs=dict(self._volcano_configs),
            kubernetes=self._kubernetes,
            server=self._server,
            scheduler_rights=self._scheduler_rights,
            unavailable=self._states.unavailable,
            refusals=self._refusals,
            isolation_files=self._isolation_files,
            known_states=self._states.hand_out(nodes, share_nodes),
            indexes=self._indexes,
        )

    def policies(self) -> list[str]:
        """Names."""
        return list(self._objects(kinds.POLICIES))

    def _objects(self, kind: kinds.Kind[T]) -> dict[str, T]:
        return self._kinds[kind].hand_out()


def read(kind: kinds.Kind[T], body: Json) -> ObjectVersion[T]:
    """Raises nothing: an object that cannot be read must not keep the others from being read."""
    name, version = _name(body), _version(body)
    try:
        return ObjectVersion(name, version, _Known(version, kind.read(body)))
    except _UNREADABLE as error:
        _log.warning("cannot read %s %r: %r", kind.plural, name, error)
        return ObjectVersion(name, version, None)


def _name(body: Json) -> str:
    return str(_metadata(body).get("name") or "")


def _version(body: Json) -> int:
    return version_number(str(_metadata(body).get("resourceVersion", "")))


def _metadata(body: Any) -> Json:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return metadata if isinstance(metadata, dict) else {}
