"""GPUShareNodes as a watch keeps them: to list 5,000 of them every other second would be 27 MB each time."""

import asyncio
import logging
from dataclasses import dataclass, field
from http import HTTPStatus
from time import monotonic

import msgspec
from msgspec import Raw, Struct

from gpushare_cli.errors import CannotLookError, not_known
from gpushare_cli.gather.lists import not_listed
from gpushare_cli.gather.shared_cards import LISTS_SHARE_NODES, NodeName
from gpushare_core.kube import follow as following
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.follow import Collection, Follower, Listed, follow
from gpushare_core.kube.paths import SHARE_NODES
from gpushare_core.kube.request import ApiRequest
from gpushare_core.kube.response import ListResponse

LIST_SECONDS = 30.0
"""In which a list has come, else the nodes are not known."""

SILENT_SECONDS = 60.0
"""After which nodes are listed anew where the watch has said nothing: a proxy may keep back what it sends,
and a connection may be dead. Where there are many nodes one of them changes all the time."""


class NamedRaw(Struct, gc=False):
    name: str
    content: Raw


@dataclass(slots=True)
class FollowedNodes:
    """``nodes``: by name. Nothing is followed before the first ``refresh``. After a watch that cannot be
    resumed, such as one that is not allowed, they are not known until the next list."""

    client: KubeClient
    nodes: dict[str, Raw] = field(default_factory=dict)
    _listed: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None
    _missed: Exception | None = None
    """Why a list was needed last."""
    _heard: float = 0.0
    """When a list or a change came last; monotonic seconds."""

    def __post_init__(self) -> None:
        logging.getLogger(following.__name__).setLevel(logging.CRITICAL)  # the page itself says what is old

    async def refresh(self) -> None:
        """Waits until all nodes are known.

        Raises:
            CannotLookError: they cannot be read.
            NoCredentialsError: the login has expired.
        """
        await self._probe()
        is_silent = self._listed.is_set() and monotonic() - self._heard > SILENT_SECONDS
        if self._task is None or self._task.done() or is_silent:
            await self.forget()
            self._task = asyncio.create_task(self._follow())
        waiting = asyncio.create_task(self._listed.wait())
        done, _ = await asyncio.wait(
            {waiting, self._task}, timeout=LIST_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        waiting.cancel()
        if self._task in done:
            self._task.result()
        if waiting not in done:
            why = f": {self._missed}" if self._missed else ""
            raise CannotLookError(
                f"the API server does not list {SHARE_NODES} within {LIST_SECONDS:.0f} s{why}"
            ) from self._missed

    async def _probe(self) -> None:
        """Asks for one: a watch keeps silent of most that goes wrong with it."""
        request = ApiRequest(path=SHARE_NODES, params={"limit": "1"})
        try:
            await self.client.read(request, shape=ListResponse[NodeName])
        except (ApiError, UnreachableError) as error:
            if isinstance(error, ApiError) and error.status == HTTPStatus.UNAUTHORIZED:
                raise CannotLookError(not_known(error.message or error)) from error
            raise not_listed(SHARE_NODES, error, LISTS_SHARE_NODES) from error

    async def _follow(self) -> None:
        follower = Follower(missed=self._miss)
        async for event in follow(self.client, Collection(SHARE_NODES), _named, follower=follower):
            self._heard = monotonic()
            if isinstance(event, Listed):
                self.nodes = {item.name: item.content for item in event.items}
                self._listed.set()
            elif event.kind == "DELETED":
                self.nodes.pop(event.item.name, None)
            else:
                self.nodes[event.item.name] = event.item.content

    def _miss(self, error: Exception) -> None:
        self._missed = error
        self._listed.clear()

    async def forget(self) -> None:
        """After a time in which nothing could be read: the next ``refresh`` lists anew."""
        self._listed.clear()
        self._missed = None
        if task := self._task:
            self._task = None
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # looked at: what is wrong the next ``refresh`` says


def _named(raw: Raw) -> NamedRaw:
    """Copies it out of the page that it came in."""
    return NamedRaw(msgspec.json.decode(raw, type=NodeName).metadata.name, raw.copy())
