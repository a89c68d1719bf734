"""Giving kube-scheduler a reason to try refused pods again.

A pod that an extender refused is tried again at any event of what the scheduler watches (its default for
extenders, ``k8s.io/kubernetes/pkg/scheduler/framework/runtime``), else after five minutes. So one object that
it watches is touched: a CSIStorageCapacity of a storage class that does not exist. Of all the kinds it is the
one that can be had in a namespace of our own, means nothing there, and wakes no other pods; to touch a Node
or a Pod would need rights over all of them.
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
from gpushare_extender.cluster.lasting_apply import LastingApply
from gpushare_extender.decide.waiting.offered_pods import ATTEMPT_SECONDS, OfferedPods
from gpushare_extender.decide.waiting.unschedulable_pods import UnschedulablePods

NAME = "gpushare-wake-up"
ANNOTATION = "gpushare.io/room-since"
SETTLE_SECONDS = 0.5
"""The scheduler mostly hears by itself, and tries the pods in this time."""
APART_SECONDS = 1.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class WakeUp:
    """Touches the object in ``namespace`` when ``refused`` pods would fit and were not tried again."""

    client: KubeClient
    namespace: str
    refused: UnschedulablePods
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _room: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def has_room(self, name: str, amount: int) -> None:
        """``amount`` of the resource ``name`` fits some node, more than before."""
        if self.refused.has_room(name, amount):
            self._room.set()

    def card_has_room(self) -> None:
        """A card of a node of several resources has more room than before."""
        if self.refused.card_has_room():
            self._room.set()

    def fits(self, uid: str) -> None:
        """The pod with this UID would fit now."""
        if self.refused.fits(uid):
            self._room.set()

    async def run(self) -> None:
        """Never returns."""
        while True:
            await self._room.wait()
            self._room.clear()
            await self.sleep(SETTLE_SECONDS)
            if self.refused.take_waiting():
                await self._wake()
                await self.sleep(APART_SECONDS)

    async def _wake(self) -> None:
        """Touches the object until that succeeds: which pods wait for it is known here only. Another attempt
        is for those that have come to wait since as well."""
        await LastingApply(
            client=self.client,
            path=f"{storage_capacities(self.namespace)}/{NAME}",
            body=lambda: _object(self.now()),
            purpose="wake kube-scheduler for pods that would fit now",
            sleep=self.sleep,
        ).run(self.refused.take_waiting)
        _log.info("units are free for pods that were refused: kube-scheduler is to try them again")


async def wake_for_others(
    wake_up: WakeUp, offered: OfferedPods, clock: Clock, sleep: Callable[[float], Awaitable[None]]
) -> None:
    """Has those pods tried again that others kept from all nodes they were offered, for they fit more; never
    returns. kube-scheduler does not know, and would wait for an event, or five minutes."""
    while True:
        await sleep(ATTEMPT_SECONDS)
        for uid in offered.take_refused(now=clock()):
            wake_up.refused.refused(uid, PodRequest())
            wake_up.fits(uid)


def _object(moment: datetime) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": NAME, "annotations": {ANNOTATION: moment.isoformat()}},
        "storageClassName": NAME,
    }
