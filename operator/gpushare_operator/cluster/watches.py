"""Keeps the cache true to the cluster: one watch per kind, for ever, whatever the API server answers."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.follow import Changed, Clock, Collection, Follower, Listed, Reader, as_json, follow
from gpushare_core.text.json_object import UNREADABLE_JSON
from gpushare_core.text.whole_number import version_number
from gpushare_operator.cluster.cache import Cache, Change, Listing, ObjectVersion, read
from gpushare_operator.cluster.kinds import KINDS, Kind

Observer = Callable[[str, str | None], None]
"""Gets the plural of a kind and the type of a watch event; None for each object of a list."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class _NameAndVersion(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct):
    metadata: _NameAndVersion


@dataclass(slots=True)
class Watches:
    """``changed`` is called after a change that may decide something; ``figures_changed``, if given, after a
    change only of what statuses sum up."""

    client: KubeClient
    cache: Cache
    namespace: str
    changed: Callable[[], None]
    figures_changed: Callable[[], None] | None = None
    observed: Observer = lambda *_: None
    clock: Clock = time.monotonic
    _signs: dict[Kind[Any], float] = field(default_factory=dict, init=False)
    """When the watch of a kind was last tried, or got anything from the server."""
    _listings: dict[Kind[Any], Listing[Any]] = field(default_factory=dict, init=False)
    """Lists that are being read."""
    _unread: set[Kind[Any]] = field(default_factory=lambda: set(KINDS), init=False)
    _read: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def run(self) -> None:
        """Follows all kinds; never returns."""
        async with asyncio.TaskGroup() as group:
            for kind in KINDS:
                group.create_task(self._keep_following(kind), name=f"watch of {kind.plural}")

    async def until_read(self) -> None:
        """Returns once every kind was read: an empty cache looks like an empty cluster."""
        await self._read.wait()

    @property
    def silence(self) -> float:
        """Seconds since the oldest of the watches' last signs of life; 0 before they run."""
        return max((self.clock() - sign for sign in self._signs.values()), default=0.0)

    async def _keep_following(self, kind: Kind[Any]) -> None:
        backoff = Backoff()
        while True:
            self._sign(kind)
            try:
                await self._follow(kind)
            except Exception:
                # A defect at one object must neither end the other kinds' watches, nor stay unseen.
                _log.exception("the watch of %s failed, starting it again", kind.plural)
            await backoff.wait()

    async def _follow(self, kind: Kind[Any]) -> None:
        collection = Collection(kind.path(self.namespace), label_selector=kind.label_selector)
        follower = Follower(
            clock=self.clock, pulse=lambda: self._sign(kind), list_begins=lambda: self._begin_list(kind)
        )
        async for event in follow(self.client, collection, self._reader(kind), follower=follower):
            self._report(
                self._replace(kind, event) if isinstance(event, Listed) else self._update(kind, event)
            )

    def _report(self, change: Change) -> None:
        if change is Change.FIGURES and self.figures_changed:
            self.figures_changed()
        elif change:
            self.changed()

    def _begin_list(self, kind: Kind[Any]) -> None:
        self._listings[kind] = self.cache.listing(kind)

    def _replace(self, kind: Kind[Any], listed: Listed[ObjectVersion[Any]]) -> Change:
        listing = self._listings.pop(kind)
        for seen in listed.items:
            listing.take(seen)
            self.observed(kind.plural, None)
        change = self.cache.replace(listing, listed.version)
        self._unread.discard(kind)
        if not self._unread:
            self._read.set()
        return change

    def _update(self, kind: Kind[Any], change: Changed[ObjectVersion[Any]]) -> Change:
        self.observed(kind.plural, change.kind)
        update = self.cache.forget if change.kind == "DELETED" else self.cache.take
        return update(kind, change.item)

    def _reader(self, kind: Kind[T]) -> Reader[ObjectVersion[T]]:
        def read_one(raw: msgspec.Raw) -> ObjectVersion[T]:
            name, version = _identity(raw)
            if name and self._is_known(kind, name, version):
                return ObjectVersion(name, version, None)
            return read(kind, as_json(raw))

        return read_one

    def _is_known(self, kind: Kind[Any], name: str, version: int) -> bool:
        """Returns whether a version is not new.

        In a list only the very same version counts as known: the list may show that the API server's history
        went back, so that newer versions no longer exist.
        """
        known = self.cache.known_version(kind, name)
        return known == version if kind in self._listings else known >= version

    def _sign(self, kind: Kind[Any]) -> None:
        self._signs[kind] = self.clock()


def _identity(raw: msgspec.Raw) -> tuple[str, int]:
    """Returns name and version, for a tenth of the cost of reading the object; no name where it has none.

    The operator's own writes come back as events, and most objects in a list are known.
    """
    try:
        metadata = msgspec.json.decode(raw, type=_Identified).metadata
    except UNREADABLE_JSON:
        return "", 0
    return metadata.name, version_number(metadata.resource_version)
