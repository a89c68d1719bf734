"""What keeps the ledger true to the cluster: one watch of pods, one of GPUShareNodes."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from gpushare_core.kube import paths
from gpushare_core.kube.client import CALL_TIMEOUT, KubeClient
from gpushare_core.kube.follow import IDLE_SECONDS, Clock, Collection, Follower, Listed, follow
from gpushare_extender.cluster.legacy_pods import LegacyPodReader
from gpushare_extender.cluster.log_levels import LogLevels
from gpushare_extender.ledger.ledger import Ledger
from gpushare_extender.objects.holder import PodUpdate, contradiction, read_pod
from gpushare_extender.objects.share_node import ShareNode, read_share_node

BOUND_PODS = Collection(
    path=paths.PODS,
    field_selector="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
    metadata_only=True,
)
"""Bound and not finished. Terminating ones are in it until they are gone: their containers may still run."""
SHARE_NODES = Collection(path=paths.SHARE_NODES)

DEAD_SECONDS = IDLE_SECONDS + 4 * CALL_TIMEOUT
"""Silence of a watch that cannot have a cause outside this process."""

DEPARTURES_PERIOD = 0.5
"""Seconds between two looks at the pods that are gone and count still."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class WatchHealth:
    """How one watch is doing."""

    collection: str
    clock: Clock = time.monotonic
    listed: bool = False
    """Whether the whole collection has been in the ledger once."""
    round: int = 0
    """How often the watch was started over."""
    settled: Callable[[], None] = field(default=lambda: None, kw_only=True)
    """Is told whenever the whole collection is in the ledger: what there is lives long."""
    _applied_round: int = field(default=-1, init=False)
    _last_sign: float = field(init=False)
    _applied: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self._last_sign = self.clock()

    def applied(self) -> None:
        """The whole collection, as just read, is in the ledger."""
        self.listed = True
        self._applied_round = self.round
        self._applied.set()
        self.settled()

    async def until_applied(self, begun_in: int) -> None:
        """Returns once a list that began in that round, or later, is in the ledger."""
        while self._applied_round < begun_in:
            self._applied.clear()
            await self._applied.wait()

    def pulse(self) -> None:
        """The watch was tried again, or the server gave a sign."""
        self._last_sign = self.clock()

    @property
    def silence(self) -> float:
        """Seconds since the last attempt or sign of the server."""
        return self.clock() - self._last_sign

    def follower(self) -> Follower:
        return Follower(clock=self.clock, pulse=self.pulse)


@dataclass(slots=True)
class Watch:
    """One watch, which can be made to read everything anew."""

    follow: Callable[[], Coroutine[Any, Any, None]]
    """Lists and watches, for ever."""
    health: WatchHealth
    _asked: int = field(default=0, init=False)
    """Of how many rounds there must be a list."""
    _again: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def run(self) -> None:
        """Follows, and starts over whenever ``read_again`` asks for it; never returns."""
        while True:
            self._again.clear()
            self.health.round = self._asked
            following = asyncio.create_task(self.follow())
            again = asyncio.create_task(self._again.wait())
            try:
                await asyncio.wait({following, again}, return_when=asyncio.FIRST_COMPLETED)
                if following.done():
                    return await following
            finally:
                await _cancel(following, again)

    async def read_again(self) -> None:
        """Returns once all that the API server has by now is in the ledger: read consistently, not from a
        watch that may lag behind."""
        self._asked += 1
        asked = self._asked
        self._again.set()
        await self.health.until_applied(asked)


