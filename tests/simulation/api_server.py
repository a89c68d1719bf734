"""The API server of a simulation: objects, versions, watches, conflicts; without a socket."""

import asyncio
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec

from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json

Key = tuple[str, str]
"""Namespace (empty where it has none) and name."""
Visible = Callable[[Json], bool]

_POD = re.compile(r"^/api/v1/namespaces/([^/]+)/pods/([^/]+)(?:/(binding|status|eviction))?$")
_NAMED = re.compile(r"^(/apis/.+/(?:gpusharenodes|leases|csistoragecapacities))/([^/]+)(?:/(status))?$")
FINISHED = ("Succeeded", "Failed")
POD_FOLDERS = ("/api/v1/namespaces/default/pods",)
CREATED = "2026-11-21T10:00:00Z"


@dataclass(frozen=True, slots=True)
class Change:
    """One write, as watches may see it."""

    version: int
    at: float
    before: Json | None
    after: Json | None
    raw: bytes
    """The object after it, or, of a deletion, before it."""

    def event(self, visible: Visible) -> bytes | None:
        """Returns the line of a watch; None where it shows nothing of that."""
        was = self.before is not None and visible(self.before)
        is_now = self.after is not None and visible(self.after)
        if not (was or is_now):
            return None
        kind = b"DELETED" if not is_now else b"MODIFIED" if was else b"ADDED"
        return b'{"type":"' + kind + b'","object":' + self.raw + b"}"


