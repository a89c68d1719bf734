"""Releasing reservations that no watch ever confirms.

A pod that is bound and deleted while the watch is lost, all before its bind ends, shows up nowhere: only a
read of the pod can show that its units are free. The same goes for a bind that a defect of ours ended: its
pod may live on, bound or not.
"""

import logging
from dataclasses import dataclass

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import pod_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.reservations import BindState, Reservation
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.decide.pod_state import PodState

STALE_SECONDS = 30.0
"""A confirmed reservation is stale so long after its bind ended."""
LOOK_SECONDS = 10.0
"""Between two looks."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class StaleReservations:
    """Of binds that have ended: bind tasks release what they do not use."""

    client: KubeClient
    ledger: Ledger
    timing: BindTiming

    async def release(self) -> None:
        """Frees what nobody will use any more; never returns."""
        while True:
            await self.timing.sleep(LOOK_SECONDS)
            for reservation in self._stale():
                await self._release_if_void(reservation)

    def _stale(self) -> list[Reservation]:
        """Returns those that are old enough: a read that begins now is certain."""
        now, reservations = self.timing.clock(), self.ledger.reservations
        ages = {BindState.CONFIRMED: STALE_SECONDS, BindState.ABANDONED: self.timing.uncertain_for}
        return [
            reservation
            for state, age in ages.items()
            for reservation in reservations.in_state(state)
            if now - reservation.since >= age
        ]

    async def _release_if_void(self, reservation: Reservation) -> None:
        """Does nothing if the pod has another reservation by the time of the response: a bind may have begun,
        and ended, since the read."""
        holder = reservation.holder
        is_void = await self._is_void(reservation)
        if is_void and self.ledger.reservations.get(holder.uid) is reservation:
            extra = {"pod": str(holder.pod), "node": holder.node}
            _log.info("released a reservation whose pod is gone or not bound", extra=extra)
            self.ledger.release_later(holder.uid, now=self.timing.clock())

    async def _is_void(self, reservation: Reservation) -> bool:
        holder = reservation.holder
        try:
            path = pod_path(holder.namespace, holder.name)
            pod = await self.client.read(ApiRequest(path=path), shape=PodState)
        except ApiError as error:
            return error.is_not_found
        except UnreachableError:
            return False
        was_never_bound = reservation.state is BindState.ABANDONED and pod.node != holder.node
        return was_never_bound or pod.uid != holder.uid or pod.is_finished
