"""Making kube-scheduler try unschedulable pods again.

kube-scheduler tries a pod that an extender refused again at any event of the objects it watches (its default
for extenders, ``k8s.io/kubernetes/pkg/scheduler/framework/runtime``), else after five minutes. So the
extender touches one such object: a CSIStorageCapacity of a storage class that does not exist. No other kind
can be had in our own namespace, means nothing there, and activates no other pods; to touch a Node or a Pod
would need rights over all of them.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.follow import Clock
from gpushare_core.kube.paths import storage_capacities
from gpushare_core.placement.requests import PodRequest
from gpushare_core.text.json_object import Json
from gpushare_extender.cluster.retried_apply import apply_until_accepted
from gpushare_extender.decide.waiting.offered_pods import ATTEMPT_SECONDS, OfferedPods
from gpushare_extender.decide.waiting.unschedulable_pods import UnschedulablePods

NAME = "gpushare-wake-up"
ANNOTATION = "gpushare.io/room-since"
SETTLE_SECONDS = 0.5
"""kube-scheduler mostly learns of the change by itself, and tries the pods in this time."""
APART_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class PodActivation:
    """Touches the object in ``namespace`` when ``pods`` would fit and were not tried again."""

    client: KubeClient
    namespace: str
    pods: UnschedulablePods
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _room: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def has_room(self, name: str, amount: int) -> None:
        if self.pods.has_room(name, amount):
            self._room.set()

    def card_has_room(self) -> None:
        if self.pods.card_has_room():
            self._room.set()

    def fits(self, uid: str) -> None:
        if self.pods.fits(uid):
            self._room.set()

    async def run(self) -> None:
        while True:
            await self._room.wait()
            self._room.clear()
            await self.sleep(SETTLE_SECONDS)
            if self.pods.take_waiting():
                await self._activate()
                await self.sleep(APART_SECONDS)

    async def _activate(self) -> None:
        """A retry covers the pods that wait by then, too."""
        await apply_until_accepted(
            self.client,
            f"{storage_capacities(self.namespace)}/{NAME}",
            lambda: _object(self.now()),
            purpose="make kube-scheduler try pods that would fit now",
            sleep=self.sleep,
            before_retry=self.pods.take_waiting,
        )
        _log.info("units are free for waiting pods: asking kube-scheduler to try them again")


async def activate_others(
    activation: PodActivation, offered: OfferedPods, clock: Clock, sleep: Callable[[float], Awaitable[None]]
) -> None:
    """Activates pods that fit more nodes than they were offered, and that others, such as another extender,
    kept from all offered ones: kube-scheduler does not know of the other nodes. Never returns."""
    while True:
        await sleep(ATTEMPT_SECONDS)
        for uid in offered.take_refused(now=clock()):
            activation.pods.refused(uid, PodRequest())
            activation.fits(uid)


def _object(moment: datetime) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": NAME, "annotations": {ANNOTATION: moment.isoformat()}},
        "storageClassName": NAME,
    }
