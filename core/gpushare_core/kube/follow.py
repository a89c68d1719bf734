"""List and watch: the objects of a collection, then every change, without end.

Source: Kubernetes API concepts, "Efficient detection of changes" and "Resource versions".
"""

import logging
import random
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Generic, TypeVar, overload

import msgspec

from gpushare_core.kube.backoff import Backoff, Jitter
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError, WatchEventTooLargeError, asked_to_wait
from gpushare_core.kube.request import JSON, METADATA, METADATA_LIST, ApiRequest
from gpushare_core.kube.response import ListMetadata, ListResponse
from gpushare_core.text.json_object import UNREADABLE_JSON, Json
from gpushare_core.text.whole_number import version_number

Clock = Callable[[], float]
"""Monotonic seconds."""
T = TypeVar("T")
Reader = Callable[[msgspec.Raw], T]
"""Reads what is needed of one object's JSON, or raises one of ``UNREADABLE_JSON``. It is applied page by
page, so that a large list is never in memory as a whole."""

PAGE = 500
WATCH_SECONDS = 290
"""The server ends a watch after this time at the earliest, and after twice this time at the latest;
client-go: from five minutes. The time is drawn at random: otherwise all watches of a cluster, once broken
together, would be opened together ever after."""
IDLE_SECONDS = 90.0
"""The server sends a bookmark about once a minute. A longer silence means a dead connection, or a version in
the future: see ``DOUBT_SECONDS``."""
DOUBT_SECONDS = 80.0
"""After so long without an event the server is asked, by one small list, whether it has reached the version
that the watch resumes from. The time is shorter than ``IDLE_SECONDS``: one silent watch is enough for the
question.

After etcd was restored from a backup that version may lie in the future. The API server accepts such a watch
and sends nothing until it reaches that version; what happened before is never sent (Kubernetes issue
107457)."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """The whole collection, read consistently: what is not in it is gone."""

    items: list[T]
    begun: float = 0.0
    """When the read began, by the follower's clock: it contains everything written before."""
    version: str = ""
    """The resource version of the whole list."""


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """``kind`` is ADDED, MODIFIED or DELETED."""

    kind: str
    item: T


@dataclass(frozen=True, slots=True)
class Collection:
    """What to follow."""

    path: str
    field_selector: str = ""
    label_selector: str = ""
    metadata_only: bool = False

    def params(self, **extra: str) -> dict[str, str]:
        given = {"fieldSelector": self.field_selector, "labelSelector": self.label_selector, **extra}
        return {name: value for name, value in given.items() if value}


@dataclass(slots=True)
class Follower:
    """How to follow: replaced in tests, watched by health checks."""

    backoff: Backoff = field(default_factory=Backoff)
    clock: Clock = time.monotonic
    pulse: Callable[[], None] = lambda: None
    """Called at every attempt and at every event."""
    jitter: Jitter = random.random
    """Draws how much longer than ``WATCH_SECONDS`` a watch lasts."""
    list_begins: Callable[[], None] = lambda: None
    """Called before a list is requested: the list contains everything that anybody knew until then."""
    missed: Callable[[Exception], None] = lambda _error: None
    """Called when changes may have been missed: what is known is old until the next list."""


@dataclass(slots=True)
class _WatchPosition:
    """Where a watch resumes."""

    version: str
    confirmed: float
    """When the server last showed that it has reached the version."""


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


class Versioned(msgspec.Struct):
    """The resource version of any object."""

    metadata: ListMetadata


class _WatchErrorStatus(msgspec.Struct):
    """Source: ``metav1.Status``."""

    code: int = 500
    reason: str = ""
    message: str = ""


def as_json(raw: msgspec.Raw) -> Json:
    """Reads the whole object."""
    decoded: Json = msgspec.json.decode(raw)
    return decoded


@overload
def follow(
    client: KubeClient, collection: Collection, *, follower: Follower | None = None
) -> AsyncIterator[Listed[Json] | Changed[Json]]: ...


@overload
def follow(
    client: KubeClient, collection: Collection, read: Reader[T], *, follower: Follower | None = None
) -> AsyncIterator[Listed[T] | Changed[T]]: ...


async def follow(
    client: KubeClient,
    collection: Collection,
    read: Reader[Any] = as_json,
    *,
    follower: Follower | None = None,
) -> AsyncIterator[Listed[Any] | Changed[Any]]:
    """Yields one ``Listed``, then every ``Changed``; another ``Listed`` when changes may have been missed.

    Never ends by itself, and never raises for what the API server does: that is logged, and tried again.
    """
    run = _Follow(client, collection, read, follower or Follower())
    while True:
        least = 0.0
        try:
            async for event in run.list_and_watch():
                events = [event]
                del event  # a list would stay in memory until the next change
                yield events.pop()
        except (ApiError, UnreachableError, WatchEventTooLargeError, *UNREADABLE_JSON) as error:
            _log.warning("changes of %s may have been missed, listing again: %s", collection.path, error)
            least = asked_to_wait(error)
            run.follower.missed(error)
        await run.follower.backoff.wait(least)


