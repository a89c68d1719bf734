"""Containers without the isolation that is asked for, and pods that were evicted for their excess."""

from collections.abc import Iterator
from itertools import groupby

from gpushare_cli.decide.objects.node_state import CardState, NodeState
from gpushare_cli.decide.problems.facts import StatusFacts
from gpushare_cli.decide.problems.problem import NAMES, Severity, StatusProblem
from gpushare_cli.wording import age_since, counted
from gpushare_core.api.enums import Mode
from gpushare_core.placement.quantity import read_amount


def isolation_problems(facts: StatusFacts) -> Iterator[StatusProblem]:
    yield from _without_isolation(facts)
    yield from _evicted(facts)


def _without_isolation(facts: StatusFacts) -> Iterator[StatusProblem]:
    """Nothing is broken there: containers have what their pods were given when they came."""
    found = [(node, count) for node in facts.nodes or () if (count := _count_without(node))]
    found.sort(key=lambda entry: entry[0].policy)
    for policy, nodes in groupby(found, key=lambda entry: entry[0].policy):
        counts = {node.name: count for node, count in nodes}
        total = sum(counts.values())
        runs, its = ("runs", "its pod is") if total == 1 else ("run", "their pods are")
        yield StatusProblem(
            severity=Severity.NOTE,
            reason="ContainersWithoutIsolation",
            kind="node",
            names=tuple(counts),
            policy=policy,
            sentence=f"{counted(total, 'older container')} {runs} without the isolation that the policy asks"
            f" for, until {its} created again",
            command=f"kubectl gpushare inspect {NAMES}",
        )


def _count_without(node: NodeState) -> int:
    if not node.gives_isolation:
        return 0
    limited = (card for card in node.cards if _has_limit(node, card))
    shares = (share for card in limited for share in card.pods or ())
    return len({(share.uid, share.container) for share in shares if not share.isolation})


def _has_limit(node: NodeState, card: CardState) -> bool:
    """Whoever holds a whole card may have all that is not reserved of it."""
    is_whole = Mode.EXCLUSIVE in (node.spec.mode, card.lock)
    return not is_whole or bool(read_amount(node.spec.reserved_memory))


def _evicted(facts: StatusFacts) -> Iterator[StatusProblem]:
    """Events are kept for an hour, as a rule."""
    events = sorted(facts.evictions, key=lambda event: event.last_seen, reverse=True)
    if events:
        latest = events[0]
        yield StatusProblem(
            severity=Severity.WARNING,
            reason=latest.reason,
            kind="pod",
            names=tuple(dict.fromkeys(event.regarding.path for event in events)),
            sentence="evicted lately for having more memory of a card than was asked for",
            detail=f"{age_since(latest.last_seen, facts.now)} ago: {latest.note}",
            command=f"kubectl get events -A --field-selector reason={latest.reason}",
        )
