"""Whether an object of the API server's is still as the operator wants it."""

from collections.abc import Mapping
from typing import Any

from gpushare_core.json_object import Json


def has_drifted(actual: Json, desired: Json) -> bool:
    """Returns whether metadata or spec of ``desired`` is not in force; items of lists carry no kind."""
    return not all(covers(actual.get(part), desired[part]) for part in ("metadata", "spec"))


def covers(actual: Any, desired: Any) -> bool:
    """Returns whether ``desired`` is contained in ``actual``, which may have more keys (defaults, others'
    fields).

    Lists must have the same length: the API server fills in items, but does not add any.
    """
    if isinstance(desired, Mapping):
        return isinstance(actual, Mapping) and all(
            key in actual and covers(actual[key], value) for key, value in desired.items()
        )
    if isinstance(desired, list):
        return (
            isinstance(actual, list)
            and len(actual) == len(desired)
            and all(covers(*pair) for pair in zip(actual, desired, strict=True))
        )
    return bool(actual == desired)
