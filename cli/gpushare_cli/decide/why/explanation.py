"""What ``why`` says of a pod."""

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar

import msgspec

from gpushare_cli.decide.why.finding import Finding, Remedy
from gpushare_cli.report import CommandReport, ExitStatus


class WhyState(StrEnum):
    """How a pod stands; the first that applies."""

    UNKNOWN = "Unknown"
    """The GPUShareNodes cannot be read."""
    ENDED = "Ended"
    RUNNING = "Running"
    BOUND = "Bound"
    """It has a node, and its containers do not run yet."""
    FITS = "Fits"
    """It has no node yet, and would get one now."""
    WAITING = "Waiting"
    """Something keeps it from running."""


class ContainerAsk(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str
    units: int
    memory_bytes: int | None = None
    """None where units are not of memory, or their size is not known."""
    is_init: bool = False
    """Whether it ends before the others start."""


class ResourceAsk(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a pod asks of one extended resource."""

    resource: str
    resource_class: str
    """memory, slice or card."""
    units: int
    """The most that the pod holds at any moment."""
    unit: str = ""
    """What one unit is, such as ``1Gi``; empty where no node serves the resource. Several with commas."""
    memory_bytes: int | None = None
    containers: list[ContainerAsk] = msgspec.field(default_factory=list)


class SchedulerWords(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An Event about the pod."""

    by: str
    reason: str
    message: str
    count: int = 1
    last_seen: str = ""


class Attempts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    since: str = ""
    """When the pod was created, RFC 3339."""
    seconds: int = 0
    """For how long it waits."""
    tried: int | None = None
    """How often a scheduler found no node; None where its Events cannot be read."""
    last_tried: str = ""
    is_unschedulable: bool = False
    """Whether a scheduler has written into the pod that it finds no node."""


class Neighbour(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Another pod on the same card."""

    namespace: str
    name: str
    units: int
    used_bytes: int | None = None


class CardOfPod(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a pod has of a card."""

    node: str
    index: int | None
    """None for a card that the GPUShareNode does not name."""
    uuid: str
    units: int
    unit: str = ""
    memory_bytes: int | None = None
    used_bytes: int | None = None
    """None where use is not measured by container."""
    card_units: int | None = None
    free_units: int | None = None
    neighbours: list[Neighbour] = msgspec.field(default_factory=list)


class ContainerWords(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a container stands, by its kubelet."""

    name: str
    state: str
    reason: str = ""
    message: str = ""


class PodExplanation(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "PodExplanation"
    namespace: str
    name: str
    uid: str = ""
    exists: bool = True
    """False for a manifest that the API server does not have."""
    state: WhyState
    answer: str
    """In one sentence."""
    asks: list[ResourceAsk] = msgspec.field(default_factory=list)
    attempts: Attempts | None = None
    """Of a pod that waits."""
    node: str = ""
    cards: list[CardOfPod] = msgspec.field(default_factory=list)
    choice: list[str] = msgspec.field(default_factory=list)
    """Why the pod has these cards, as far as that can be known, in sentences."""
    isolation: list[str] = msgspec.field(default_factory=list)
    """What holds its containers to their share of a card, in sentences; empty where that is not known."""
    containers: list[ContainerWords] = msgspec.field(default_factory=list)
    """Those that do not run, of a pod that has a node."""
    findings: list[Finding] = msgspec.field(default_factory=list)
    remedies: list[Remedy] = msgspec.field(default_factory=list)
    words: list[SchedulerWords] = msgspec.field(default_factory=list)
    """What schedulers and the kubelet say of the pod, the latest first."""
    unread: dict[str, str] = msgspec.field(default_factory=dict)
    """What could not be read -> why."""

    @property
    def names(self) -> Sequence[str]:
        return (f"pod/{self.name}",)

    @property
    def exit_status(self) -> ExitStatus:
        if self.state is WhyState.UNKNOWN:
            return ExitStatus.CANNOT_LOOK
        return ExitStatus.GOOD if self.state in (WhyState.RUNNING, WhyState.FITS) else ExitStatus.NO
