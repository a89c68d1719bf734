"""What pods that fit somewhere are going to be bound with, as their filter has shown it. Pure.

The bind verb names a pod and nothing of what it asks for, and the API server is asked for that: until it has
answered, others would find the units free. What is known here keeps them so long, and decides nothing else.
"""

from collections import OrderedDict
from dataclasses import replace

from gpushare_core.placement.requests import PodRequest

MOST_PODS = 2048
"""Those filtered longest ago are forgotten first. Each takes about 0.5 KiB."""


def is_same(one: PodRequest, other: PodRequest) -> bool:
    """Returns whether both get the same of every node."""
    return _amounts(one) == _amounts(other)


def _amounts(request: PodRequest) -> list[tuple[str, str, int]]:
    return [(each.name, each.resource, each.total) for each in request.resources]


class ExpectedRequests:
    """By pod UID. Use from one thread."""

    def __init__(self, most: int = MOST_PODS) -> None:
        self._most = most
        self._asked: OrderedDict[str, PodRequest] = OrderedDict()

    def __len__(self) -> int:
        return len(self._asked)

    def put(self, uid: str, request: PodRequest) -> None:
        """The pod asks for ``request``, by its filter. Of its containers nothing is kept: there may be
        thousands of them."""
        if not (uid and request.resources):
            return
        self._asked[uid] = PodRequest(tuple(replace(each, containers={}) for each in request.resources))
        self._asked.move_to_end(uid)
        if len(self._asked) > self._most:
            self._asked.popitem(last=False)

    def take(self, uid: str) -> PodRequest | None:
        """Returns what the pod is expected to ask for, and forgets it; None where that is not known."""
        return self._asked.pop(uid, None)
