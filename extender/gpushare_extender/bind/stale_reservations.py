"""Releasing reservations that no watch ever confirms.

A pod that is bound and deleted while the watch is lost, all before its bind is answered, shows up nowhere:
only a look at the pod can tell that its units are free. The same goes for a bind that a defect of ours ended:
its pod may live on, bound or not.
"""

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from gpushare_core.json_object import Json
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import pod_path
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.ledger.holder import Holder
from gpushare_extender.ledger.ledger import Ledger

STALE_SECONDS = 30.0
"""A confirmed reservation is stale so long after its bind ended."""
LOOK_SECONDS = 10.0
"""Between two looks."""
FINISHED = ("Succeeded", "Failed")

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class StaleReservations:
    """Bind tasks look after the reservations of the pods ``being_bound`` (UIDs) themselves."""

    client: KubeClient
    ledger: Ledger
    timing: BindTiming
    being_bound: Callable[[], Collection[str]]
    _abandoned: dict[str, float] = field(default_factory=dict, init=False)
    """Pod UID -> since when its reservation is unconfirmed without a bind task."""

    async def release(self) -> None:
        """Frees what nobody will use any more; never returns."""
        while True:
            await self.timing.sleep(LOOK_SECONDS)
            for holder in self._stale():
                if await self._is_void(holder) and holder.uid not in self.being_bound():
                    _log.info("reservation released, its pod is gone or not bound", extra=_names(holder))
                    self.ledger.drop_pod(holder.uid)

    def _stale(self) -> list[Holder]:
        now, being_bound = self.timing.clock(), self.being_bound()
        abandoned = [holder for holder in self.ledger.unconfirmed() if holder.uid not in being_bound]
        self._abandoned = {holder.uid: self._abandoned.get(holder.uid, now) for holder in abandoned}
        return [*self.ledger.confirmed_until(now - STALE_SECONDS), *abandoned]

    async def _is_void(self, holder: Holder) -> bool:
        try:
            pod = await self.client.get(pod_path(holder.namespace, holder.name))
        except ApiError as error:
            return error.is_not_found
        except UnreachableError:
            return False
        return _has_left(pod, holder.uid) or self._was_never_bound(pod, holder)

    def _was_never_bound(self, pod: Json, holder: Holder) -> bool:
        """Whether no Binding that was sent for ``holder`` has taken effect, or can any more."""
        since = self._abandoned.get(holder.uid)
        if since is None or self.timing.clock() - since < self.timing.uncertain_for:
            return False
        return bool((pod.get("spec") or {}).get("nodeName") != holder.node)


def _has_left(pod: Json, uid: str) -> bool:
    """Returns whether ``pod``, which has the name now, is not the one with ``uid`` or has finished."""
    return pod["metadata"]["uid"] != uid or (pod.get("status") or {}).get("phase") in FINISHED


def _names(holder: Holder) -> dict[str, str]:
    return {"pod": str(holder.pod), "node": holder.node}
