"""List and watch: the current state of a collection, then every change, for ever.

Source: Kubernetes API concepts, "Efficient detection of changes" and "Resource versions".
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from gpushare_core.kube.client import METADATA, METADATA_LIST, KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError

Json = dict[str, Any]
Sleep = Callable[[float], Awaitable[None]]
Clock = Callable[[], float]
T = TypeVar("T")
View = Callable[[msgspec.Raw], T]
"""What the follower wants of one item's JSON. Applied page by page, so that a large list never lies whole."""

PAGE = 500
WATCH_SECONDS = 290
IDLE_SECONDS = 330.0
"""The server ends every watch earlier by itself; longer silence means a dead connection."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """The whole collection, read consistently: what is not in it is gone."""

    items: list[T]
    begun: float = 0.0
    """When the read began, by the follower's clock: whatever was written before that is in it."""


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
class Backoff:
    """Growing pauses with jitter. ``sleep`` and ``jitter`` are replaced in tests."""

    first: float = 0.2
    most: float = 10.0
    sleep: Sleep = asyncio.sleep
    jitter: Callable[[], float] = random.random
    _failures: int = field(default=0, init=False)

    def reset(self) -> None:
        self._failures = 0

    async def pause(self) -> None:
        ceiling = min(self.most, self.first * 2**self._failures)
        self._failures = min(self._failures + 1, 16)
        await self.sleep(ceiling * (0.5 + self.jitter() / 2))


@dataclass(slots=True)
class Follower:
    """How following is done, apart from what: replaced in tests, watched by health checks."""

    backoff: Backoff = field(default_factory=Backoff)
    clock: Clock = time.monotonic
    pulse: Callable[[], None] = lambda: None
    """Called at every attempt and every sign of the server."""


class _Version(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion", default="")
    follow_on: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: _Version
    items: list[msgspec.Raw] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Versioned(msgspec.Struct):
    metadata: _Version


class _Status(msgspec.Struct):
    """Source: ``metav1.Status``."""

    code: int = 500
    reason: str = ""
    message: str = ""


def as_json(raw: msgspec.Raw) -> Json:
    """The view that leaves nothing out."""
    decoded: Json = msgspec.json.decode(raw)
    return decoded


async def follow(
    client: KubeClient, collection: Collection, *, backoff: Backoff | None = None
) -> AsyncIterator[Listed[Json] | Changed[Json]]:
    """``follow_views`` with whole objects."""
    follower = Follower(backoff=backoff or Backoff())
    async for event in follow_views(client, collection, as_json, follower=follower):
        yield event


async def follow_views(
    client: KubeClient, collection: Collection, view: View[T], *, follower: Follower | None = None
) -> AsyncIterator[Listed[T] | Changed[T]]:
    """Yield one ``Listed``, then each ``Changed``; another ``Listed`` whenever the thread was lost.

    Never ends by itself and never raises for what the API server does: it is logged and tried again.
    """
    follower = follower or Follower()
    while True:
        try:
            begun = follower.clock()
            items, version = await _list(client, collection, view, follower)
            yield Listed(items, begun)
            async for change in _watch_from(client, collection, view, version, follower=follower):
                yield change
        except (ApiError, UnreachableError, msgspec.DecodeError, RecursionError) as error:
            _log.warning("lost sight of %s, listing again: %s", collection.path, error)
        await follower.backoff.pause()


async def _list(
    client: KubeClient, collection: Collection, view: View[T], follower: Follower
) -> tuple[list[T], str]:
    """All items, page by page, and the resource version they are of. The read is consistent (quorum)."""
    items: list[T] = []
    follow_on = ""
    accept = METADATA_LIST if collection.metadata_only else "application/json"
    while True:
        follower.pulse()
        params = collection.params(**{"limit": str(PAGE), "continue": follow_on})
        page = await client.read(collection.path, shape=_Page, params=params, accept=accept)
        items.extend(map(view, page.items or ()))
        follow_on = page.metadata.follow_on
        if not follow_on:
            return items, page.metadata.resource_version


async def _watch_from(
    client: KubeClient, collection: Collection, view: View[T], version: str, *, follower: Follower
) -> AsyncIterator[Changed[T]]:
    """Watch again and again from where the last one ended.

    Raises:
        ApiError: the server has forgotten that point, or an error came within the stream.
    """
    while True:
        follower.pulse()
        try:
            async for event in _watch_once(client, collection, version):
                _refuse_error(event)
                follower.pulse()
                follower.backoff.reset()
                version = msgspec.json.decode(event.object, type=_Versioned).metadata.resource_version
                if event.type != "BOOKMARK":
                    yield Changed(event.type, view(event.object))
        except UnreachableError as error:
            _log.info("watch of %s broke, resuming: %s", collection.path, error)
        await follower.backoff.pause()


async def _watch_once(client: KubeClient, collection: Collection, version: str) -> AsyncIterator[_Event]:
    accept = METADATA if collection.metadata_only else "application/json"
    params = collection.params(
        watch="1", resourceVersion=version, allowWatchBookmarks="true", timeoutSeconds=str(WATCH_SECONDS)
    )
    try:
        async for line in client.stream(collection.path, params=params, accept=accept, idle=IDLE_SECONDS):
            yield msgspec.json.decode(line, type=_Event)
    except ApiError as error:
        if error.is_final:
            raise
        raise UnreachableError(str(error)) from error  # overloaded for the moment: the point is still good


def _refuse_error(event: _Event) -> None:
    """Raises ``ApiError`` for an error within the stream."""
    if event.type != "ERROR":
        return
    status = msgspec.json.decode(event.object, type=_Status)
    raise ApiError(status.code, status.reason, status.message)
