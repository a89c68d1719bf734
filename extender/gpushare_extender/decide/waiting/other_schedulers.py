"""Pods that ask for our resources and are placed by a scheduler that does not ask us. Pure.

They are counted: the kubelet and our plugin give them units as all others. But such a scheduler knows only
the sums of nodes, and where no card fits, the kubelet refuses the pod.
"""

from collections.abc import Iterable, Sequence, Set

from gpushare_core.placement.requests import ResourceClass, read_request
from gpushare_core.text.json_object import Json

DEFAULT_SCHEDULER = "default-scheduler"
NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
MAX_NAMES = 3
"""Names of pods that are made known."""
MAX_NAME = 253
"""Of a scheduler, in characters."""


def is_name(text: str) -> bool:
    """Returns whether ``text`` can be the name of a scheduler in a field selector, and in a list with blanks.
    Kubernetes takes any text for a name."""
    is_plain = text.isascii() and text.isprintable() and not {*text} & {*" ,=\\"}
    return is_plain and 0 < len(text) <= MAX_NAME


def candidates(asking: Set[str]) -> str:
    """Returns the field selector of pods of other schedulers than those ``asking``: few clusters have many.
    Pods of kube-scheduler itself are never looked at: there are too many."""
    names = sorted({DEFAULT_SCHEDULER, *asking})
    return ",".join([*(f"spec.schedulerName!={name}" for name in names), NOT_ENDED])


def asking_for(items: Iterable[Json], resources: dict[str, ResourceClass]) -> list[str]:
    """Returns ``NAMESPACE/NAME`` of those of ``items`` that ask for ``resources``."""
    return [
        f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        for item in items
        if read_request(item["spec"], resources).resources
    ]


def report(names: Sequence[str]) -> str:
    """Returns what is made known, as ``read_report`` reads it; empty where there is none."""
    return " ".join([str(len(names)), *sorted(names)[:MAX_NAMES]]) if names else ""
