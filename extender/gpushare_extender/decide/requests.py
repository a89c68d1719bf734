"""What a pod asks for, and a short memory of it between a pod's filter and its bind."""

from collections import OrderedDict
from dataclasses import dataclass

from gpushare_core.placement.requests import PodRequest, asked_sum, pod_request
from gpushare_extender.http.wire import PodSpec

REMEMBERED = 4096
"""Pods. More than a scheduler has under way at once; a forgotten one costs a call to the API server."""


@dataclass(frozen=True, slots=True)
class PodNeeds:
    """``cpu`` and ``memory`` are requests, as quantities; workload-aware placement will want them."""

    units: PodRequest
    cpu: str
    memory: str


def read_needs(spec: PodSpec, *, resource: str) -> PodNeeds:
    """What ``spec`` asks of the extended ``resource``, and of CPU and memory besides."""
    plain = spec.to_json()
    units = pod_request(plain, resource)
    return PodNeeds(units, asked_sum(plain, "cpu"), asked_sum(plain, "memory"))


class NeedsMemory:
    """The needs of the pods filtered last, by UID. Nothing that counts: they are immutable for a UID."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._needs: OrderedDict[str, PodNeeds] = OrderedDict()

    def remember(self, uid: str, needs: PodNeeds) -> None:
        self._needs[uid] = needs
        self._needs.move_to_end(uid)
        if len(self._needs) > self._most:
            self._needs.popitem(last=False)

    def recall(self, uid: str) -> PodNeeds | None:
        return self._needs.get(uid)

    def forget(self, uid: str) -> None:
        self._needs.pop(uid, None)
