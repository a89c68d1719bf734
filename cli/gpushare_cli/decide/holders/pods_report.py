"""``pods``: which pods hold units or wait for them."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from gpushare_cli.decide.holders.pod_holding import PodHolding
from gpushare_cli.report import CommandReport
from gpushare_core.api.timestamps import rfc3339


class PodsReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "PodHoldings"
    looked_at: str
    """RFC 3339."""
    pods: Sequence[PodHolding] = ()
    namespace: str = ""
    """Empty: all."""
    unread: Sequence[str] = ()
    """Sentences: what could not be read, and what is therefore not known."""
    unmeasured: Sequence[str] = ()
    """Why use is not known, and of which policies."""

    @property
    def names(self) -> Sequence[str]:
        return [f"pod/{pod.name}" for pod in self.pods]


class PodSort(StrEnum):
    NAME = "name"
    HELD = "held"
    USED = "used"
    AGE = "age"


_KEYS: Mapping[PodSort, Callable[[PodHolding], tuple[int, str]]] = {
    PodSort.HELD: lambda pod: (-(pod.asked_bytes or 0), ""),
    PodSort.USED: lambda pod: (-(pod.used_bytes or 0), ""),
    PodSort.AGE: lambda pod: (not pod.created, pod.created),
}
"""The most first, the oldest first; unknown ages last."""


def pods_report(
    pods: Sequence[PodHolding],
    *,
    namespace: str,
    sort: PodSort,
    now: datetime,
    unread: Sequence[str] = (),
    unmeasured: Sequence[str] = (),
) -> PodsReport:
    chosen = [pod for pod in pods if namespace in ("", pod.namespace)]
    if sort is not PodSort.NAME:
        chosen.sort(key=_KEYS[sort])
    return PodsReport(
        looked_at=rfc3339(now), pods=chosen, namespace=namespace, unread=unread, unmeasured=unmeasured
    )
