"""What is wrong with a node and its cards, and what to do about it. Pure.

What a plugin writes into a condition says already what to do: it is shown as it is.
"""

from collections.abc import Iterable, Sequence

from gpushare_cli.decide.inspection.shared_card import CardHolder, HolderState, SharedCard
from gpushare_cli.decide.inspection.shared_node import NodeProblem
from gpushare_cli.decide.objects.share_node import ObservedShareNode
from gpushare_core.api.conditions import FALSE, TRUE
from gpushare_core.api.names import (
    CARDS_CORDONED,
    CARDS_HEALTHY,
    CLEAR_FAULT_ANNOTATION,
    ISOLATION_IN_FORCE,
    ISOLATION_READY,
    LEDGER_IN_SYNC,
    MEMORY_EXCEEDED,
    REGISTERED,
    SHARE_TOO_SMALL,
    UNIT_CHANGE_BLOCKED,
    UNIT_TOO_FINE,
)

GOOD_STATUS = {
    REGISTERED: TRUE,
    CARDS_HEALTHY: TRUE,
    LEDGER_IN_SYNC: TRUE,
    UNIT_TOO_FINE: FALSE,
    UNIT_CHANGE_BLOCKED: FALSE,
    ISOLATION_READY: TRUE,
    ISOLATION_IN_FORCE: TRUE,
}
"""Condition of a GPUShareNode -> its status where all is well. The others are shown card by card."""
UNKNOWN_CARDS = "UnknownCards"
"""Reason of ``CardsCordoned`` where the annotation names a card that there is not."""
_WRONG_REASONS = ((CARDS_CORDONED, UNKNOWN_CARDS), (ISOLATION_IN_FORCE, SHARE_TOO_SMALL))
"""Whatever the condition's status."""

REPAIRED = "Once it is repaired it returns by itself after a quiet time, or at once by:"


def node_problems(
    node: ObservedShareNode, cards: Sequence[SharedCard], closed_reason: str, *, is_unschedulable: bool
) -> Iterable[NodeProblem]:
    conditions = [*_conditions(node, cards)]
    yield from conditions
    has_usable_card = any(card.healthy and not card.cordoned for card in cards) or not cards
    is_said = not {REGISTERED, ISOLATION_READY}.isdisjoint(problem.reason for problem in conditions)
    if closed_reason and has_usable_card and not is_said:
        yield NodeProblem(
            reason="TakesNoPods",
            message=f"it takes no new pods: {closed_reason}",
            command=f"kubectl describe gpusharenode {node.name}",
        )
    if is_unschedulable:
        yield NodeProblem(
            reason="Unschedulable",
            message="kubectl cordon has closed the node to all new pods.",
            advice="When it may have pods again:",
            command=f"kubectl uncordon {node.name}",
        )
    for card in cards:
        yield from _card_problems(node, card)


def _conditions(node: ObservedShareNode, cards: Sequence[SharedCard]) -> Iterable[NodeProblem]:
    says_sick = any(not card.healthy for card in cards)
    for condition in node.status.conditions or ():
        good = GOOD_STATUS.get(condition.type, condition.status)
        is_said_by_card = condition.type == CARDS_HEALTHY and condition.status == FALSE and says_sick
        is_wrong = condition.status != good and not is_said_by_card
        if is_wrong or (condition.type, condition.reason) in _WRONG_REASONS:
            yield NodeProblem(
                reason=condition.type,
                message=f"{condition.type} is {condition.status} ({condition.reason}): {condition.message}",
                command=f"kubectl describe gpusharenode {node.name}",
            )


def _card_problems(node: ObservedShareNode, card: SharedCard) -> Iterable[NodeProblem]:
    if not card.healthy:
        yield _sick(node, card)
    if card.cordoned:
        why = f" ({card.cordon_reason})" if card.cordon_reason else ""
        yield NodeProblem(
            reason="CardCordoned",
            message=f"card {card.index} is cordoned{why}: its pods stay, no new pod gets it.",
            advice="When it may have pods again:",
            command=f"kubectl gpushare uncordon {node.name} {card.index}",
            card=card.index,
        )
    if card.held_units > card.units:
        yield NodeProblem(
            reason="OverCommitted",
            message=f"card {card.index}: {card.held_units} units are held, and it has {card.units}.",
            advice="Delete some of its pods. Where the records differ:",
            command=f"kubectl gpushare audit --node {node.name}",
            card=card.index,
        )
    if card.unnamed_units:
        yield NodeProblem(
            reason="UnnamedHolder",
            message=f"card {card.index}: {card.unnamed_units} units are held, and nobody says by which pod.",
            command=f"kubectl gpushare audit --node {node.name}",
            card=card.index,
        )
    for holder in card.holders:
        yield from _orphan(node, card, holder)
        for container in holder.containers:
            if container.exceeds:
                evicted = f" Its pod is evicted from {at} on." if (at := container.evicted_from) else ""
                yield NodeProblem(
                    reason=MEMORY_EXCEEDED,
                    message=f"card {card.index}: container {container.container} of pod {holder.pod} uses"
                    f" more memory than it asked for; other pods on the card may get none.{evicted}",
                    advice="Ask for more in the pod, or limit what its program uses.",
                    command=f"kubectl gpushare top pods -n {holder.namespace}",
                    card=card.index,
                )


def _sick(node: ObservedShareNode, card: SharedCard) -> NodeProblem:
    fault = card.fault
    since = f" since {fault.since}" if fault and fault.since else ""
    text = fault.message or fault.reason if fault else card.health_reason or "its plugin does not say why"
    clear = ""
    if fault and fault.last_seen:
        words = f"{CLEAR_FAULT_ANNOTATION}={card.uuid}@{fault.last_seen}"
        clear = f"kubectl annotate gpusharenode {node.name} --overwrite {words}"
    return NodeProblem(
        reason=(fault.reason if fault else "") or "CardUnhealthy",
        message=f"card {card.index} is sick{since}: {text}",
        advice="Once it is repaired, it returns by itself after a quiet time, or at once by:"
        if clear
        else "",
        command=clear or f"kubectl describe gpusharenode {node.name}",
        card=card.index,
    )


def _orphan(node: ObservedShareNode, card: SharedCard, holder: CardHolder) -> Iterable[NodeProblem]:
    if holder.state is HolderState.ORPHANED:
        yield NodeProblem(
            reason="Orphaned",
            message=f"card {card.index}: pod {holder.pod} is gone from the API, and its kubelet still keeps"
            f" {holder.units} units.",
            advice="They are free again once its containers have ended on the node. If that takes more than a"
            " minute, look at the node.",
            command=f"kubectl gpushare audit --node {node.name}",
            card=card.index,
        )
