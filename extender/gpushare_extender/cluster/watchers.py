"""What keeps the ledger true to the cluster: one watch of pods, one of GPUShareNodes."""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from gpushare_core.books.dialects import Dialect
from gpushare_core.kube import paths
from gpushare_core.kube.client import CALL_TIMEOUT, KubeClient
from gpushare_core.kube.follow import IDLE_SECONDS, Clock, Collection, Follower, Listed, follow
from gpushare_extender.ledger.holder import PodUpdate, read_pod
from gpushare_extender.ledger.ledger import Ledger
from gpushare_extender.ledger.share_node import ShareNode, read_share_node

BOUND_PODS = Collection(
    path=paths.PODS,
    field_selector="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
    metadata_only=True,
)
"""Bound and not finished. Terminating ones are in it until they are gone: their containers may still run."""
SHARE_NODES = Collection(path=paths.SHARE_NODES)

DEAD_SECONDS = IDLE_SECONDS + 4 * CALL_TIMEOUT
"""Silence of a watch that cannot have a cause outside this process."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class WatchHealth:
    """How one watch is doing."""

    collection: str
    clock: Clock = time.monotonic
    listed: bool = False
    """Whether the whole collection has been in the ledger once."""
    _last_sign: float = field(init=False)

    def __post_init__(self) -> None:
        self._last_sign = self.clock()

    def pulse(self) -> None:
        """The watch was tried again, or the server gave a sign."""
        self._last_sign = self.clock()

    @property
    def silence(self) -> float:
        """Seconds since the last attempt or sign of the server."""
        return self.clock() - self._last_sign

    def follower(self) -> Follower:
        return Follower(clock=self.clock, pulse=self.pulse)


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
            _log.warning("counted as nothing: %s", pod.message)

    def drop(self, uid: str) -> None:
        self._warned.pop(uid, None)

    def replace(self, pods: Iterable[PodUpdate]) -> None:
        """Takes ``pods`` for all there are: the others are dropped."""
        unreadable = {pod.uid: pod for pod in pods if pod.message}
        for uid in self._warned.keys() - unreadable.keys():
            self.drop(uid)
        for pod in unreadable.values():
            self.update(pod)


async def watch_pods(client: KubeClient, ledger: Ledger, dialect: Dialect, health: WatchHealth) -> None:
    """Brings every allocation into the ledger; never returns."""
    warnings = AnnotationWarnings()
    read = partial(read_pod, annotation=dialect.allocation_annotation)
    async for event in follow(client, BOUND_PODS, read, follower=health.follower()):
        if isinstance(event, Listed):
            warnings.replace(event.items)
            ledger.replace_pods(event.items, begun=event.begun)
            health.listed = True
        elif event.kind == "DELETED":
            warnings.drop(event.item.uid)
            ledger.drop_pod(event.item.uid)
        else:
            warnings.update(event.item)
            ledger.set_pod(event.item)


async def watch_share_nodes(client: KubeClient, ledger: Ledger, health: WatchHealth) -> None:
    """Brings every GPUShareNode into the ledger; never returns."""
    async for event in follow(client, SHARE_NODES, read_share_node, follower=health.follower()):
        if isinstance(event, Listed):
            ledger.replace_share_nodes(event.items)
            health.listed = True
        elif event.kind == "DELETED":
            ledger.drop_share_node(event.item.name)
        else:
            _log_if_closed(event.item)
            ledger.set_share_node(event.item)


def _log_if_closed(share_node: ShareNode) -> None:
    if share_node.closed_reason:
        _log.info("takes no pods: %s", share_node.closed_reason, extra={"node": share_node.name})
