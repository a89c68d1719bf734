"""The two watches that keep the ledger up to date: of pods, and of GPUShareNodes."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from gpushare_core.kube import paths
from gpushare_core.kube.client import REQUEST_TIMEOUT, KubeClient
from gpushare_core.kube.follow import IDLE_SECONDS, Clock, Collection, Follower, Listed, follow
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.holder import PodUpdate, contradiction, read_pod
from gpushare_core.scheduling.objects.share_node import ShareNode, read_share_node
from gpushare_extender.cluster.legacy_pods import LegacyPodReader
from gpushare_extender.cluster.log_levels import LogLevels

BOUND_PODS = Collection(
    path=paths.PODS,
    field_selector="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
    metadata_only=True,
)
"""Pods that are bound and not finished. Terminating pods count, as their containers may still run."""
SHARE_NODES = Collection(path=paths.SHARE_NODES)

DEAD_SECONDS = IDLE_SECONDS + 4 * REQUEST_TIMEOUT
"""A longer silence of a watch can only have a cause inside this process."""

RELEASE_PERIOD = 0.5
"""Seconds between two looks at the deleted pods whose units are not released."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class WatchHealth:
    collection: str
    clock: Clock = time.monotonic
    listed: bool = False
    """Whether the whole collection has been in the ledger once."""
    round: int = 0
    """How often the watch was started anew."""
    settled: Callable[[], None] = field(default=lambda: None, kw_only=True)
    """Called whenever the whole collection is in the ledger, and lives long there."""
    _applied_round: int = field(default=-1, init=False)
    _last_sign: float = field(init=False)
    _applied: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        self._last_sign = self.clock()

    def applied(self) -> None:
        """The whole collection was just read and is in the ledger."""
        self.listed = True
        self._applied_round = self.round
        self._applied.set()
        self.settled()

    async def until_applied(self, begun_in: int) -> None:
        """Returns once a list that began in round ``begun_in`` or later is in the ledger."""
        while self._applied_round < begun_in:
            self._applied.clear()
            await self._applied.wait()

    def pulse(self) -> None:
        """The watch made an attempt, or the API server sent something."""
        self._last_sign = self.clock()

    @property
    def silence(self) -> float:
        """Seconds since the last pulse."""
        return self.clock() - self._last_sign

    def follower(self) -> Follower:
        return Follower(clock=self.clock, pulse=self.pulse)


@dataclass(slots=True)
class Watch:
    """One watch that can be made to list everything anew."""

    follow: Callable[[], Coroutine[Any, Any, None]]
    """Lists and watches, for ever."""
    health: WatchHealth
    _asked: int = field(default=0, init=False)
    """The round of which a list was asked for last."""
    _again: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    async def run(self) -> None:
        """Follows, and starts anew whenever ``read_again`` is called; never returns."""
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
                following.cancel()
                again.cancel()
                await asyncio.gather(following, again, return_exceptions=True)

    async def read_again(self) -> None:
        """Returns once all that the API server has now is in the ledger, by a consistent read: the watch may
        lag behind."""
        self._asked += 1
        asked = self._asked
        self._again.set()
        await self.health.until_applied(asked)


class AnnotationWarnings:
    """Warns once about each annotation that cannot be read."""

    def __init__(self) -> None:
        self._warned: dict[str, str] = {}
        """Pod UID -> message."""

    def update(self, pod: PodUpdate) -> None:
        if not pod.message:
            self.drop(pod.uid)
        elif self._warned.get(pod.uid) != pod.message:
            self._warned[pod.uid] = pod.message
            _log.warning("wrong annotation: %s", pod.message)

    def drop(self, uid: str) -> None:
        self._warned.pop(uid, None)

    def replace(self, pods: Iterable[PodUpdate]) -> None:
        """``pods`` are all there are: the others are dropped."""
        unreadable = {pod.uid: pod for pod in pods if pod.message}
        self._warned = {uid: message for uid, message in self._warned.items() if uid in unreadable}
        for pod in unreadable.values():
            self.update(pod)


async def watch_pods(
    client: KubeClient,
    ledger: Ledger,
    health: WatchHealth,
    gone: Callable[[str], None] = lambda _uid: None,
) -> None:
    """Brings every allocation into the ledger; never returns.

    ``gone`` is called with the UID of every pod that was deleted or has ended, just before the ledger is
    told.
    """
    warnings = AnnotationWarnings()
    legacy = LegacyPodReader(client, health.pulse)
    read = partial(read_known_pod, ledger)
    async for event in follow(client, BOUND_PODS, read, follower=health.follower()):
        if isinstance(event, Listed):
            updates = [_compared(ledger, update) for update in await legacy.complete_all(event.items)]
            warnings.replace(updates)
            ledger.replace_pods(updates, begun=event.begun)
            del event, updates  # else the whole list would stay in memory until the next one
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
    """Frees the units of deleted pods after a limited time; never returns. ``clock``: that of the watch of
    pods."""
    while True:
        await sleep(RELEASE_PERIOD)
        ledger.free_unreleased(now=clock())


def read_known_pod(ledger: Ledger, raw: msgspec.Raw | bytes) -> PodUpdate:
    """Returns the known object where it is equal: nearly all of a list that is read anew is known, and would
    be in memory twice until the whole list is read."""
    update = read_pod(raw)
    known = PodUpdate(update.uid, ledger.holder(update.uid))
    return known if known == update else update


def read_known_share_node(ledger: Ledger, raw: msgspec.Raw | bytes) -> ShareNode:
    """As ``read_known_pod``."""
    read = read_share_node(raw)
    known = ledger.share_node(read.name)
    return known if known == read else read


def _compared(ledger: Ledger, update: PodUpdate) -> PodUpdate:
    """Returns ``update``, with a message if it contradicts what is known of the pod."""
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
    """Brings every GPUShareNode into the ledger; never returns. ``reported`` is called with the name of every
    node whose GPUShareNode has changed."""
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
    """Logs each reason once, however often the plugin writes the status."""
    if share_node.closed_reason and (known is None or known.closed_reason != share_node.closed_reason):
        _log.info("the node takes no pods: %s", share_node.closed_reason, extra={"node": share_node.name})
