"""By which labels the page can group nodes into racks."""

from collections.abc import Collection, Mapping

from msgspec import Struct

MAX_LABELS = 8
"""By which nodes can be grouped, beside the one that was asked for."""
MAX_GROUPS = 500
"""A label with more values is the name of something else."""
FIRST = ("rack", "zone", "region", "pool", "instance-type", "product")
"""Parts of labels that people group by, the likeliest first."""


class LabelledMeta(Struct):
    name: str
    labels: dict[str, str] | None = None


class LabelledNode(Struct):
    """Metadata of a Node, as far as it is needed."""

    metadata: LabelledMeta


def group_labels(nodes: Mapping[str, Mapping[str, str]], asked: str) -> list[str]:
    """Returns the label that was ``asked`` for, then those that divide ``nodes`` (name -> labels) into groups
    of more than one."""
    values: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for labels in nodes.values():
        for label, value in labels.items():
            values.setdefault(label, set()).add(value)
            counts[label] = counts.get(label, 0) + 1
    dividing = [label for label in values if label != asked and _divides(values[label], counts[label])]
    dividing.sort(key=lambda label: (_rank(label), label))
    return [*([asked] if asked else []), *dividing[:MAX_LABELS]]


def groups_of(labels: Mapping[str, str], chosen: Collection[str]) -> dict[str, str]:
    """Returns the ``chosen`` labels that a node has."""
    return {label: labels[label] for label in chosen if label in labels}


def _divides(values: Collection[str], nodes: int) -> bool:
    return 1 < len(values) <= MAX_GROUPS and 2 * len(values) <= nodes


def _rank(label: str) -> int:
    return next((rank for rank, part in enumerate(FIRST) if part in label), len(FIRST))
