"""What pods that fit somewhere are going to be bound with, as their filter has shown it. Pure.

The bind verb names a pod and nothing of what it asks for. Who has proven to be kube-scheduler is believed: a
pod's request never changes, and the Binding names its UID. What others say keeps the units until the API
server has told what the pod does ask for, and decides nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_extender.decide.pod import ANY_VERSION, PodVersion
from gpushare_extender.decide.remembered_pods import RememberedPods

MAX_PODS = 2048
"""Those filtered longest ago are forgotten first. Each takes about 0.5 KiB, 2 with all its containers."""
MAX_CONTAINERS = 16
"""That are kept of a pod: it may have thousands."""


@dataclass(frozen=True, slots=True)
class ExpectedRequest:
    """What one pod asks for. ``names``: of the resources that were ours when this was read, where it is all
    of it and certain; None where it is not."""

    request: PodRequest
    names: Mapping[str, ResourceClass] | None = None
    version: PodVersion = ANY_VERSION
    """Of the pod that says so."""


def is_same(one: PodRequest, other: PodRequest) -> bool:
    """Returns whether both get the same of every node."""
    return _amounts(one) == _amounts(other)


def _amounts(request: PodRequest) -> list[tuple[str, str, int]]:
    return [(resource.name, resource.resource, resource.total) for resource in request.resources]


class ExpectedRequests:
    """By pod UID. Use from one thread."""

    def __init__(self, most: int = MAX_PODS) -> None:
        self._asked = RememberedPods[ExpectedRequest](most)

    def __len__(self) -> int:
        return len(self._asked)

    def put(
        self,
        uid: str,
        request: PodRequest,
        *,
        proven: Mapping[str, ResourceClass] | None = None,
        version: PodVersion = ANY_VERSION,
    ) -> None:
        """The pod asks for ``request``, by its filter. ``proven``: the resources that are ours, where
        kube-scheduler itself has said so."""
        self._asked.pop(uid, None)
        if not (uid and request.resources):
            return
        containers = len(request.init_containers) + sum(
            len(resource.containers) for resource in request.resources
        )
        if proven is not None and version.resource_version and containers <= MAX_CONTAINERS:
            expected = ExpectedRequest(request, proven, version)
        else:
            bare = tuple(replace(resource, containers={}) for resource in request.resources)
            expected = ExpectedRequest(PodRequest(bare))
        self._asked.remember(uid, expected)

    def take(self, uid: str) -> ExpectedRequest | None:
        """Returns what the pod is expected to ask for, and forgets it; None where that is not known."""
        return self._asked.pop(uid, None)