@dataclass(slots=True)
class ApiServer:
    """Objects are never changed in place: each write creates another one."""

    version: int = 100
    objects: dict[str, dict[Key, Json]] = field(default_factory=dict)
    """By the path of their collection."""
    changes: dict[str, list[Change]] = field(default_factory=dict)
    compacted: int = 0
    """Changes up to this version are gone: watches that resume before it must list again."""
    pods_changed: float = 0.0
    """When any pod changed last."""
    written: asyncio.Event = field(default_factory=asyncio.Event)

    def collection(self, path: str) -> dict[Key, Json]:
        return self.objects.setdefault(path, {})

    def pods(self) -> Iterator[Json]:
        yield from self.collection(paths.PODS).values()

    def put(self, path: str, item: Json) -> Json:
        """Creates or replaces."""
        metadata = item["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        before = self.collection(path).get(key)
        self.version += 1
        after = {**item, "metadata": {**metadata, "resourceVersion": str(self.version)}}
        self.collection(path)[key] = after
        self._record(path, before, after)
        return after

    def delete(self, path: str, key: Key) -> None:
        before = self.collection(path).pop(key, None)
        if before is not None:
            self.version += 1
            self._record(path, before, None)

    def compact(self) -> None:
        """Watches break off and must list anew."""
        self.compacted = self.version
        for changes in self.changes.values():
            changes.clear()
        self.wake()

    def _record(self, path: str, before: Json | None, after: Json | None) -> None:
        at = asyncio.get_running_loop().time()
        shown = after if after is not None else _at_version(before or {}, self.version)
        raw = msgspec.json.encode(shown)
        if path == paths.PODS:
            self.pods_changed = at
        self.changes.setdefault(path, []).append(Change(self.version, at, before, after, raw))
        self.wake()

    def wake(self) -> None:
        """Wakes every watch: it looks for changes, and whether its connection is gone."""
        self.written.set()
        self.written = asyncio.Event()

    # Requests

    def handle(self, request: ApiRequest) -> Json:
        """Returns the answer. Raises ``ApiError``."""
        if found := _POD.match(request.path):
            return self._pod(request, (found[1], found[2]), found[3])
        if found := _NAMED.match(request.path):
            return self._named(request, found[1], found[2])
        if request.method == "POST":
            return self._create(request)
        return self._list(request)

    def _create(self, request: ApiRequest) -> Json:
        """Only pods are kept, of which a kubelet makes mirrors."""
        body = request.body or {}
        if request.path not in POD_FOLDERS:
            return body
        metadata = body["metadata"]
        if (metadata["namespace"], metadata["name"]) in self.collection(paths.PODS):
            raise refusal(HTTPStatus.CONFLICT, f"pods {metadata['name']} already exists")
        uid = f"uid-of-{self.version}"
        return self.put(
            paths.PODS, {**body, "metadata": {**metadata, "uid": uid, "creationTimestamp": CREATED}}
        )

    def _list(self, request: ApiRequest) -> Json:
        shows = visible(request.params.get("fieldSelector", ""))
        items = [item for item in self.collection(request.path).values() if shows(item)]
        return {"metadata": {"resourceVersion": str(self.version)}, "items": items}

    def _pod(self, request: ApiRequest, key: Key, part: str | None) -> Json:
        pod = self.collection(paths.PODS).get(key)
        if pod is None:
            raise refusal(HTTPStatus.NOT_FOUND, f"pods {key[1]} not found")
        body = request.body or {}
        _require_same(pod, body)
        if part == "binding":
            return self._bind(pod, body)
        if request.method == "DELETE":
            self.delete(paths.PODS, key)
            return {}
        return self._merge(paths.PODS, pod, request) if request.method == "PATCH" else pod

    def _bind(self, pod: Json, binding: Json) -> Json:
        if pod["spec"].get("nodeName") or "deletionTimestamp" in pod["metadata"]:
            raise refusal(HTTPStatus.CONFLICT, "the pod is already assigned to a node, or being deleted")
        annotations = {**pod["metadata"]["annotations"], **binding["metadata"].get("annotations", {})}
        spec = {**pod["spec"], "nodeName": binding["target"]["name"]}
        self.put(
            paths.PODS, {**pod, "metadata": {**pod["metadata"], "annotations": annotations}, "spec": spec}
        )
        return {}

    def _named(self, request: ApiRequest, path: str, name: str) -> Json:
        key = ("", name)
        present, body = self.collection(path).get(key), request.body or {}
        if request.method == "PUT" or "apply-patch" in request.content_type:
            return self._replace(path, present, body)
        if present is None:
            raise refusal(HTTPStatus.NOT_FOUND, f"{name} not found")
        return self._merge(path, present, request) if request.method == "PATCH" else present

    def _replace(self, path: str, present: Json | None, body: Json) -> Json:
        version = body["metadata"].get("resourceVersion")
        if present and version and version != present["metadata"]["resourceVersion"]:
            raise refusal(HTTPStatus.CONFLICT, "the object has been modified")
        metadata = {key: value for key, value in body["metadata"].items() if key != "namespace"}
        return self.put(path, {**body, "metadata": metadata})

    def _merge(self, path: str, present: Json, request: ApiRequest) -> Json:
        body = request.body or {}
        _require_same(present, body)
        written = merged(present, body)
        if "dryRun" in request.params or written == present:
            return written
        return self.put(path, written)


def _require_same(present: Json, body: Json) -> None:
    """Raises ``ApiError`` where ``body`` is for another object than ``present``, or for another version."""
    known, asked = present["metadata"], body.get("metadata", {})
    for name in ("uid", "resourceVersion"):
        if asked.get(name, known[name]) != known[name]:
            raise refusal(HTTPStatus.CONFLICT, f"the {name} in the precondition does not match")


def merged(into: Json, patch: Json) -> Json:
    """JSON merge patch (RFC 7396)."""
    result = dict(into)
    for key, value in patch.items():
        known = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(known, dict):
            result[key] = merged(known, value)
        else:
            result[key] = value
    return result


def refusal(status: HTTPStatus, message: str) -> ApiError:
    return ApiError(status.value, status.phrase.replace(" ", ""), message)


def visible(selector: str) -> Visible:
    """Returns whether an object is what the field selector selects."""
    terms = [re.split("(!?=)", term, maxsplit=1) for term in selector.split(",") if term]

    def shows(item: Json) -> bool:
        return all((_field(item, name) == value) == (sign == "=") for name, sign, value in terms)

    return shows


def _field(item: Json, name: str) -> str:
    value: object = item
    for word in name.split("."):
        value = value.get(word, "") if isinstance(value, dict) else ""
    return str(value)


def _at_version(item: Json, version: int) -> Json:
    return {**item, "metadata": {**item["metadata"], "resourceVersion": str(version)}}
