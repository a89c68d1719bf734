"""Books out of the JSON of objects and answers, as whoever gathers them has it."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from gpushare_core.api.names import COMPONENT_LABEL, FIELD_MANAGER, MANAGED_BY_LABEL, MIRROR_ANNOTATION
from gpushare_core.audit.records import (
    NO_HOST,
    ClusterRecords,
    HostRecords,
    LedgerCard,
    LedgerRecord,
    LedgerShare,
    NodeRecords,
    PodKey,
    PodRecord,
    SeenCards,
    ShareNodeRecord,
)
from gpushare_core.audit.status_card import status_card
from gpushare_core.dialects.annotation_room import size_of
from gpushare_core.dialects.dialect import CARD_VARIABLE, OWN_VARIABLES, Dialect
from gpushare_core.dialects.table import ANNOTATION_KEYS, DIALECTS, RESOURCES
from gpushare_core.dialects.visible_cards import is_runtime_variable
from gpushare_core.placement.requests import ResourceClass, read_request
from gpushare_core.placement.units import NodeUnit, parse_node_unit
from gpushare_core.text.json_object import UNREADABLE_JSON, Json
from gpushare_core.text.whole_number import is_number

_VISIBLE = tuple(
    dict.fromkeys(name for each in DIALECTS.values() for name in each.card_variables if name != CARD_VARIABLE)
)
"""Variables beside our own that name cards by UUID, in some dialect."""


PLUGIN_COMPONENT = "plugin"
"""Value of ``COMPONENT_LABEL`` on the pods of our device plugin."""
PLUGIN_ACCOUNT = "gpushare-plugin"
"""Their service account."""


class _Share(msgspec.Struct):
    namespace: str
    name: str
    units: int
    uid: str = ""
    container: str = ""
    orphaned: bool = False
    reserved: bool = False


class _Card(msgspec.Struct, rename="camel"):
    uuid: str
    memory: str
    units: int
    index: int = 0
    allocated_units: int = 0
    first_unit: int | None = None
    health: str = "Healthy"
    cordoned: bool = False
    lock: str = ""
    offers: dict[str, int] | None = None
    pods: list[_Share] | None = None


class _Sums(msgspec.Struct):
    total: int = 0
    allocated: int = 0


class _Status(msgspec.Struct, rename="camel"):
    memory_unit: str = ""
    dialect: str = ""
    units: _Sums | None = None
    cards: list[_Card] | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    name: str
    deletion_timestamp: str | None = None


class _ShareNode(msgspec.Struct):
    metadata: _Metadata
    status: _Status | None = None


def read_share_node(item: Json) -> ShareNodeRecord:
    """Returns what a GPUShareNode (as JSON) says; one that cannot be read says why."""
    try:
        node = msgspec.convert(item, _ShareNode)
        return _share_node(node, node.status or _Status())
    except UNREADABLE_JSON as error:
        return ShareNodeRecord(name=_name_of(item), problem=str(error))


def _name_of(item: object) -> str:
    """Returns the name of an object that is of another shape than it should be; empty where it has none."""
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _share_node(node: _ShareNode, status: _Status) -> ShareNodeRecord:
    return ShareNodeRecord(
        name=node.metadata.name,
        unit=parse_node_unit(status.memory_unit) if status.memory_unit else None,
        dialect=status.dialect,
        cards=tuple(map(status_card, status.cards or ())),
        units_total=status.units.total if status.units else None,
        units_allocated=status.units.allocated if status.units else None,
        deleting=node.metadata.deletion_timestamp is not None,
    )


def read_pod(item: Json) -> PodRecord:
    """Returns what the API server has of a pod; ``item``: the whole object as JSON, or its metadata alone."""
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
    """Returns, of every container that has some, what its author sets of the variables that are ours, or a
    container runtime's."""
    found: dict[str, dict[str, str | None]] = {}
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for each in container.get("env") or ():
            if each["name"] in OWN_VARIABLES or is_runtime_variable(each["name"]):
                value = None if "valueFrom" in each else each.get("value", "")
                found.setdefault(container["name"], {})[each["name"]] = value
    return found


def read_environment(variables: Mapping[str, str]) -> SeenCards | None:
    """Returns the cards that a container with these variables sees; None where it is told of none."""
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
    """Returns the books of every node that has a GPUShareNode, of objects as JSON.

    ``hosts``: by node; a node that is not among them was not read there.
    """
    bound = None if pods is None else _by_node(pods)
    nodes = [read_share_node(item) for item in share_nodes]
    return ClusterRecords(
        {
            node.name: _node_records(
                node,
                pods=None if bound is None else bound.get(node.name, {}),
                ledger=None if ledger is None else ledger.get(node.name, LedgerRecord()),
                host=(hosts or {}).get(node.name, NO_HOST),
            )
            for node in nodes
        }
    )


def _node_records(
    share_node: ShareNodeRecord,
    *,
    pods: Mapping[str, PodRecord] | None,
    ledger: LedgerRecord | None,
    host: HostRecords,
) -> NodeRecords:
    return NodeRecords(
        node=share_node.name,
        share_node=share_node,
        pods=pods,
        ledger=ledger,
        resources=host.resources,
        checkpoint=host.checkpoint,
        environments=host.environments,
        hardware=host.hardware,
    )


def _by_node(pods: Iterable[Json]) -> dict[str, dict[str, PodRecord]]:
    found: dict[str, dict[str, PodRecord]] = {}
    for item in pods:
        if (item.get("spec") or {}).get("nodeName"):
            pod = read_pod(item)
            found.setdefault(pod.node, {})[pod.key.uid] = pod
    return found


class _LedgerCard(msgspec.Struct):
    uuid: str
    units: int
    allocated: int
    lock: str = ""
    pods: list[_Share] | None = None


class _LedgerNode(msgspec.Struct):
    name: str
    unit: str = ""
    cards: list[_LedgerCard] | None = None


class _Ledger(msgspec.Struct):
    nodes: list[_LedgerNode] | None = None


def read_ledger(answer: Json) -> dict[str, LedgerRecord]:
    """Returns node -> the extender's book, of what its path ``/gpushare/inspect`` answers.

    Raises:
        ValueError: no extender of ours answers that.
    """
    ledger = msgspec.convert(answer, _Ledger)
    return {node.name: _ledger_node(node) for node in ledger.nodes or ()}


def _ledger_node(node: _LedgerNode) -> LedgerRecord:
    return LedgerRecord(unit=_node_unit(node.unit), cards=tuple(_ledger_cards(node.cards or ())))


def _node_unit(text: str) -> NodeUnit | None:
    return parse_node_unit(text) if text else None


def _ledger_cards(cards: Iterable[_LedgerCard]) -> Iterator[LedgerCard]:
    for card in cards:
        yield LedgerCard(
            uuid=card.uuid,
            units=card.units,
            allocated=card.allocated,
            lock=_class(card.lock),
            shares=tuple(
                LedgerShare(
                    pod=PodKey(share.namespace, share.name, share.uid),
                    units=share.units,
                    reserved=share.reserved,
                )
                for share in card.pods or ()
            ),
        )


def _class(name: str) -> ResourceClass | None:
    """Returns the class that the extender calls ``name``; nothing where a card serves none, or two."""
    return ResourceClass(name) if name else None
