"""What in a CRD's newer schema is no mere addition: what the older one accepted would be refused, or lost."""

from collections.abc import Iterator
from typing import Any

from gpushare_core.text.json_object import Json

LOWER_BOUNDS = ("minimum", "minLength", "minItems", "minProperties")
UPPER_BOUNDS = ("maximum", "maxLength", "maxItems", "maxProperties")
SAME = ("type", "format", "pattern", "default", "x-kubernetes-list-type", "x-kubernetes-list-map-keys")


def breaking_changes(old: Json, new: Json) -> list[str]:
    """Returns what of CRD ``old`` does not hold in CRD ``new`` any more, with its place."""
    newer = {version["name"]: version for version in new["spec"]["versions"] if version["served"]}
    changes: list[str] = []
    for version in old["spec"]["versions"]:
        if version["name"] not in newer:
            changes.append(f"version {version['name']} is not served any more")
        else:
            before, after = version["schema"], newer[version["name"]]["schema"]
            changes += _changes(before["openAPIV3Schema"], after["openAPIV3Schema"], version["name"])
    return changes


def _changes(old: Any, new: Any, at: str) -> Iterator[str]:
    yield from (f"{at}: {key} was {old.get(key)}" for key in SAME if old.get(key) != new.get(key))
    yield from _bounds(old, new, at)
    yield from _values(old, new, at)
    yield from _children(old, new, at)


def _bounds(old: Any, new: Any, at: str) -> Iterator[str]:
    for key in LOWER_BOUNDS:
        if new.get(key, float("-inf")) > old.get(key, float("-inf")):
            yield f"{at}: {key} was {old.get(key)}"
    for key in UPPER_BOUNDS:
        if new.get(key, float("inf")) < old.get(key, float("inf")):
            yield f"{at}: {key} was {old.get(key)}"


def _values(old: Any, new: Any, at: str) -> Iterator[str]:
    if "enum" in new and (
        gone := [rule for rule in old.get("enum", ("anything",)) if rule not in new["enum"]]
    ):
        yield f"{at}: {', '.join(gone)} is refused"
    if required := sorted(set(new.get("required", ())) - set(old.get("required", ()))):
        yield f"{at}: {', '.join(required)} is required"
    known = {rule["rule"] for rule in old.get("x-kubernetes-validations", ())}
    for rule in new.get("x-kubernetes-validations", ()):
        if rule["rule"] not in known:
            yield f"{at}: new rule {rule['rule']}"


def _children(old: Any, new: Any, at: str) -> Iterator[str]:
    for name, child in old.get("properties", {}).items():
        if name in new.get("properties", {}):
            yield from _changes(child, new["properties"][name], f"{at}.{name}")
        else:
            yield f"{at}.{name} is gone"
    for part in ("items", "additionalProperties"):
        if isinstance(old.get(part), dict):
            yield from _changes(old[part], new.get(part) or {}, f"{at}[]")
