"""Publishes that kube-scheduler has called, for those who connect it by hand and have no other sign of
success.

The record is a Lease that nobody competes for: which extender was called, at which port, and when.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from gpushare_core.api.names import CALLED_PORT_ANNOTATION, CALLS_COMPONENT, CALLS_LEASE, COMPONENT_LABEL
from gpushare_core.api.timestamps import micro_time
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import lease_path
from gpushare_core.text.json_object import Json
from gpushare_extender.cluster.retried_apply import apply_until_accepted

APART_SECONDS = 300.0
"""Between two writes for one port."""
IN_TURN_SECONDS = 10.0
"""The same, when several ports are called: two kube-schedulers of a host may be configured differently."""


@dataclass(slots=True)
class SchedulerCallReport:
    """Writes the Lease in ``namespace``, as the extender ``identity``. ``clock`` is in steady seconds."""

    client: KubeClient
    namespace: str
    identity: str
    now: Callable[[], datetime]
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _due: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _port: int = field(default=0, init=False)
    """Of the last call to publish."""
    _since: dict[int, float] = field(default_factory=dict, init=False)
    """Port -> when a call at it was published last."""

    def called(self, port: int) -> None:
        """Called for every filter request, so it has to be cheap."""
        apart = APART_SECONDS if port == self._port else IN_TURN_SECONDS
        if self.clock() - self._since.get(port, float("-inf")) >= apart:
            self._port, self._since[port] = port, self.clock()
            self._due.set()

    async def run(self) -> None:
        while True:
            await self._due.wait()
            self._due.clear()
            await apply_until_accepted(
                self.client,
                lease_path(self.namespace, CALLS_LEASE),
                lambda: _lease(self._port, self.identity, self.now()),
                purpose="publish that kube-scheduler calls",
                sleep=self.sleep,
            )


def _lease(port: int, identity: str, moment: datetime) -> Json:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": CALLS_LEASE,
            "labels": {COMPONENT_LABEL: CALLS_COMPONENT},
            "annotations": {CALLED_PORT_ANNOTATION: str(port)},
        },
        "spec": {"holderIdentity": identity, "renewTime": micro_time(moment)},
    }