@dataclass(frozen=True, slots=True)
class _Follow(Generic[T]):
    """One run of ``follow``."""

    client: KubeClient
    collection: Collection
    read: Reader[T]
    follower: Follower

    async def list_and_watch(self) -> AsyncIterator[Listed[T] | Changed[T]]:
        """Yields the list, then every change.

        Raises:
            ApiError, UnreachableError, WatchEventTooLargeError, one of ``UNREADABLE_JSON``: a change may have
                been missed.
        """
        begun = self.follower.clock()
        self.follower.list_begins()
        items, version = await self._list()
        listed = [Listed(items, begun, version)]
        del items  # the list would stay in memory as long as the watch
        yield listed.pop()
        async for change in self._watch_from(version):
            yield change

    async def _list(self) -> tuple[list[T], str]:
        """Returns all objects and their resource version, by a consistent read (quorum)."""
        items: list[T] = []
        token = ""
        while True:
            self.follower.pulse()
            page = await self.client.read(self._page_request(token), shape=ListResponse[msgspec.Raw])
            items.extend(map(self.read, page.items or ()))
            token = page.metadata.next_page
            if not token:
                return items, page.metadata.resource_version

    async def _watch_from(self, version: str) -> AsyncIterator[Changed[T]]:
        """Watches again and again from where the last watch ended.

        Raises:
            ApiError: the server no longer has that version, or has not reached it, or sent an error as event.
            WatchEventTooLargeError: the next event is too large.
        """
        position = _WatchPosition(version, self.follower.clock())
        while True:
            self.follower.pulse()
            least = 0.0
            try:
                async for event in self._watch_once(position):
                    self._see(event, position)
                    if event.type != "BOOKMARK":
                        yield Changed(event.type, self.read(event.object))
            except UnreachableError as error:
                _log.info("watch of %s broke, resuming: %s", self.collection.path, error)
                least = asked_to_wait(error)
            await self.follower.backoff.wait(least)

    def _see(self, event: _WatchEvent, position: _WatchPosition) -> None:
        """Moves ``position`` behind ``event``. Raises ``ApiError`` for an error that came as event."""
        if event.type == "ERROR":
            status = msgspec.json.decode(event.object, type=_WatchErrorStatus)
            raise ApiError(status.code, status.reason, status.message)
        version = msgspec.json.decode(event.object, type=Versioned).metadata.resource_version
        _refuse_past(version, position)
        self.follower.pulse()
        self.follower.backoff.reset()
        position.version, position.confirmed = version, self.follower.clock()

    async def _watch_once(self, position: _WatchPosition) -> AsyncIterator[_WatchEvent]:
        try:
            if self.follower.clock() - position.confirmed >= DOUBT_SECONDS:
                await self._confirm(position)
            async for line in self.client.stream(self._watch_request(position.version), idle=IDLE_SECONDS):
                yield msgspec.json.decode(line, type=_WatchEvent)
        except ApiError as error:
            if error.is_final:
                raise
            # The server is overloaded: the position is still valid.
            raise UnreachableError(str(error), retry_after=error.retry_after) from error

    async def _confirm(self, position: _WatchPosition) -> None:
        """Raises ``ApiError`` where the server has not reached ``position``."""
        page = await self.client.read(self._page_request("", limit=1), shape=ListResponse[msgspec.Raw])
        _refuse_past(page.metadata.resource_version, position)
        position.confirmed = self.follower.clock()

    def _page_request(self, token: str, *, limit: int = PAGE) -> ApiRequest:
        params = self.collection.params(**{"limit": str(limit), "continue": token})
        accept = METADATA_LIST if self.collection.metadata_only else JSON
        return ApiRequest(path=self.collection.path, params=params, accept=accept)

    def _watch_request(self, version: str) -> ApiRequest:
        params = self.collection.params(
            watch="1",
            resourceVersion=version,
            allowWatchBookmarks="true",
            timeoutSeconds=str(int(WATCH_SECONDS * (1.0 + self.follower.jitter()))),
        )
        accept = METADATA if self.collection.metadata_only else JSON
        return ApiRequest(path=self.collection.path, params=params, accept=accept)


def _refuse_past(version: str, position: _WatchPosition) -> None:
    """Raises ``ApiError`` for a version before ``position``; text that is no version passes."""
    if 0 < version_number(version) < version_number(position.version):
        message = f"version {version} comes after {position.version}: was etcd restored from a backup?"
        raise ApiError(HTTPStatus.GONE, "Expired", message)
