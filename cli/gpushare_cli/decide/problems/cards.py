"""Cards that take no new pods."""

from collections.abc import Iterator

from gpushare_cli.decide.objects.node_state import CardState, NodeState
from gpushare_cli.decide.problems.facts import StatusFacts
from gpushare_cli.decide.problems.problem import Severity, StatusProblem


def card_problems(facts: StatusFacts) -> Iterator[StatusProblem]:
    for node in facts.nodes or ():
        for card in node.cards:
            yield from _card(node, card)


def _card(node: NodeState, card: CardState) -> Iterator[StatusProblem]:
    where = f"{node.name} {card.index}"
    if card.is_sick:
        yield _problem(
            node,
            card,
            severity=Severity.WARNING,
            reason="CardSick",
            sentence="the card is sick: no new pod gets it",
            detail=card.health_reason,
            command=f"kubectl gpushare drain-card {where} --dry-run",
        )
    if card.cordoned:
        yield _problem(
            node,
            card,
            severity=Severity.NOTE,
            reason="CardCordoned",
            sentence="the card is cordoned: no new pod gets it",
            command=f"kubectl gpushare uncordon {where}",
        )
    if card.is_locked_idly:
        yield _problem(
            node,
            card,
            severity=Severity.WARNING,
            reason="CardLocked",
            sentence=f"the card serves {card.lock} alone, though nobody holds anything of it",
            command=f"kubectl gpushare audit --node {node.name}",
        )


def _problem(
    node: NodeState,
    card: CardState,
    *,
    severity: Severity,
    reason: str,
    sentence: str,
    command: str,
    detail: str = "",
) -> StatusProblem:
    return StatusProblem(
        severity=severity,
        reason=reason,
        kind="card",
        names=(f"{node.name}/{card.index}",),
        policy=node.policy,
        sentence=sentence,
        detail=detail,
        command=command,
    )
