"""What pods that fit somewhere ask for, as their filter has shown it. Pure.

The bind verb names a pod, and not what it asks for. An authenticated kube-scheduler is believed: a pod's
request never changes, and the Binding names its UID. What other callers say only reserves the units until the
API server has said what the pod asks for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.scheduling.objects.pod import ANY_VERSION, PodVersion
from gpushare_extender.decide.remembered_pods import RememberedPods

MAX_PODS = 2048
"""Each takes about 0.5 KiB, 2 with all its containers."""
MAX_CONTAINERS = 16
"""That are remembered of a pod: it may have thousands."""


@dataclass(frozen=True, slots=True)
class ExpectedRequest:
    request: PodRequest
    names: Mapping[str, ResourceClass] | None = None
    """The resources that were ours when the pod was read; None where the request is not certain, or not
    whole."""
    version: PodVersion = ANY_VERSION


def is_same(one: PodRequest, other: PodRequest) -> bool:
    """Returns whether both get the same on every node."""
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
        authenticated: Mapping[str, ResourceClass] | None = None,
        version: PodVersion = ANY_VERSION,
    ) -> None:
        """The pod asks for ``request``, by its filter. ``authenticated``: the resources that are ours, where
        the authenticated kube-scheduler says so."""
        self._asked.pop(uid, None)
        if not (uid and request.resources):
            return
        containers = len(request.init_containers) + sum(len(asked.containers) for asked in request.resources)
        if authenticated is not None and version.resource_version and containers <= MAX_CONTAINERS:
            expected = ExpectedRequest(request, authenticated, version)
        else:
            bare = tuple(replace(resource, containers={}) for resource in request.resources)
            expected = ExpectedRequest(PodRequest(bare))
        self._asked.remember(uid, expected)

    def take(self, uid: str) -> ExpectedRequest | None:
        return self._asked.pop(uid, None)
