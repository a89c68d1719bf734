"""The auditor's records, from the JSON of objects and of the extender's inspection."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from gpushare_core.api.enums import Health
from gpushare_core.api.names import COMPONENT_LABEL, FIELD_MANAGER, MANAGED_BY_LABEL, MIRROR_ANNOTATION
from gpushare_core.api.share_node import (
    CardStatus,
    LenientCard,
    LenientDivision,
    LenientMeta,
    LenientShare,
    PodShare,
    UnitTotals,
)
from gpushare_core.audit.records import (
    NO_HOST,
    ClusterRecords,
    ContainerKey,
    HostRecords,
    LedgerCard,
    LedgerRecord,
    LedgerShare,
    NodeRecords,
    PodKey,
    PodRecord,
    SeenCards,
    ShareNodeRecord,
    StatusCard,
    StatusHolder,
)
from gpushare_core.dialects.annotation_room import size_of
from gpushare_core.dialects.dialect import CARD_VARIABLE, OWN_VARIABLES, Dialect
from gpushare_core.dialects.table import ANNOTATION_KEYS, DIALECTS, RESOURCES
from gpushare_core.dialects.visible_cards import is_runtime_variable
from gpushare_core.placement.modes.table import class_of_lock
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.placement.requests import ResourceClass, read_request
from gpushare_core.placement.units import NodeUnit, parse_node_unit
from gpushare_core.text.json_object import UNREADABLE_JSON, Json
from gpushare_core.text.whole_number import is_number

_VISIBLE = tuple(
    dict.fromkeys(
        name for dialect in DIALECTS.values() for name in dialect.card_variables if name != CARD_VARIABLE
    )
)
"""Variables of dialects that name cards by UUID, as our own does."""


PLUGIN_COMPONENT = "plugin"
"""Value of ``COMPONENT_LABEL`` on the pods of our device plugin."""
PLUGIN_ACCOUNT = "gpushare-plugin"
"""Their service account."""
NO_NAMES: Mapping[str, PodKey] = MappingProxyType({})
SCHEDULER_INSPECTION = "gpushare"
"""In what kube-scheduler shows of its configuration, where it has the plugin."""


class _AuditedStatus(LenientDivision):
    units: UnitTotals | None = None


class _AuditedShareNode(msgspec.Struct):
    metadata: LenientMeta
    status: _AuditedStatus | None = None


def read_share_node(item: Json) -> ShareNodeRecord:
    """Returns the record of a GPUShareNode; of one that cannot be read the ``problem``."""
    try:
        node = msgspec.convert(item, _AuditedShareNode)
        return _share_node(node, node.status or _AuditedStatus())
    except UNREADABLE_JSON as error:
        return ShareNodeRecord(name=_name_of(item), problem=str(error))


def named_pods(item: Json) -> list[PodKey]:
    """Returns the pods that a GPUShareNode names; none where it cannot be read."""
    return [holder.key.pod for card in read_share_node(item).cards for holder in card.holders]


def _name_of(item: object) -> str:
    """Returns the name of an object of any shape; empty where it has none."""
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _share_node(node: _AuditedShareNode, status: _AuditedStatus) -> ShareNodeRecord:
    return ShareNodeRecord(
        name=node.metadata.name,
        unit=_node_unit(status.memory_unit),
        dialect=status.dialect,
        cards=tuple(map(status_card, status.cards or ())),
        units_total=status.units.total if status.units else None,
        units_allocated=status.units.allocated if status.units else None,
        deleting=node.metadata.deletion_timestamp is not None,
    )


def _node_unit(text: str) -> NodeUnit | None:
    return parse_node_unit(text) if text else None


def status_card(card: CardStatus | LenientCard) -> StatusCard:
    """Raises ``ValueError`` for unknown amounts and classes."""
    return StatusCard(
        uuid=card.uuid,
        index=card.index,
        memory=parse_memory(card.memory),
        units=card.units,
        allocated=card.allocated_units,
        first_unit=card.first_unit,
        lock=class_of_lock(card.lock),
        offers={ResourceClass(name): units for name, units in (card.offers or {}).items()},
        healthy=card.health in (Health.HEALTHY, ""),
        cordoned=card.cordoned,
        holders=tuple(map(_holder, card.pods or ())),
    )


def _holder(share: PodShare | LenientShare) -> StatusHolder:
    pod = PodKey(share.namespace, share.name, share.uid)
    return StatusHolder(key=ContainerKey(pod, share.container), units=share.units, orphaned=share.orphaned)


def read_pod(item: Json) -> PodRecord:
    """``item``: the whole pod as JSON, or its metadata alone."""
    metadata, spec, status = item["metadata"], item.get("spec"), item.get("status") or {}
    annotations = metadata.get("annotations") or {}
    return PodRecord(
        key=PodKey(metadata["namespace"], metadata["name"], metadata["uid"]),
        node=(spec or {}).get("nodeName", ""),
        kubelet_uid=annotations.get(MIRROR_ANNOTATION) or metadata["uid"],
        phase=status.get("phase", "Pending"),
        deleting="deletionTimestamp" in metadata,
        request=read_request(spec, RESOURCES) if spec is not None else None,
        annotations={key: annotations[key] for key in ANNOTATION_KEYS if key in annotations},
        annotations_size=size_of(annotations),
        variables=_written_variables(spec or {}),
        is_plugin=_is_plugin(metadata.get("labels") or {}, spec or {}),
    )


def _is_plugin(labels: Mapping[str, str], spec: Json) -> bool:
    named = (labels.get(MANAGED_BY_LABEL), labels.get(COMPONENT_LABEL))
    return spec.get("serviceAccountName") == PLUGIN_ACCOUNT and named == (FIELD_MANAGER, PLUGIN_COMPONENT)


def _written_variables(spec: Json) -> dict[str, dict[str, str | None]]:
    """Returns container -> the variables of ours, or of a container runtime, that the pod's author sets."""
    found: dict[str, dict[str, str | None]] = {}
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for variable in container.get("env") or ():
            if variable["name"] in OWN_VARIABLES or is_runtime_variable(variable["name"]):
                value = None if "valueFrom" in variable else variable.get("value", "")
                found.setdefault(container["name"], {})[variable["name"]] = value
    return found


