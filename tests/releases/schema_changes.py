"""What in a CRD's newer schema is no mere addition: what the older one accepted would be refused, or lost."""

import re
from collections.abc import Iterator, Mapping
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
        if rule["rule"] not in known and not _passes_what_is_stored(rule["rule"], {"self": (old, new)}):
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


Pair = tuple[Any, Any]
"""The schema of one value in the older CRD, None where that has no such field; and in the newer one."""


def _passes_what_is_stored(rule: str, variables: Mapping[str, Pair]) -> bool:
    """Returns whether ``rule`` is sure to hold for what sets no field that only the newer CRD has.

    One of its alternatives holds then: a new field is not there, it has another value by default, or that is
    so of every item of a list.
    """
    return any(_holds(alternative, variables) for alternative in _alternatives(rule))


def _holds(alternative: str, variables: Mapping[str, Pair]) -> bool:
    if absent := re.fullmatch(r"!has\(([\w.]+)\)", alternative):
        old, new = _field(absent[1], variables)
        return old is None and "default" not in new
    if differs := re.fullmatch(r"([\w.]+) != '(\w+)'", alternative):
        old, new = _field(differs[1], variables)
        return old is None and new.get("default", differs[2]) != differs[2]
    if every := re.fullmatch(r"([\w.]+)\.all\((\w+), (.+)\)", alternative):
        old, new = _field(every[1], variables)
        item = (old["items"] if old else None, new["items"])
        return _passes_what_is_stored(every[3], {**variables, every[2]: item})
    return False


def _field(path: str, variables: Mapping[str, Pair]) -> Pair:
    variable, *names = path.split(".")
    old, new = variables[variable]
    for name in names:
        old = old["properties"].get(name) if old else None
        new = new["properties"][name]
    return old, new


def _alternatives(rule: str) -> list[str]:
    """Returns what ``||`` connects, outside of all brackets."""
    parts, depth = [""], 0
    for piece in re.split(r"([()]| \|\| )", rule):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == " || " and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts
