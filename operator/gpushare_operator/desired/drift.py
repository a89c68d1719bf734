"""How an object in the API server differs from the desired one."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.labels import COMPARE_LABEL
from gpushare_operator.cluster.managed_fields import Path


def has_drifted(actual: Json, desired: Json) -> bool:
    """Returns whether metadata or spec of ``desired`` is not in force, or a write was not finished."""
    is_unfinished = COMPARE_LABEL in (actual.get("metadata", {}).get("labels") or {})
    return is_unfinished or bool(differences(actual, desired))


def differences(actual: Json, desired: Json) -> list[Path]:
    """Returns where metadata or spec of ``desired`` is not in force. Additional keys are no difference: they
    are defaults or others' fields. Additional items of a list are one: the API server adds none."""
    return [
        path
        for part in ("metadata", "spec")
        for path in _differences(actual.get(part), desired.get(part), (part,))
    ]


MAX_COMPARISONS = 64


@dataclass(slots=True)
class Comparisons:
    """Compares each pair of objects once: thousands of nodes share them. Nobody may change the objects."""

    compare: Callable[[Any, Any], bool]
    """Gets the present object and the desired one."""
    _found: dict[tuple[int, int], tuple[Any, Any, bool]] = field(default_factory=dict)
    """Identities of a pair -> the pair, so that the identities are not reused, and the result."""

    def agree(self, actual: Any, desired: Any) -> bool:
        key = (id(actual), id(desired))
        if key not in self._found:
            if len(self._found) == MAX_COMPARISONS:
                self._found.clear()
            self._found[key] = (actual, desired, self.compare(actual, desired))
        return self._found[key][2]


def _differences(actual: Any, desired: Any, path: Path) -> Iterator[Path]:
    if isinstance(desired, Mapping) and isinstance(actual, Mapping):
        for key, value in desired.items():
            if key in actual:
                yield from _differences(actual[key], value, (*path, key))
            else:
                yield (*path, key)
    elif isinstance(desired, list) and isinstance(actual, list) and len(actual) == len(desired):
        for position, (present, expected) in enumerate(zip(actual, desired, strict=True)):
            yield from _differences(present, expected, (*path, position))
    elif actual != desired:
        yield path
