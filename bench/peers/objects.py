"""The objects of a stand-in for the API server: stored as they go out, found by field selectors."""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from gpushare_core.text.json_object import Json

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
class Wanted:
    """What a list or a watch asks for: field selectors for name and node, and labels that are equal.

    A pod here runs once it is on a node, and none has ended.
    """

    namespace: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    bound: bool = False
    """Whether it has to be on a node."""
    pending: bool = False
    """Whether it must not be on one yet."""
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, place: Place, query: Mapping[str, str]) -> "Wanted":
        terms = query.get("fieldSelector", "").split(",")
        is_bound = "spec.nodeName!=" in terms
        fields = {key: value for key, value in _equal(terms) if key in ("metadata.name", "spec.nodeName")}
        labels = dict(_equal(query.get("labelSelector", "").split(",")))
        return cls(place.namespace, fields, is_bound, "status.phase=Pending" in terms, labels)

    def takes(self, item: "Stored") -> bool:
        is_where = not (self.pending if item.node else self.bound)
        if not is_where or self.namespace not in ("", item.namespace):
            return False
        own = {"metadata.name": item.name, "spec.nodeName": item.node}
        return all(own[key] == value for key, value in self.fields.items()) and all(
            item.labels.get(key) == value for key, value in self.labels.items()
        )


def _equal(terms: Iterable[str]) -> Iterator[tuple[str, str]]:
    for term in terms:
        key, equal, value = term.partition("=")
        if equal and not key.endswith("!"):
            yield key, value


@dataclass(frozen=True, slots=True)
class Stored:
    """One object. ``content``: its JSON."""

    namespace: str
    name: str
    node: str
    labels: Mapping[str, str]
    version: int
    content: bytes


def stored(item: Json, version: int, *, node: str = "") -> Stored:
    """Returns ``item`` as it is kept, of that resource version. ``node``: of a pod of which only the metadata
    is kept."""
    metadata = {**item["metadata"], "resourceVersion": str(version)}
    return Stored(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        node=item.get("spec", {}).get("nodeName", node),
        labels=metadata.get("labels") or {},
        version=version,
        content=msgspec.json.encode({**item, "metadata": metadata}),
    )


@dataclass(slots=True)
class Objects:
    """All objects by collection and (namespace, name), and what watches are to hear of each collection."""

    version: int = 1
    _found: dict[str, dict[tuple[str, str], Stored]] = field(default_factory=dict)
    _listed: dict[tuple[Place, str, str], list[Stored]] = field(default_factory=dict)
    _serial: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def get(self, place: Place) -> Json | None:
        found = self._found.get(place.collection, {}).get((place.namespace, place.name))
        return msgspec.json.decode(found.content) if found else None

    def put(self, collection: str, item: Json, *, node: str = "") -> tuple[str, Stored]:
        """Stores ``item``. Returns the type of the watch event, and what is stored.

        A bound pod never leaves its node, and of those that are kept as metadata alone nothing else tells it.
        """
        present = self._found.setdefault(collection, {})
        metadata = {"uid": f"uid-{next(self._serial)}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        self.version += 1
        key = (item["metadata"].get("namespace", ""), item["metadata"]["name"])
        known = present[key].node if key in present else ""
        new = stored({**item, "metadata": {**metadata, **item["metadata"]}}, self.version, node=node or known)
        kind = "MODIFIED" if key in present else "ADDED"
        present[key] = new
        return kind, new

    def remove(self, place: Place) -> Stored | None:
        """Returns what was there, of the resource version at which it went: one of before would look to
        watches as if etcd had been restored."""
        self.version += 1
        if (gone := self._found.get(place.collection, {}).pop((place.namespace, place.name), None)) is None:
            return None
        return stored(msgspec.json.decode(gone.content), self.version, node=gone.node)

    def selected(self, wanted: Wanted, collection: str) -> list[Stored]:
        return [item for item in self._found.get(collection, {}).values() if wanted.takes(item)]

    def page(self, place: Place, query: Mapping[str, str]) -> bytes:
        """Returns the list, or the part of it that is asked for: as it was when its first page was."""
        token = query.get("continue", "")
        asked = (place, query.get("fieldSelector", ""), query.get("labelSelector", ""))
        if not token:
            self._listed[asked] = self.selected(Wanted.of(place, query), place.collection)
        items = self._listed[asked]
        start = int(token or 0)
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
