"""Keeping the ledger true to the cluster: one watch of pods, one of GPUShareNodes."""

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from gpushare_core.api.names import API_VERSION, NODE_PLURAL
from gpushare_core.books.dialects import Dialect
from gpushare_core.kube.client import CALL_TIMEOUT, KubeClient
from gpushare_core.kube.follow import IDLE_SECONDS, Backoff, Collection, Follower, Listed, follow_views
from gpushare_extender.ledger.holder import PodNews, read_pod
from gpushare_extender.ledger.ledger import Ledger
from gpushare_extender.ledger.share_node import NodeInventory, read_inventory

PODS = Collection(
    path="/api/v1/pods",
    field_selector="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
    metadata_only=True,
)
"""Bound and not finished. Terminating ones are in it until they are gone: their containers may still run."""
SHARE_NODES = Collection(path=f"/apis/{API_VERSION}/{NODE_PLURAL}")

DEAD_AFTER = IDLE_SECONDS + 4 * CALL_TIMEOUT
"""Seconds without a sign of life of a watcher that cannot have a cause outside this process."""

Clock = Callable[[], float]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Watcher:
    """How one watch is doing."""

    what: str
    clock: Clock = time.monotonic
    listed: bool = False
    """Whether the whole collection has been in the books once."""
    last_sign: float = field(init=False)

    def __post_init__(self) -> None:
        self.last_sign = self.clock()

    def pulse(self) -> None:
        self.last_sign = self.clock()

    @property
    def silence(self) -> float:
        """Seconds since the last attempt or sign of the server."""
        return self.clock() - self.last_sign

    def follower(self) -> Follower:
        return Follower(backoff=Backoff(), clock=self.clock, pulse=self.pulse)


class Complaints:
    """Tells of each unreadable annotation once."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def hear(self, news: PodNews) -> None:
        if not news.complaint:
            self._told.pop(news.uid, None)
        elif self._told.get(news.uid) != news.complaint:
            self._told[news.uid] = news.complaint
            _log.warning("counted as nothing: %s", news.complaint)

    def forget(self, uid: str) -> None:
        self._told.pop(uid, None)

    def hear_all(self, pods: Iterable[PodNews]) -> None:
        """All pods there are: the others are forgotten."""
        present = {news.uid: news for news in pods if news.complaint}
        for uid in self._told.keys() - present.keys():
            self.forget(uid)
        for news in present.values():
            self.hear(news)


async def watch_pods(client: KubeClient, ledger: Ledger, dialect: Dialect, watcher: Watcher) -> None:
    """Book every allocation, for ever."""
    complaints = Complaints()
    view = partial(read_pod, annotation=dialect.allocation_annotation)
    async for event in follow_views(client, PODS, view, follower=watcher.follower()):
        if isinstance(event, Listed):
            complaints.hear_all(event.items)
            ledger.replace_pods(event.items, begun=event.begun)
            watcher.listed = True
        elif event.kind == "DELETED":
            complaints.forget(event.item.uid)
            ledger.drop_pod(event.item.uid)
        else:
            complaints.hear(event.item)
            ledger.set_pod(event.item)


async def watch_share_nodes(client: KubeClient, ledger: Ledger, watcher: Watcher) -> None:
    """Book every inventory, for ever."""
    async for event in follow_views(client, SHARE_NODES, read_inventory, follower=watcher.follower()):
        if isinstance(event, Listed):
            ledger.replace_inventories(event.items)
            watcher.listed = True
        elif event.kind == "DELETED":
            ledger.drop_inventory(event.item.name)
        else:
            _note(ledger, event.item)


def _note(ledger: Ledger, inventory: NodeInventory) -> None:
    if inventory.refusal:
        _log.info("takes no pods: %s", inventory.refusal, extra={"node": inventory.name})
    ledger.set_inventory(inventory)
