"""Conditions of GPUShareNodes that say that something is wrong: a table of their reasons."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from gpushare_cli.decide.objects.node_state import NodeState
from gpushare_cli.decide.objects.share_node import ObservedCondition
from gpushare_cli.decide.problems.facts import StatusFacts
from gpushare_cli.decide.problems.problem import NAME, NAMES, Severity, StatusProblem
from gpushare_core.api.conditions import FALSE, TRUE, UNKNOWN
from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.names import (
    CARDS_CORDONED,
    CARDS_HEALTHY,
    ISOLATION_IN_FORCE,
    ISOLATION_READY,
    LEDGER_IN_SYNC,
    MEMORY_EXCEEDED,
    REGISTERED,
    SHARE_TOO_SMALL,
    UNIT_CHANGE_BLOCKED,
    UNIT_TOO_FINE,
)

_PODS = "kubectl -n {namespace} get pods -o wide --field-selector spec.nodeName=" + NAME
_INSPECT = f"kubectl gpushare inspect {NAMES}"
_DESCRIBE = f"kubectl describe gpusharenode {NAME}"
_DESCRIBE_NODE = f"kubectl describe node {NAME}"
_KUBELET = f"kubectl get --raw /api/v1/nodes/{NAME}/proxy/healthz"
_EDIT = "kubectl edit gpusharepolicy {policy}"
_AUDIT = f"kubectl gpushare audit --node {NAME}"
_VERSION = "kubectl gpushare version"
_CRDS = "kubectl apply -k manifests/"


class NodeRow(NamedTuple):
    severity: Severity
    sentence: str
    command: str


_ERROR, _WARNING = Severity.ERROR, Severity.WARNING

NOT_REGISTERED: Mapping[str, NodeRow] = {
    "NodeNotReady": NodeRow(_ERROR, "the node is not Ready: no new pod gets its cards", _DESCRIBE_NODE),
    "PluginSilent": NodeRow(_ERROR, "its plugin does not report: no new pod gets its cards", _PODS),
    "KubeletUnreachable": NodeRow(_ERROR, "its kubelet does not take the plugin's cards", _KUBELET),
    "PodResourcesUnreachable": NodeRow(_ERROR, "its kubelet does not say who holds what", _KUBELET),
    "LayoutUnknown": NodeRow(_ERROR, "it is not known on which cards units in use lie", _INSPECT),
    "LayoutNotRecorded": NodeRow(_ERROR, "the API server keeps no card layout: its CRDs are old", _CRDS),
    "SpecUnreadable": NodeRow(_ERROR, "its plugin is too old for the policy", _VERSION),
    "NoCards": NodeRow(_ERROR, "no card that can be shared was found", _DESCRIBE),
    "UnitTooFine": NodeRow(_ERROR, "the policy's unit is too fine for it: it offers nothing", _EDIT),
    "UnitTooCoarse": NodeRow(_ERROR, "the policy's unit is larger than its cards", _EDIT),
    "Starting": NodeRow(_WARNING, "its plugin is starting", _PODS),
    "Stopping": NodeRow(_WARNING, "its plugin has stopped, and no other runs there yet", _PODS),
    "NotShared": NodeRow(_WARNING, "it is not shared, though it has a GPUShareNode", _DESCRIBE),
}
"""Reason of ``Registered``, False or Unknown."""
_OTHER_REASON = NodeRow(_ERROR, "it offers no cards to new pods", _DESCRIBE)

NOT_IN_SYNC: Mapping[str, NodeRow] = {
    "OverCommitted": NodeRow(_ERROR, "more of a card is held than it has: delete some of its pods", _INSPECT),
    "KubeletForgot": NodeRow(_WARNING, "its kubelet lost the units of pods that run", _INSPECT),
    "ForeignUnits": NodeRow(_WARNING, "units of the replaced plugin count as more than they are", _INSPECT),
    "RepairPending": NodeRow(_WARNING, "annotations of pods differ from the kubelet's records", _AUDIT),
    "BooksDiffer": NodeRow(_WARNING, "records of who holds what differ", _AUDIT),
}
"""Reason of ``LedgerInSync`` False. ``LayoutUnknown`` is said by ``Registered``."""
_OTHER_DIFFERENCE = NodeRow(_WARNING, "records of who holds what differ", _AUDIT)


def node_problems(facts: StatusFacts) -> Iterator[StatusProblem]:
    for node in facts.nodes or ():
        if not node.metadata.deletion_timestamp:
            for row, reason, detail in _rows(node):
                yield _problem(facts, node, row, reason, detail)


def _problem(facts: StatusFacts, node: NodeState, row: NodeRow, reason: str, detail: str) -> StatusProblem:
    return StatusProblem(
        severity=row.severity,
        reason=reason,
        kind="node",
        names=(node.name,),
        policy=node.policy,
        sentence=row.sentence,
        detail=_with_indices(detail, node),
        command=row.command.replace("{namespace}", facts.namespace).replace("{policy}", node.policy),
    )


def _with_indices(detail: str, node: NodeState) -> str:
    """Plugins name cards by UUIDs, people by the index."""
    for card in node.cards:
        detail = detail.replace(f"card {card.uuid}", f"card {card.index}") if card.uuid else detail
    return detail


_Row = tuple[NodeRow, str, str]
"""The row, the reason, and what the condition says."""


def _rows(node: NodeState) -> Iterator[_Row]:
    registered = node.condition(REGISTERED)
    if registered is None or not node.is_answered:
        row = NodeRow(_WARNING, "its plugin has not answered what the policy asks for now", _PODS)
        yield row, "NotAnswered", ""
    if registered is not None and registered.status != TRUE:
        row = NOT_REGISTERED.get(registered.reason, _OTHER_REASON)
        yield row, registered.reason or "NotRegistered", registered.message
    elif registered is not None and registered.message:
        row = NodeRow(Severity.NOTE, "pods may see cards that they do not hold", _DESCRIBE)
        yield row, "CardsUnprotected", registered.message
    is_registered = registered is not None and registered.status == TRUE
    is_asked = node.spec.isolation.memory != MemoryIsolation.NONE
    if is_registered and is_asked and node.is_answered and not node.status.isolation:
        row = NodeRow(_WARNING, "its plugin is too old for the isolation that its policy asks for", _VERSION)
        yield row, "IsolationUnknown", "new containers come without it"
    for type_, read in _READERS.items():
        condition = node.condition(type_)
        if condition is not None and (is_registered or condition.status != UNKNOWN):
            yield from read(node, condition)


def _health(node: NodeState, condition: ObservedCondition) -> Iterator[_Row]:
    """Cards that the node lists are problems of their own; this is about the others."""
    is_listed = any(card.is_sick for card in node.cards)
    if condition.status == FALSE and not is_listed:
        yield (
            NodeRow(_WARNING, "cards are sick, or cannot be asked", _DESCRIBE),
            condition.reason,
            condition.message,
        )
    elif condition.status == UNKNOWN:
        yield (
            NodeRow(_WARNING, "it is not known whether its cards are healthy", _DESCRIBE),
            condition.reason,
            condition.message,
        )
    elif condition.status == TRUE and condition.message:
        yield (
            NodeRow(_WARNING, "some of its cards serve nothing", _DESCRIBE),
            condition.reason,
            condition.message,
        )


def _cordon(_node: NodeState, condition: ObservedCondition) -> Iterator[_Row]:
    if condition.reason == "UnknownCards":
        row = NodeRow(_WARNING, "its cordon names something that is no card of it", _DESCRIBE)
        yield row, condition.reason, condition.message


def _ledger(_node: NodeState, condition: ObservedCondition) -> Iterator[_Row]:
    if condition.status == FALSE and condition.reason not in NOT_REGISTERED:
        yield NOT_IN_SYNC.get(condition.reason, _OTHER_DIFFERENCE), condition.reason, condition.message
    elif condition.status == UNKNOWN:
        row = NodeRow(_WARNING, "it is not known whether the records of who holds what agree", _AUDIT)
        yield row, condition.reason, condition.message
    elif condition.status == TRUE and condition.message:
        row = NodeRow(_WARNING, "pods are known by name and annotation alone", _DESCRIBE)
        yield row, "CheckpointUnread", condition.message


def _too_fine(_node: NodeState, condition: ObservedCondition) -> Iterator[_Row]:
    if condition.status == TRUE:
        row = NodeRow(_WARNING, "the policy's unit is finer than its kubelet takes", _EDIT)
        yield row, condition.reason, condition.message


def _unit_change(_node: NodeState, condition: ObservedCondition) -> Iterator[_Row]:
    if condition.status == TRUE:
        row = NodeRow(_WARNING, "what the policy asks for now waits for pods to end", _INSPECT)
        yield row, condition.reason, condition.message


def _excess(_node: NodeState, condition: ObservedCondition) -> Iterator[_Row]:
    if condition.status == TRUE:
        row = NodeRow(_WARNING, "containers use more memory than they asked for", "kubectl gpushare top pods")
        yield row, condition.reason, condition.message


def _isolation_ready(_node: NodeState, condition: ObservedCondition) -> Iterator[_Row]:
    if condition.status == FALSE:
        sentence = "it cannot have the isolation that its policy asks for: no new pod gets its cards"
        yield NodeRow(_ERROR, sentence, _DESCRIBE), condition.reason, condition.message
    elif condition.status == UNKNOWN:
        sentence = "it is not known whether it can have the isolation that its policy asks for"
        yield NodeRow(_WARNING, sentence, _DESCRIBE), condition.reason, condition.message


def _isolation_in_force(_node: NodeState, condition: ObservedCondition) -> Iterator[_Row]:
    if condition.status == FALSE:
        sentence = "containers are not held to their share, though they were given what does that"
        yield NodeRow(_WARNING, sentence, _INSPECT), condition.reason, condition.message
    elif condition.status == UNKNOWN:
        sentence = "it is not known whether containers are held to their share"
        yield NodeRow(_WARNING, sentence, _DESCRIBE), condition.reason, condition.message
    elif condition.reason == SHARE_TOO_SMALL:
        sentence = "containers have too small a share for any program to use the card"
        yield NodeRow(Severity.NOTE, sentence, _INSPECT), condition.reason, condition.message
    elif condition.status == TRUE and condition.message:
        sentence = "containers are held to less than their share of some cards"
        yield NodeRow(Severity.NOTE, sentence, _INSPECT), "SmallestShare", condition.message


_READERS = {
    CARDS_HEALTHY: _health,
    CARDS_CORDONED: _cordon,
    LEDGER_IN_SYNC: _ledger,
    UNIT_TOO_FINE: _too_fine,
    UNIT_CHANGE_BLOCKED: _unit_change,
    MEMORY_EXCEEDED: _excess,
    ISOLATION_READY: _isolation_ready,
    ISOLATION_IN_FORCE: _isolation_in_force,
}
"""Type of a condition -> what of it is a problem. Unknown counts where the plugin is registered: otherwise
``Registered`` says why nothing is known."""
