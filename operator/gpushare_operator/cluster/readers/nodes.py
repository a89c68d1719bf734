"""How a Node is read."""

from sys import intern

from gpushare_core.api.names import FIELD_MANAGER, STARTUP_TAINT
from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.labels import DIALECT_LABELS
from gpushare_operator.cluster.managed_fields import managers
from gpushare_operator.cluster.object_parts import is_condition_true, is_deleting
from gpushare_operator.cluster.objects import NodeObject, NodeStartupTaint

COUNT_RESOURCES = frozenset(dialect.count_resource for dialect in DIALECTS.values()) - {""}


CLOSED_CARDS_ANNOTATIONS = frozenset(dialect.closed_cards_annotation for dialect in DIALECTS.values()) - {""}


EXTENDED_RESOURCES = COUNT_RESOURCES | RESOURCES.keys()
"""Of any dialect; plugins of others may offer some of them, too."""


def read_node(body: Json) -> NodeObject:
    metadata, status = body["metadata"], body.get("status", {})
    amounts, annotations = _extended_resources(status), metadata.get("annotations") or {}
    return NodeObject(
        name=metadata["name"],
        uid=metadata["uid"],
        # Thousands of nodes have the same labels.
        labels={intern(key): intern(value) for key, value in (metadata.get("labels") or {}).items()},
        ready=is_condition_true(status, "Ready"),
        deleting=is_deleting(body),
        own_labels=_own_labels(metadata),
        closed_cards={key: text for key, text in annotations.items() if key in CLOSED_CARDS_ANNOTATIONS},
        offered=tuple(sorted(amounts.keys() - _others_counts(metadata, status))),
        zeros=frozenset(name for name, pair in amounts.items() if set(pair) <= {"", "0"}),
        counts={name: pair for name, pair in amounts.items() if name in COUNT_RESOURCES},
        startup_taint=_startup_taint(body),
    )


def _startup_taint(body: Json) -> NodeStartupTaint | None:
    taints = body.get("spec", {}).get("taints") or ()
    others = tuple(taint for taint in taints if taint.get("key") != STARTUP_TAINT)
    if len(others) == len(taints):
        return None
    return NodeStartupTaint(body["metadata"].get("resourceVersion", ""), others)


def _extended_resources(status: Json) -> dict[str, tuple[str, str]]:
    """Returns name -> capacity and allocatable, empty where only the other one is there."""
    capacity, allocatable = status.get("capacity") or {}, status.get("allocatable") or {}
    names = EXTENDED_RESOURCES & (capacity.keys() | allocatable.keys())
    return {name: (capacity.get(name, ""), allocatable.get(name, "")) for name in names}


def _others_counts(metadata: Json, status: Json) -> frozenset[str]:
    """Returns numbers of cards that neither the operator nor the kubelet has written.

    The kubelet's manager is the one that writes ``nodeInfo``: its name differs between distributions.
    """
    present = COUNT_RESOURCES & (status.get("capacity") or {}).keys()
    if not present:
        return frozenset()
    fields, body = metadata.get("managedFields") or (), {"status": status}
    ours = {FIELD_MANAGER, *managers(fields, body, ("status", "nodeInfo"))}
    owners = {name: managers(fields, body, ("status", "capacity", name)) for name in present}
    return frozenset(name for name in present if owners[name] and not owners[name] & ours)


def _own_labels(metadata: Json) -> frozenset[str]:
    """Returns labels of dialects that the operator set last."""
    present = DIALECT_LABELS & (metadata.get("labels") or {}).keys()
    fields, body = metadata.get("managedFields") or (), {"metadata": metadata}
    return frozenset(
        key for key in present if managers(fields, body, ("metadata", "labels", key)) == {FIELD_MANAGER}
    )
