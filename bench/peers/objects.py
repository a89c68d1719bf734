"""The objects of a stand-in for the API server: stored as they go out, found by field selectors."""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from gpushare_core.json_object import Json

_PATH = re.compile(
    r"(?P<prefix>/api/v1|/apis/[^/]+/[^/]+)(/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[a-z]+)(/(?P<name>[^/]+)(/(?P<subresource>[a-z]+))?)?"
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path of the API leads; without a name to a collection. ``collection``: in all namespaces."""

    collection: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def place(path: str) -> Place | None:
    """Returns what ``path`` names; None for what is no object, such as discovery."""
    if not (found := _PATH.fullmatch(path)):
        return None
    collection = f"{found['prefix']}/{found['plural']}"
    return Place(collection, found["namespace"] or "", found["name"] or "", found["subresource"] or "")


@dataclass(frozen=True, slots=True)
class Stored:
    """One object. ``content``: its JSON."""

    namespace: str
    name: str
    node: str
    version: int
    content: bytes

    def is_selected(self, namespace: str, terms: Mapping[str, str]) -> bool:
        """``terms``: as ``field_terms`` returns them."""
        if namespace and self.namespace != namespace:
            return False
        own = {"metadata.name": self.name, "spec.nodeName": self.node} if terms else {}
        return all(own[key] == value for key, value in terms.items())


def field_terms(selector: str) -> dict[str, str]:
    """Returns what a field selector wants of name and node: no object here has ended, so the rest is true."""
    terms = dict(term.split("=", 1) for term in selector.split(",") if "=" in term and "!" not in term)
    return {key: terms[key] for key in ("metadata.name", "spec.nodeName") if key in terms}


def stored(item: Json, version: int) -> Stored:
    """Returns ``item`` as it is kept, of that resource version."""
    metadata = {**item["metadata"], "resourceVersion": str(version)}
    return Stored(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        node=item.get("spec", {}).get("nodeName", ""),
        version=version,
        content=msgspec.json.encode({**item, "metadata": metadata}),
    )


@dataclass(slots=True)
class Objects:
    """All objects by collection and (namespace, name), and what watches are to hear of each collection."""

    version: int = 1
    _found: dict[str, dict[tuple[str, str], Stored]] = field(default_factory=dict)
    _serial: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def get(self, place: Place) -> Json | None:
        found = self._found.get(place.collection, {}).get((place.namespace, place.name))
        return msgspec.json.decode(found.content) if found else None

    def put(self, collection: str, item: Json) -> tuple[str, Stored]:
        """Stores ``item``. Returns the type of the watch event, and what is stored."""
        present = self._found.setdefault(collection, {})
        metadata = {"uid": f"uid-{next(self._serial)}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        self.version += 1
        new = stored({**item, "metadata": {**metadata, **item["metadata"]}}, self.version)
        key = (new.namespace, new.name)
        kind = "MODIFIED" if key in present else "ADDED"
        present[key] = new
        return kind, new

    def remove(self, place: Place) -> Stored | None:
        self.version += 1
        return self._found.get(place.collection, {}).pop((place.namespace, place.name), None)

    def selected(self, place: Place, selector: str) -> list[Stored]:
        items, terms = self._found.get(place.collection, {}).values(), field_terms(selector)
        if not place.namespace and not terms:
            return [*items]
        return [item for item in items if item.is_selected(place.namespace, terms)]

    def page(self, place: Place, query: Mapping[str, str]) -> bytes:
        """Returns the list, or the part of it that is asked for."""
        items = self.selected(place, query.get("fieldSelector", ""))
        start = int(query.get("continue") or 0)
        end = start + int(query.get("limit") or len(items) or 1)
        more = {"continue": str(end)} if end < len(items) else {}
        metadata = msgspec.json.encode({"resourceVersion": str(self.version), **more})
        content = b",".join(item.content for item in items[start:end])
        return b'{"metadata":' + metadata + b',"items":[' + content + b"]}"


def merged(into: Json, patch: Json) -> Json:
    """Returns a JSON merge patch (RFC 7396) of ``into``."""
    result = dict(into)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            present = result.get(key)
            result[key] = merged(present if isinstance(present, dict) else {}, value)
        else:
            result[key] = value
    return result
