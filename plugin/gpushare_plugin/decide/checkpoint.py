"""What the kubelet stored of each container: its units, and what the plugin answered for them.

Unlike PodResources it names pods by UID, shows ordinary init containers, and outlives every object of ours.
It may show pods that have ended since it was written.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpushare_core.books.dialects import Dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointEntry:
    """One container's units of our resource."""

    uid: str
    """Of the pod, as the kubelet knows it."""
    container: str
    numbers: "array[int]"
    card: str = ""
    """UUID; empty where the stored answer names none."""
    index: int | None = None
    """The card's."""
    memory: int = 0
    """MiB that the container was given; 0 when unknown."""
    card_memory: int = 0
    """MiB of the whole card; 0 when unknown."""


StoredContainers = Mapping[str, CheckpointEntry]
"""One pod's entries by container."""


def read_variables(
    uid: str, container: str, numbers: "array[int]", variables: Mapping[str, str], dialect: Dialect
) -> CheckpointEntry:
    """Returns an entry by the environment ``variables`` that the plugin answered."""
    return CheckpointEntry(
        uid=uid,
        container=container,
        numbers=numbers,
        card=next((variables[name] for name in dialect.card_variables if name in variables), ""),
        index=_number(variables.get(dialect.index_variable)),
        memory=_number(variables.get(dialect.memory_variable)) or 0,
        card_memory=_number(variables.get(dialect.card_memory_variable)) or 0,
    )


def by_pod(entries: Iterable[CheckpointEntry]) -> dict[str, dict[str, CheckpointEntry]]:
    """Returns pod UID -> container -> entry."""
    pods: dict[str, dict[str, CheckpointEntry]] = {}
    for entry in entries:
        pods.setdefault(entry.uid, {})[entry.container] = entry
    return pods


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