async def _cancel(*tasks: "asyncio.Task[Any]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class AnnotationWarnings:
    """Warns once of each annotation that cannot be read."""

    def __init__(self) -> None:
        self._warned: dict[str, str] = {}
        """Pod UID -> message."""

    def update(self, pod: PodUpdate) -> None:
        if not pod.message:
            self.drop(pod.uid)
        elif self._warned.get(pod.uid) != pod.message:
            self._warned[pod.uid] = pod.message
            _log.warning("not believed: %s", pod.message)

    def drop(self, uid: str) -> None:
        self._warned.pop(uid, None)

    def replace(self, pods: Iterable[PodUpdate]) -> None:
        """Takes ``pods`` for all there are: the others are dropped."""
        unreadable = {pod.uid: pod for pod in pods if pod.message}
        for uid in self._warned.keys() - unreadable.keys():
            self.drop(uid)
        for pod in unreadable.values():
            self.update(pod)


async def watch_pods(
    client: KubeClient,
    ledger: Ledger,
    health: WatchHealth,
    gone: Callable[[str], None] = lambda _uid: None,
) -> None:
    """Brings every allocation into the ledger; never returns.

    ``gone`` is told of every pod (UID) that was deleted or has ended, just before the ledger is.
    """
    warnings = AnnotationWarnings()
    legacy = LegacyPodReader(client, health.pulse)
    read = partial(read_known_pod, ledger)
    async for event in follow(client, BOUND_PODS, read, follower=health.follower()):
        if isinstance(event, Listed):
            updates = [_compared(ledger, update) for update in await legacy.complete_all(event.items)]
            warnings.replace(updates)
            ledger.replace_pods(updates, begun=event.begun)
            del event, updates  # else the whole list would stay until there is another one
            health.applied()
        elif event.kind == "DELETED":
            warnings.drop(event.item.uid)
            legacy.forget(event.item.uid)
            gone(event.item.uid)
            ledger.pod_deleted(event.item.uid, now=health.clock())
        else:
            update = _compared(ledger, await legacy.complete(event.item))
            warnings.update(update)
            ledger.set_pod(update)


async def free_unreleased_pods(
    ledger: Ledger, clock: Clock = time.monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Frees in time what departed pods had; never returns. ``clock``: that of the watch of pods."""
    while True:
        await sleep(DEPARTURES_PERIOD)
        ledger.free_unreleased(now=clock())


def read_known_pod(ledger: Ledger, raw: msgspec.Raw | bytes) -> PodUpdate:
    """Returns what is known already where that is the same: of a list that is read anew nearly all is, and
    would be in memory twice until all of it is there."""
    update = read_pod(raw)
    known = PodUpdate(update.uid, ledger.holder(update.uid))
    return known if known == update else update


def read_known_share_node(ledger: Ledger, raw: msgspec.Raw | bytes) -> ShareNode:
    """As ``read_known_pod``."""
    read = read_share_node(raw)
    known = ledger.share_node(read.name)
    return known if known == read else read


def _compared(ledger: Ledger, update: PodUpdate) -> PodUpdate:
    """Returns ``update`` with a message where it does not go together with what is known of the pod."""
    known = ledger.holder(update.uid)
    if known is None or update.uid in ledger.reservations:
        return update
    return contradiction(known, update)


async def watch_share_nodes(
    client: KubeClient,
    ledger: Ledger,
    health: WatchHealth,
    reported: Callable[[str], None] = lambda _node: None,
    log_levels: LogLevels | None = None,
) -> None:
    """Brings every GPUShareNode into the ledger; never returns.

    ``reported`` is told the name of every node of which something new was seen.
    """
    log_levels = log_levels or LogLevels()
    read = partial(read_known_share_node, ledger)
    async for event in follow(client, SHARE_NODES, read, follower=health.follower()):
        if isinstance(event, Listed):
            ledger.replace_share_nodes(event.items)
            log_levels.replace(event.items)
            del event
            health.applied()
        elif event.kind == "DELETED":
            ledger.drop_share_node(event.item.name)
            log_levels.drop(event.item.name)
        else:
            known = ledger.share_node(event.item.name)
            _log_if_closed(event.item, known)
            log_levels.set(event.item)
            if event.item != known:
                ledger.set_share_node(event.item)
                reported(event.item.name)


def _log_if_closed(share_node: ShareNode, known: ShareNode | None) -> None:
    """Once for each reason: its plugin writes a status as often as it likes."""
    if share_node.closed_reason and (known is None or known.closed_reason != share_node.closed_reason):
        _log.info("takes no pods: %s", share_node.closed_reason, extra={"node": share_node.name})
