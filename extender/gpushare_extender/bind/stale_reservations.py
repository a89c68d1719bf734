"""Releasing reservations that no watch ever confirms.

A pod that is bound and deleted while the watch is lost, all before its bind is answered, shows up nowhere:
only a look at the pod can tell that its units are free. The same goes for a bind that a defect of ours ended.
"""

import logging
from collections.abc import Callable, Collection

from gpushare_core.json_object import Json
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import pod_path
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.ledger.holder import Holder
from gpushare_extender.ledger.ledger import Ledger

STALE_SECONDS = 30.0
"""A reservation is stale so long after its bind ended; also the time between two looks."""
FINISHED = ("Succeeded", "Failed")

_log = logging.getLogger(__name__)


async def release_stale_reservations(
    client: KubeClient,
    ledger: Ledger,
    timing: BindTiming,
    *,
    being_bound: Callable[[], Collection[str]],
) -> None:
    """Frees what pods that are gone still have reserved; never returns.

    The bind tasks of the pods ``being_bound`` (UIDs) look after their reservations themselves.
    """
    while True:
        await timing.sleep(STALE_SECONDS)
        for holder in _stale(ledger, now=timing.clock(), being_bound=being_bound()):
            if await _is_gone(client, holder):
                _log.info("pod went before any watch showed it", extra={"pod": str(holder.pod)})
                ledger.drop_pod(holder.uid)


def _stale(ledger: Ledger, *, now: float, being_bound: Collection[str]) -> list[Holder]:
    abandoned = [holder for holder in ledger.unconfirmed() if holder.uid not in being_bound]
    return [*ledger.confirmed_until(now - STALE_SECONDS), *abandoned]


async def _is_gone(client: KubeClient, holder: Holder) -> bool:
    try:
        pod = await client.get(pod_path(holder.namespace, holder.name))
    except ApiError as error:
        return error.is_not_found
    except UnreachableError:
        return False
    return _has_left(pod, holder.uid)


def _has_left(pod: Json, uid: str) -> bool:
    """Returns whether ``pod``, which has the name now, is not the one with ``uid`` or has finished."""
    return pod["metadata"]["uid"] != uid or (pod.get("status") or {}).get("phase") in FINISHED
