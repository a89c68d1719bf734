"""Whether an object of the API server's already says all that we want it to say."""

from collections.abc import Mapping
from typing import Any


def covers(actual: Any, desired: Any) -> bool:
    """Whether ``desired`` is contained in ``actual``, which may have more keys (defaults, others' fields).

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


def says(actual: Mapping[str, Any], desired: Mapping[str, Any]) -> bool:
    """Whether metadata and spec of ``desired`` are in force; items of lists carry no kind to compare."""
    return all(covers(actual.get(part), desired[part]) for part in ("metadata", "spec"))
