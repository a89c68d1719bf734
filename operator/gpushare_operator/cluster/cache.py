"""The operator's memory of the cluster: filled by lists and by watch events, read as snapshots."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gpushare_operator.cluster import objects as views
from gpushare_operator.cluster.snapshot import Snapshot

Json = Mapping[str, Any]


class Kind(StrEnum):
    """What is followed."""

    POLICY = "policies"
    NODE = "nodes"
    SHARE_NODE = "share_nodes"
    DAEMON_SET = "daemon_sets"
    JOB = "jobs"
    POD = "pods"


VIEWS: dict[Kind, Callable[[Json], Any]] = {
    Kind.POLICY: views.policy_view,
    Kind.NODE: views.node_view,
    Kind.SHARE_NODE: views.share_node_view,
    Kind.DAEMON_SET: views.daemon_set_view,
    Kind.JOB: views.job_view,
    Kind.POD: views.pod_view,
}


@dataclass(frozen=True, slots=True)
class _Held:
    """``view`` None: gone since ``version``."""

    version: int
    view: Any


@dataclass(slots=True)
class Listing:
    """A list that is being read: whole objects are not kept."""

    kind: Kind
    held: dict[str, _Held] = field(default_factory=dict)

    def take(self, bodies: Iterable[Json]) -> None:
        self.held.update({body["metadata"]["name"]: _hold(self.kind, body) for body in bodies})


@dataclass(slots=True)
class Inventory:
    """Views by kind and name.

    Lists, watch events and answers to writes arrive in any order; of one object the newest wins. Resource
    versions can be compared as numbers (KEP-5504).
    """

    _held: dict[Kind, dict[str, _Held]] = field(default_factory=lambda: {kind: {} for kind in Kind})

    def replace(self, kind: Kind, listing: Listing, version: str) -> bool:
        """Take over a list as of ``version``: what is not in it and no newer is gone.

        Returns whether anything changed.
        """
        before, after = self._held[kind], listing.held
        newer = {name: held for name, held in before.items() if held.version > _number(version)}
        self._held[kind] = {**after, **newer}
        return _views(before) != _views(self._held[kind])

    def observe(self, kind: Kind, body: Json) -> bool:
        """Take over one object as it is now. Returns whether anything changed that the operator looks at."""
        return self._take(kind, body["metadata"]["name"], _hold(kind, body))

    def forget(self, kind: Kind, body: Json) -> bool:
        """One object is gone, unless a newer one of the same name is known already."""
        return self._take(kind, body["metadata"]["name"], _Held(_version(body), None))

    def _take(self, kind: Kind, name: str, new: _Held) -> bool:
        old = self._held[kind].get(name, _Held(-1, None))
        if old.version > new.version:
            return False
        self._held[kind][name] = new
        return bool(old.view != new.view)

    def snapshot(self) -> Snapshot:
        return Snapshot(**{str(kind): _views(held) for kind, held in self._held.items()})

    def policies(self) -> list[str]:
        return list(_views(self._held[Kind.POLICY]))


def _hold(kind: Kind, body: Json) -> _Held:
    return _Held(_version(body), VIEWS[kind](body))


def _version(body: Json) -> int:
    return _number(body["metadata"].get("resourceVersion", ""))


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0


def _views(held: Mapping[str, _Held]) -> dict[str, Any]:
    return {name: each.view for name, each in held.items() if each.view is not None}
