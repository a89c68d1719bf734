"""Making known that kube-scheduler calls: whoever connects it by hand has no other sign that it worked.

What is written is a Lease that nobody competes for: who was called, where, and when.
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
from gpushare_extender.cluster.lasting_apply import LastingApply

APART_SECONDS = 300.0
"""Between two writes about one port, however often it is called."""
IN_TURN_SECONDS = 10.0
"""The same, where another one is called besides: two kube-schedulers of a host may be at odds."""


@dataclass(slots=True)
class CallReport:
    """Writes the Lease in ``namespace`` in the name of ``identity``. ``clock`` is in steady seconds."""

    client: KubeClient
    namespace: str
    identity: str
    now: Callable[[], datetime]
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _due: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _port: int = field(default=0, init=False)
    """Of the last call that is to be made known."""
    _since: dict[int, float] = field(default_factory=dict, init=False)
    """Port -> when its calls were made known last."""

    def called(self, port: int) -> None:
        """kube-scheduler has called at ``port``: cheap, for every call says so."""
        apart = APART_SECONDS if port == self._port else IN_TURN_SECONDS
        if self.clock() - self._since.get(port, float("-inf")) >= apart:
            self._port, self._since[port] = port, self.clock()
            self._due.set()

    async def run(self) -> None:
        """Never returns."""
        while True:
            await self._due.wait()
            self._due.clear()
            await LastingApply(
                client=self.client,
                path=lease_path(self.namespace, CALLS_LEASE),
                body=lambda: _lease(self._port, self.identity, self.now()),
                purpose="make known that kube-scheduler calls",
                sleep=self.sleep,
            ).run()


def _lease(port: int, identity: str, moment: datetime) -> Json:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": CALLS_LEASE,
            "labels": {COMPONENT_LABEL: CALLS_COMPONENT},
            "annotations": {CALLED_PORT_ANNOTATION: str(port)},
        },
        "spec": {
            "holderIdentity": identity,
            "renewTime": micro_time(moment),
        },
    }
