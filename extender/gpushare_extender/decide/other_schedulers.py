"""Pods that ask for our resources and are placed by a scheduler that does not ask us. Pure.

Their books are right: the kubelet and our plugin give them units as all others. But such a scheduler knows
sums of nodes alone, and where no card fits the kubelet refuses the pod.
"""

from collections.abc import Collection, Iterable, Sequence

from gpushare_core.api.names import DEDICATED_SCHEDULER
from gpushare_core.json_object import Json
from gpushare_core.placement.requests import ResourceClass, read_request

DEFAULT_SCHEDULER = "default-scheduler"
CANDIDATES = (
    f"spec.schedulerName!={DEFAULT_SCHEDULER},spec.schedulerName!={DEDICATED_SCHEDULER},"
    "status.phase!=Succeeded,status.phase!=Failed"
)
"""Field selector of pods that may be such ones: few clusters have many."""
MOST_NAMES = 3
"""That are made known."""


def placed_by_others(
    items: Iterable[Json], *, asking: Collection[str], resources: dict[str, ResourceClass]
) -> list[str]:
    """Returns ``NAMESPACE/NAME`` of those of ``items`` that ask for ``resources`` and name another scheduler
    than those ``asking`` us."""
    return [
        f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        for item in items
        if item["spec"].get("schedulerName") not in asking and read_request(item["spec"], resources).resources
    ]


def report(names: Sequence[str]) -> str:
    """Returns what is made known, as ``read_report`` reads it; empty where there is none."""
    return " ".join([str(len(names)), *sorted(names)[:MOST_NAMES]]) if names else ""
