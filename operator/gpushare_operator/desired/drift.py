"""Whether an object of the API server's is still as the operator wants it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.labels import COMPARE_LABEL
from gpushare_operator.cluster.managed_fields import Path


def has_drifted(actual: Json, desired: Json) -> bool:
    """Returns whether metadata or spec of ``desired`` is not in force, or a write was not brought to its end;
    items of lists carry no kind."""
    is_unfinished = COMPARE_LABEL in (actual.get("metadata", {}).get("labels") or {})
    return is_unfinished or bool(differences(actual, desired))


def differences(actual: Json, desired: Json) -> list[Path]:
    """Returns where metadata or spec of ``desired`` is not in force. More keys are no difference (defaults,
    others' fields); more items of a list are: the API server fills them in, but does not add any."""
    return [
        path
        for part in ("metadata", "spec")
        for path in _differences(actual.get(part), desired.get(part), (part,))
    ]


MAX_COMPARISONS = 64


@dataclass(slots=True)
class Comparisons:
    """Of objects that thousands have in common: each pair is compared once. Nobody may change them."""

    compare: Callable[[Any, Any], bool]
    """Gets an object as it is and as it is to be."""
    _found: dict[tuple[int, int], tuple[Any, Any, bool]] = field(default_factory=dict)
    """By identity; with the objects themselves, so that no other one gets their identity."""

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
        for position, (present, wanted) in enumerate(zip(actual, desired, strict=True)):
            yield from _differences(present, wanted, (*path, position))
    elif actual != desired:
        yield path
