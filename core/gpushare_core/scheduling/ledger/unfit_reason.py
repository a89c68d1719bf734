"""Why a request does not fit a node: in words for people, and as one of few kinds for metrics. Pure."""

from collections import Counter
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from enum import StrEnum

from gpushare_core.placement.modes.table import other_resource_reason, several_resources_reason
from gpushare_core.placement.requests import Request, ResourceRequest
from gpushare_core.scheduling.ledger.node_room import NodeRoom, room_of


class Refusal(StrEnum):
    """The kinds of reasons: all that there are, for a label's values have to be few."""

    NO_ROOM = "NoRoom"
    """It would fit if other pods went."""
    CARDS_TOO_SMALL = "CardsTooSmall"
    """Not even the empty node takes it."""
    NOT_TOGETHER = "NotTogether"
    OTHER_RESOURCE = "OtherResource"
    SEVERAL_RESOURCES = "SeveralResources"
    CROWDED_CONTAINER = "CrowdedContainer"
    TOO_MANY_UNITS = "TooManyUnits"
    """The kubelet could not write the pod's status."""
    ANNOTATIONS_FULL = "AnnotationsFull"
    """Our annotations would not fit beside the pod's own."""
    NODE_CLOSED = "NodeClosed"
    NOT_SHARED = "NotShared"
    HELD_ELSEWHERE = "HeldElsewhere"
    """The pod has units on another node already."""


OF_THE_POD = frozenset({Refusal.CROWDED_CONTAINER, Refusal.TOO_MANY_UNITS, Refusal.ANNOTATIONS_FULL})
"""Those for which no node is to blame."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class UnfitReason:
    """Why a request does not fit a node. Compared by identity: thousands of nodes share few of them."""

    message: str
    kind: Refusal
    resolvable: bool
    """Whether it would fit if other pods went."""
    resource: str = ""
    """The one that does not suffice; empty where the reason is another one."""
    nearness: tuple[int, int] = (0, 0)
    """The greater, the less of ``resource`` is missing."""

    @property
    def alike(self) -> Hashable:
        """Equal for reasons that differ in amounts alone."""
        return (self.kind, self.resource) if self.resource else self.message

    @property
    def brief(self) -> str:
        """The message; of a closed node without what it alone may have, such as its cards' names."""
        return self.message.partition(": ")[0] if self.kind is Refusal.NODE_CLOSED else self.message

    @property
    def identity(self) -> Hashable:
        """Equal for reasons that say the same."""
        return (self.message, self.kind, self.resolvable, self.resource, self.nearness)


NOT_TOGETHER = UnfitReason(
    "insufficient GPU cards for all resources of the pod together", Refusal.NOT_TOGETHER, resolvable=True
)
"""Each resource alone would fit, and no card serves two classes."""
UNKNOWN_NODE = UnfitReason("node(s) that share no GPU cards", Refusal.NOT_SHARED, resolvable=False)
MAX_IN_FULL = 3
"""Reasons why nodes are closed that begin alike: where there are more, each is given in brief."""


def messages(reasons: Collection[UnfitReason]) -> dict[UnfitReason, str]:
    """Returns the message for kube-scheduler of the nodes with each of ``reasons``:

    1. Where amounts do not suffice: the amounts of the node that is nearest to a fit.
    2. Where many nodes are closed: nothing that is of one node alone.

    kube-scheduler counts nodes by their messages, and writes that into the pod. With amounts of each node the
    sentence would be as long as the cluster is large, and another one after every bind. Each time it writes
    the sentence, kube-scheduler tries the pod once more.
    """
    nearest: dict[Hashable, UnfitReason] = {}
    for reason in sorted(reasons, key=lambda reason: (reason.nearness, reason.message)):
        nearest[reason.alike] = reason
    by_brief = Counter(reason.brief for reason in reasons if reason.kind is Refusal.NODE_CLOSED)
    return {
        reason: reason.brief if by_brief[reason.brief] > MAX_IN_FULL else nearest[reason.alike].message
        for reason in reasons
    }


def unfit_reason(request: Request, node: NodeRoom) -> UnfitReason:
    if len(request.resources) > max(1, len(node)):
        message = several_resources_reason(request.resources)
        return UnfitReason(message, Refusal.SEVERAL_RESOURCES, resolvable=False)
    reasons = [reason for resource in request.resources if (reason := _resource_reason(resource, node))]
    return min(reasons, key=lambda reason: reason.resolvable, default=NOT_TOGETHER)


def _resource_reason(request: ResourceRequest, node: NodeRoom) -> UnfitReason | None:
    """Returns None where ``request`` fits ``node`` if the pod asks for nothing else."""
    offered = room_of(request.name, node)
    if offered is None:
        message = other_resource_reason(request.name, (served.name for served in node))
        return UnfitReason(message, Refusal.OTHER_RESOURCE, resolvable=False)
    if request.total <= offered.room.greatest:
        return None
    resolvable = request.total <= offered.room.possible
    kind = Refusal.NO_ROOM if resolvable else Refusal.CARDS_TOO_SMALL
    room = offered.room
    return UnfitReason(
        offered.mode.explain(request.total, room),
        kind,
        resolvable=resolvable,
        resource=request.name,
        nearness=(room.greatest, room.possible) if resolvable else (room.possible, room.greatest),
    )
