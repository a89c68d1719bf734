"""Events for pods that wait for what no node has. Pure.

kube-scheduler adds up what each node has of a resource. Where that does not suffice it does not ask an
extender, and writes ``Insufficient`` and the resource's name: not that no node serves it, nor how big the
biggest card is.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from gpushare_core.api.events import new_event
from gpushare_core.api.names import GROUP
from gpushare_core.dialects.table import RESOURCES, SHARED_RESOURCES
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.quantity import read_amount
from gpushare_core.placement.requests import ResourceRequest
from gpushare_core.scheduling.objects.pod import (
    Container,
    KubePod,
    PodMetadata,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.text.json_object import UNREADABLE_JSON, Json
from gpushare_extender import PROGRAM

MAX_NAMES = 5
"""Resources that a note lists."""
SAID_BY_US = "insufficient GPU"
"""In the message that kube-scheduler writes where it has asked the extender: it says the reason already."""


class Waiting(StrEnum):
    """Why a pod waits: the reason of its Event."""

    NOT_SERVED = "ResourceNotServed"
    TOO_MUCH = "MoreThanAnyNodeHas"


class PodCondition(msgspec.Struct):
    """Source: ``v1.PodCondition``."""

    type: str
    status: str = ""
    reason: str = ""
    message: str = ""


class WaitingStatus(PodStatus, rename="camel"):
    conditions: list[PodCondition] | None = None


class WaitingSpec(PodSpec, rename="camel", omit_defaults=True):
    scheduling_gates: list[Any] | None = None


class WaitingPod(KubePod, kw_only=True):
    """A pod without a node, as the API server has it."""

    metadata: PodMetadata
    spec: WaitingSpec = msgspec.field(default_factory=WaitingSpec)
    status: WaitingStatus = msgspec.field(default_factory=WaitingStatus)

    @property
    def refusal(self) -> str:
        """What a scheduler has written that found no node for it; empty where none has."""
        if self.metadata.deletion_timestamp or self.spec.scheduling_gates:
            return ""
        conditions = self.status.conditions or ()
        return next((condition.message for condition in conditions if _is_refusal(condition)), "")

    @property
    def asked_names(self) -> list[str]:
        """The names of the resources that it asks for, if they are ours or look like ours."""
        containers = (*(self.spec.init_containers or ()), *(self.spec.containers or ()))
        limits = map(_limits, containers)
        named = (name for limit in limits for name, amount in limit.items() if read_amount(amount) > 0)
        return [name for name in dict.fromkeys(named) if name in RESOURCES or name.startswith(f"{GROUP}/")]


def _is_refusal(condition: PodCondition) -> bool:
    return (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")


def _limits(container: Container) -> Mapping[str, str | int | float]:
    return (container.resources or ResourceRequirements()).limits or {}


def read_waiting(items: Iterable[Json]) -> Iterator[WaitingPod]:
    """Yields the pods of ``items`` (as JSON) for which a scheduler has found no node, and that may concern
    us; of one that cannot be read nothing is known."""
    for item in items:
        try:
            pod = msgspec.convert(item, WaitingPod)
        except UNREADABLE_JSON:
            continue
        if pod.refusal and pod.asked_names:
            yield pod


@dataclass(frozen=True, slots=True)
class Remark:
    """Why a pod waits, for its users."""

    pod: PodReference
    reason: Waiting
    note: str

    def to_event(self, now: datetime) -> Json:
        """Returns the Event: of each reason there is one for a pod, whoever writes it."""
        return new_event(
            regarding=self.pod.to_json(),
            type_="Warning",
            reason=self.reason,
            action="Scheduling",
            note=self.note,
            seed=f"{self.pod.uid}/{self.reason}",
            controller=PROGRAM,
            now=now,
        )


def remark(pod: WaitingPod, biggest: Mapping[str, int]) -> Remark | None:
    """Returns None where ``pod`` waits for units that others have, and where its scheduler says why it waits.

    ``biggest``: name of each resource that nodes serve -> the greatest amount that a pod can have on an empty
    node.
    """
    unserved = [name for name in pod.asked_names if name not in biggest]
    if unserved:
        return Remark(pod.reference, Waiting.NOT_SERVED, _not_served(unserved[0], biggest))
    if SAID_BY_US in pod.refusal:
        return None
    for asked in pod.request(RESOURCES).resources:
        if asked.total > biggest[asked.name] and f"Insufficient {asked.name}" in pod.refusal:
            return Remark(pod.reference, Waiting.TOO_MUCH, _too_much(asked, biggest[asked.name]))
    return None


def _not_served(name: str, biggest: Mapping[str, int]) -> str:
    served = ", ".join(sorted(biggest)[:MAX_NAMES])
    what = f"ask for one of these: {served}" if served else "no node shares its cards now"
    if name in SHARED_RESOURCES:
        return (
            f"the pod asks for {name}, and no node that shares its cards serves that: it waits for a node on"
            f" which another device plugin offers it; if there is none, {what}"
        )
    return f"the pod asks for {name}, and no node serves that; {what}"


def _too_much(asked: ResourceRequest, most: int) -> str:
    what = mode_serving(asked.resource).most_text(most)
    return f"the pod asks for {asked.total} of {asked.name}{asked.by_container}, and {what}; ask for less"
