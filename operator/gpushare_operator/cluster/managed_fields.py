"""Who owns a field. Source: ``metav1.ManagedFieldsEntry``, FieldsV1."""

import json
from collections.abc import Iterable
from typing import Any

from gpushare_core.text.json_object import Json

Path = tuple[str | int, ...]
"""Keys of mappings and indices in lists."""


def managers(managed_fields: Iterable[Json], body: Json, path: Path) -> set[str]:
    """Returns the owners of the field at ``path``, or of the nearest field above it that has owners."""
    return {
        str(entry.get("manager", ""))
        for entry in managed_fields
        if _owns(entry.get("fieldsV1", {}), body, path)
    }


def _owns(fields: Any, value: Any, path: Path) -> bool:
    """Returns whether ``fields`` hold ``path``. An empty set stands for everything below it."""
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
    return next((child for name, child in fields.items() if _names(name, item)), None)


def _names(name: str, item: Any) -> bool:
    """Returns whether ``name``, as ``k:{...}``, means this item of a list."""
    if not (name.startswith("k:") and isinstance(item, dict)):
        return False
    wanted = json.loads(name.removeprefix("k:"))
    return all(item.get(key) == value for key, value in wanted.items())


def _value(value: Any, step: str | int) -> Any:
    try:
        return value[step]
    except (KeyError, IndexError, TypeError):
        return None
