"""What the pods filtered last request: kept until their bind, which only names the pod."""

from collections import OrderedDict

from gpushare_core.placement.requests import PodRequest

CACHE_SIZE = 4096
"""Pods. More than a scheduler has under way at once; one that is not here costs a call to the API server."""


class RequestCache:
    """Requests by pod UID; a UID's request never changes. The one put longest ago goes first."""

    def __init__(self, size: int = CACHE_SIZE) -> None:
        self._size = size
        self._requests: OrderedDict[str, PodRequest] = OrderedDict()

    def put(self, uid: str, request: PodRequest) -> None:
        self._requests[uid] = request
        self._requests.move_to_end(uid)
        if len(self._requests) > self._size:
            self._requests.popitem(last=False)

    def get(self, uid: str) -> PodRequest | None:
        return self._requests.get(uid)

    def drop(self, uid: str) -> None:
        self._requests.pop(uid, None)
