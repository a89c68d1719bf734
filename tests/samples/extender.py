"""GPUShareNodes, holders and pods for the extender's tests, short to write."""

from msgspec import structs

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.modes.sharing_mode import NodeMode
from gpushare_core.placement.modes.table import MEMORY
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest
from gpushare_core.scheduling.objects.holder import CardUnits, Holder, PodUpdate
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.scheduling.objects.share_node import (
    SERVED,
    ReportedHolder,
    ShareNode,
    ShareNodeCard,
    node_unit,
    unit_meaning,
)
from gpushare_core.text.json_object import Json

GI = 2**30
ANNOTATION = "gpushare.io/allocation"
RESOURCE = "gpushare.io/memory"


def asked(
    units: int, resource: ResourceClass = ResourceClass.MEMORY, *, container: str = "main"
) -> ResourceRequest:
    """A request of one container."""
    return ResourceRequest(GPUSHARE.resource_name(resource), resource, units, {container: units})


def pod_request(units: int) -> PodRequest:
    """A request of memory; none at all for 0 units."""
    return PodRequest((asked(units),) if units else ())


def share_node(
    name: str = "n1",
    *units: int,
    sick: tuple[int, ...] = (),
    strategy: Strategy = Strategy.BINPACK,
    closed_reason: str = "",
    unit: str = "1Gi",
    mode: NodeMode = MEMORY,
) -> ShareNode:
    """A node with a card for each of ``units``, named ``<node>-<index>``; two of 16 if none is given."""
    cards = tuple(
        ShareNodeCard(f"{name}-{index}", index, size, index not in sick, memory=size * GI)
        for index, size in enumerate(units or (16, 16))
    )
    return ShareNode(
        name=name,
        cards=cards,
        unit=unit,
        meanings=meaning.meanings if (meaning := node_unit(unit)) else (),
        resources=SERVED[GPUSHARE.name, mode.name],
        strategy=strategy,
        closed_reason=closed_reason,
    )


def cordoning(present: ShareNode, card: int) -> ShareNode:
    """``present`` with no new pods on ``card``."""
    cards = list(present.cards)
    cards[card] = structs.replace(cards[card], cordoned=True)
    return structs.replace(present, cards=tuple(cards))


def reporting(present: ShareNode, card: int = 0, *, allocated: int | None = None, **units: int) -> ShareNode:
    """``present`` with what its plugin reports of ``card``: ``a=4`` stands for 4 units of the pod ``a``."""
    holders = tuple(ReportedHolder(uid, "default", uid, amount, amount) for uid, amount in units.items())
    total = sum(units.values()) if allocated is None else allocated
    cards = list(present.cards)
    cards[card] = structs.replace(cards[card], allocated=total, holders=holders)
    return structs.replace(present, cards=tuple(cards))


def reference(name: str = "a", *, uid: str = "") -> PodReference:
    return PodReference("default", name, uid or f"uid-{name}")


def holder(uid: str, *, node: str = "n1", unit: str = "1Gi", **cards: int) -> Holder:
    """``c0=4`` stands for 4 units of the node's card 0."""
    shares = tuple(CardUnits(f"{node}-{card.removeprefix('c')}", units) for card, units in cards.items())
    return Holder(
        uid=uid, namespace="default", name=uid, node=node, cards=shares, unit_meaning=unit_meaning(unit)
    )


def pod_update(uid: str, *, node: str = "n1", unit: str = "1Gi", **cards: int) -> PodUpdate:
    return PodUpdate(uid, holder(uid, node=node, unit=unit, **cards))


def share_node_json(name: str = "n1", *, cards: int = 2, units: int = 16) -> Json:
    """A GPUShareNode as its plugin leaves it."""
    return {
        "metadata": {"name": name},
        "spec": {"mode": "Memory", "memoryUnit": "1Gi", "dialect": "gpushare.io", "strategy": "Binpack"},
        "status": {
            "memoryUnit": "1Gi",
            "conditions": [{"type": "Registered", "status": "True", "message": ""}],
            "cards": [
                {
                    "index": index,
                    "uuid": f"{name}-{index}",
                    "units": units,
                    "memory": f"{units}Gi",
                    "health": "Healthy",
                }
                for index in range(cards)
            ],
        },
    }


def annotation(pod: str = "a", *, node: str = "n1", unit: str = "1Gi", **cards: int) -> str:
    shares = {f"{node}-{card.removeprefix('c')}": units for card, units in cards.items()}
    return encode_allocation(
        Allocation(
            node=node,
            uid=f"uid-{pod}",
            at="2026-11-21T10:00:00Z",
            unit=unit,
            containers={"main": shares},
            cards=shares,
        )
    )


def container_json(name: str = "main", units: int | None = None) -> Json:
    limits = {"cpu": "1", "memory": "1Gi", **({} if units is None else {RESOURCE: str(units)})}
    return {"name": name, "resources": {"limits": limits, "requests": {"cpu": "500m", "memory": "256Mi"}}}


def pod_json(
    name: str = "a",
    *,
    uid: str = "",
    units: int | None = 4,
    node: str = "",
    annotations: dict[str, str] | None = None,
) -> Json:
    """A pod of one container; unbound unless ``node`` is given."""
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": uid or f"uid-{name}",
            "annotations": annotations or {},
        },
        "spec": {"containers": [container_json(units=units)], **({"nodeName": node} if node else {})},
        "status": {"phase": "Running" if node else "Pending"},
    }


def holder_json(name: str = "a", *, phase: str = "Running", card: int = 0, units: int = 4) -> Json:
    """A pod that was bound to n1 with ``units`` of ``card``."""
    shares = {f"c{card}": units}
    pod = pod_json(name, node="n1", annotations={ANNOTATION: annotation(name, **shares)})  # type: ignore[arg-type]
    pod["status"]["phase"] = phase
    return pod
