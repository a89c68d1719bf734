"""Looking after reservations that no watch ever confirms.

A pod that is bound and deleted while the watch is lost, all before its bind is answered, shows up nowhere:
only asking for it can tell that its units are free. The same goes for a bind that a defect of ours ended.
"""

import logging
from collections.abc import Callable, Collection
from typing import Any

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_extender.bind.binding import pod_path
from gpushare_extender.bind.delivery import Times
from gpushare_extender.ledger.holder import Holding
from gpushare_extender.ledger.ledger import Ledger

OVERDUE_SECONDS = 30.0
FINISHED = ("Succeeded", "Failed")

_log = logging.getLogger(__name__)


async def review_reservations(
    client: KubeClient,
    ledger: Ledger,
    times: Times,
    *,
    under_way: Callable[[], Collection[str]] = frozenset,
) -> None:
    """Free what pods that are gone still have reserved, for ever.

    The binds ``under_way`` (pod UIDs) look after their reservations themselves.
    """
    while True:
        await times.sleep(OVERDUE_SECONDS)
        busy = set(under_way())
        stranded = [held for held in ledger.in_flight() if held.uid not in busy]
        for held in [*ledger.confirmed_until(times.clock() - OVERDUE_SECONDS), *stranded]:
            if await _is_gone(client, held):
                _log.info(
                    "pod went before any watch showed it", extra={"pod": f"{held.namespace}/{held.name}"}
                )
                ledger.drop_pod(held.uid)


async def _is_gone(client: KubeClient, held: Holding) -> bool:
    try:
        return has_left(await client.get(pod_path(held.namespace, held.name)), held.uid)
    except ApiError as error:
        return error.is_not_found
    except UnreachableError:
        return False


def has_left(pod: dict[str, Any], uid: str) -> bool:
    """Whether ``pod``, the present bearer of the name, is not the one with ``uid`` or has finished."""
    return pod["metadata"]["uid"] != uid or (pod.get("status") or {}).get("phase") in FINISHED