def read_environment(variables: Mapping[str, str]) -> SeenCards | None:
    """Returns the cards that a container with these variables sees; None where our variable is missing."""
    cards = variables.get(CARD_VARIABLE, "")
    if not cards:
        return None
    units = variables.get(Dialect.units_variable, "")
    return SeenCards(
        cards=tuple(cards.split(",")),
        units=int(units) if is_number(units) else None,
        unit=variables.get(Dialect.unit_variable, ""),
        others={name: variables[name] for name in _VISIBLE if name in variables},
    )


def cluster_records(
    share_nodes: Iterable[Json],
    pods: Iterable[Json] | None,
    *,
    ledger: Mapping[str, LedgerRecord] | None = None,
    hosts: Mapping[str, HostRecords] | None = None,
) -> ClusterRecords:
    """Returns the records of every node that has a GPUShareNode, from objects as JSON.

    ``hosts``: by node; a node without an entry was not read there.
    """
    bound = None if pods is None else _by_node(pods)
    found: dict[str, NodeRecords] = {}
    for node in map(read_share_node, share_nodes):
        host = (hosts or {}).get(node.name, NO_HOST)
        found[node.name] = NodeRecords(
            node=node.name,
            share_node=node,
            pods=None if bound is None else bound.get(node.name, {}),
            ledger=None if ledger is None else ledger.get(node.name, LedgerRecord()),
            resources=host.resources,
            checkpoint=host.checkpoint,
            environments=host.environments,
            hardware=host.hardware,
        )
    return ClusterRecords(found)


def _by_node(pods: Iterable[Json]) -> dict[str, dict[str, PodRecord]]:
    found: dict[str, dict[str, PodRecord]] = {}
    for item in pods:
        if (item.get("spec") or {}).get("nodeName"):
            pod = read_pod(item)
            found.setdefault(pod.node, {})[pod.key.uid] = pod
    return found


class _InspectedShare(msgspec.Struct):
    namespace: str
    name: str
    units: int
    uid: str = ""
    reserved: bool = False


class _InspectedCard(msgspec.Struct):
    uuid: str
    units: int
    allocated: int
    lock: str = ""
    pods: list[_InspectedShare] | None = None


class _InspectedNode(msgspec.Struct):
    name: str
    unit: str = ""
    cards: list[_InspectedCard] | None = None


class _Inspection(msgspec.Struct):
    nodes: list[_InspectedNode] | None = None


def read_ledger(response: Json, names: Mapping[str, PodKey] = NO_NAMES) -> dict[str, LedgerRecord]:
    """Returns node -> ledger, from the response of an extender's path ``/gpushare/inspect``, or what
    kube-scheduler with the plugin shows.

    ``names``: UID -> pod, of pods that the API server may not have any more. The plugin does not keep their
    names.

    Raises:
        ValueError: this is no such response.
    """
    inspection = msgspec.convert(response, _Inspection)
    return {
        node.name: LedgerRecord(
            unit=_node_unit(node.unit),
            cards=tuple(_ledger_card(card, names) for card in node.cards or ()),
        )
        for node in inspection.nodes or ()
    }


def read_scheduler_ledger(
    shown: Json, names: Mapping[str, PodKey] = NO_NAMES
) -> dict[str, LedgerRecord] | None:
    """Returns node -> ledger, from what a kube-scheduler with the plugin shows at ``/configz``; None where it
    does not know yet what is free. ``names``: as for ``read_ledger``.

    Raises:
        ValueError: this is a kube-scheduler without the plugin.
    """
    found = shown.get(SCHEDULER_INSPECTION)
    if not isinstance(found, dict):
        raise ValueError(f"kube-scheduler shows no {SCHEDULER_INSPECTION}: it has no plugin")
    return None if found.get("nodes") is None else read_ledger(found, names)


def _ledger_card(card: _InspectedCard, names: Mapping[str, PodKey]) -> LedgerCard:
    """A card that serves no class, or two, has no lock."""
    return LedgerCard(
        uuid=card.uuid,
        units=card.units,
        allocated=card.allocated,
        lock=ResourceClass(card.lock) if card.lock else None,
        shares=tuple(_ledger_share(share, names) for share in card.pods or ()),
    )


def _ledger_share(share: _InspectedShare, names: Mapping[str, PodKey]) -> LedgerShare:
    pod = PodKey(share.namespace, share.name, share.uid)
    if not share.name:
        pod = names.get(share.uid, pod)
    return LedgerShare(pod=pod, units=share.units, reserved=share.reserved)
