"""Pausing a node whose kubelet rejects the pods that are bound there.

The units of a plugin that goes away leave the node only with the kubelet's next status, up to 10 s later.
Until then kube-scheduler sends pods there, and the kubelet fails each of them for good. The sign is a pod
that leaves the ledger right after its bind: its status says whether it was rejected or ended by itself.
"""

import asyncio
import logging
from dataclasses import dataclass, field

from gpushare_core.kube.backoff import backoff_delay
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import pod_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.decide.pod_state import PodState, rejection_for

RIGHT_AFTER = 10.0
"""Seconds: the end of a pod that was bound longer ago is not looked at."""
FIRST_PAUSE = 5.0
MAX_PAUSE = 60.0
MAX_READS = 4
"""At a time: a missed sign comes again with the next pod."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecentBind:
    pod: PodReference
    node: str
    moment: float


@dataclass(slots=True)
class NodePauses:
    """Pauses are longer each time, until a pod stays or the node's plugin reports."""

    client: KubeClient
    ledger: Ledger
    timing: BindTiming
    _recent: dict[str, RecentBind] = field(default_factory=dict, init=False)
    """By pod UID, oldest first."""
    _rejections: dict[str, int] = field(default_factory=dict, init=False)
    """Node -> how many pauses there were in a row."""
    _until: dict[str, float] = field(default_factory=dict, init=False)
    """Node that is paused -> the end of its pause."""
    _reads: "dict[str, asyncio.Task[None]]" = field(default_factory=dict, init=False)
    """By node."""

    def bound(self, pod: PodReference, node: str) -> None:
        """The pod was bound just now; the watch may have shown its end already."""
        self._recent[pod.uid] = RecentBind(pod, node, self.timing.clock())
        if self.ledger.holder(pod.uid) is None:
            self.gone(pod.uid)

    def gone(self, uid: str) -> None:
        """A watch shows that the pod was deleted, or has ended. To be called before the ledger is updated."""
        bind = self._recent.pop(uid, None)
        if bind is None or self.timing.clock() - bind.moment > RIGHT_AFTER or self._was_admitted(bind):
            return
        if bind.node not in self._until and bind.node not in self._reads and len(self._reads) < MAX_READS:
            read = asyncio.create_task(self._look_at(bind))
            self._reads[bind.node] = read
            read.add_done_callback(lambda _: self._reads.pop(bind.node))

    def reported(self, node: str) -> None:
        """The node's plugin is there: earlier rejections count no longer."""
        if read := self._reads.get(node):
            read.cancel()
        self._rejections.pop(node, None)
        self._resume(node)

    async def end_in_time(self) -> None:
        """Ends every pause when its time has come; never returns."""
        while True:
            await self.timing.sleep(1.0)
            now = self.timing.clock()
            for node in [node for node, until in self._until.items() if until <= now]:
                self._resume(node)
            for bind in [*self._recent.values()]:
                if self.ledger.holder(bind.pod.uid) is None:  # a list has shown that it is gone
                    self.gone(bind.pod.uid)
            for bind in [bind for bind in self._recent.values() if now - bind.moment > RIGHT_AFTER]:
                del self._recent[bind.pod.uid]
                self._rejections.pop(bind.node, None)

    def _was_admitted(self, bind: RecentBind) -> bool:
        """Returns whether the node's plugin has reported the pod's units: then the pod need not be read. Such
        a pod is rejected only by a kubelet that was restarted, or between two Allocates. Then the next
        rejected pod gives the sign."""
        node = self.ledger.node(bind.node)
        return node is not None and node.was_reported(bind.pod.uid)

    async def _look_at(self, bind: RecentBind) -> None:
        try:
            path = pod_path(bind.pod.namespace, bind.pod.name)
            pod = await self.client.read(ApiRequest(path=path), shape=PodState)
        except (ApiError, UnreachableError):
            return
        share_node = self.ledger.share_node(bind.node)
        names = share_node.dialect.resources if share_node else ()
        reasons = [reason for name in names if (reason := rejection_for(name, pod))]
        if pod.uid == bind.pod.uid and reasons:
            self._pause(bind, reasons[0])

    def _pause(self, bind: RecentBind, reason: str) -> None:
        count = self._rejections[bind.node] = self._rejections.get(bind.node, 0) + 1
        seconds = backoff_delay(count, first=FIRST_PAUSE, most=MAX_PAUSE)
        self._until[bind.node] = self.timing.clock() + seconds
        message = (
            f"node takes no pods for {seconds:.0f} s: its kubelet rejected one ({reason}), "
            "the gpushare plugin there may be down"
        )  # which pod that was concerns none of those that read this
        _log.warning("%s", message, extra={"node": bind.node, "pod": str(bind.pod)})
        self.ledger.pause(bind.node, message)

    def _resume(self, node: str) -> None:
        if self._until.pop(node, None) is not None:
            self.ledger.resume(node)
