"""List and watch: the current state of a collection, then every change, for ever."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gpushare_core.kube.client import METADATA, METADATA_LIST, KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError

Json = dict[str, Any]
Sleep = Callable[[float], Awaitable[None]]

PAGE = 500
WATCH_SECONDS = 290
IDLE_SECONDS = 330.0
"""The server ends every watch earlier by itself; longer silence means a dead connection."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listed:
    """The whole collection, read consistently: what is not in it is gone."""

    items: list[Json]


@dataclass(frozen=True, slots=True)
class Changed:
    """``kind`` is ADDED, MODIFIED or DELETED."""

    kind: str
    item: Json


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
    """Growing pauses with full jitter. ``sleep`` and ``jitter`` are replaced in tests."""

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


async def follow(
    client: KubeClient, collection: Collection, *, backoff: Backoff | None = None
) -> AsyncIterator[Listed | Changed]:
    """Yield one ``Listed``, then each ``Changed``; another ``Listed`` whenever the thread was lost.

    Never ends by itself and never raises for what the API server does: it is logged and tried again.
    """
    pauses = backoff or Backoff()
    while True:
        try:
            listed, version = await list_all(client, collection)
            yield Listed(listed)
            pauses.reset()
            async for change in _watch_from(client, collection, version, pauses):
                yield change
        except (ApiError, UnreachableError) as error:
            _log.warning("lost sight of %s, listing again: %s", collection.path, error)
        await pauses.pause()


async def list_all(client: KubeClient, collection: Collection) -> tuple[list[Json], str]:
    """All items, page by page, and the resource version they are of. The read is consistent (quorum)."""
    items: list[Json] = []
    follow_on = ""
    accept = METADATA_LIST if collection.metadata_only else "application/json"
    while True:
        params = collection.params(**{"limit": str(PAGE), "continue": follow_on})
        page = await client.get(collection.path, params=params, accept=accept)
        items.extend(page.get("items") or ())
        follow_on = page["metadata"].get("continue", "")
        if not follow_on:
            return items, page["metadata"]["resourceVersion"]


async def _watch_from(
    client: KubeClient, collection: Collection, version: str, pauses: Backoff
) -> AsyncIterator[Changed]:
    """Watch again and again from where the last one ended, until the server has forgotten that point."""
    accept = METADATA if collection.metadata_only else "application/json"
    while True:
        params = collection.params(
            watch="1", resourceVersion=version, allowWatchBookmarks="true", timeoutSeconds=str(WATCH_SECONDS)
        )
        try:
            async for event in client.stream(
                collection.path, params=params, accept=accept, idle=IDLE_SECONDS
            ):
                for change in _changes(event):
                    yield change
                version = event["object"]["metadata"]["resourceVersion"]
                pauses.reset()
        except UnreachableError as error:
            _log.info("watch of %s broke, resuming: %s", collection.path, error)
        await pauses.pause()


def _changes(event: Json) -> Iterator[Changed]:
    """Raises ``ApiError`` for an error within the stream."""
    kind, item = event["type"], event["object"]
    if kind == "ERROR":
        raise ApiError(item.get("code", 500), item.get("reason", ""), item.get("message", ""))
    if kind != "BOOKMARK":
        yield Changed(kind, item)
