"""Who owns a field. Source: ``metav1.ManagedFieldsEntry``, FieldsV1."""

import json
from collections.abc import Iterable
from typing import Any

from gpushare_core.text.json_object import Json

Path = tuple[str | int, ...]
"""Keys of objects and positions in lists."""


def managers(managed_fields: Iterable[Json], body: Json, path: Path) -> set[str]:
    """Returns who owns the field of ``body`` at ``path``, or the nearest thing above it that has owners."""
    return {
        str(entry.get("manager", ""))
        for entry in managed_fields
        if _owns(entry.get("fieldsV1", {}), body, path)
    }


def _owns(fields: Any, value: Any, path: Path) -> bool:
    """Returns whether ``fields`` reach down to ``path``: an empty set stands for all that is below."""
    for step in path:
        if not fields:
            return True
        child = _child(fields, value, step)
        if child is None:
            return False
        fields, value = child, _value(value, step)
    return True


def _child(fields: Json, value: Any, step: str | int) -> Json | None:
    if isinstance(step, str):
        child: Json | None = fields.get(f"f:{step}")
        return child
    item = _value(value, step)
    return next((each for name, each in fields.items() if _names(name, item)), None)


def _names(name: str, item: Any) -> bool:
    """Returns whether ``k:{...}`` means this item of a list."""
    if not (name.startswith("k:") and isinstance(item, dict)):
        return False
    wanted = json.loads(name.removeprefix("k:"))
    return all(item.get(key) == each for key, each in wanted.items())


def _value(value: Any, step: str | int) -> Any:
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):
        return None
