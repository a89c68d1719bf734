"""The plugin audits its own node by the rules of all; what is on its way is no alarm."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.samples.plugin import (
    NODE,
    annotation,
    assigned,
    by_name,
    card,
    container,
    layout,
    node_assignments,
    pod,
    share_node,
    stored,
)

from gpushare_plugin.decide.held.allocations import every_allocation
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.decide.offer.offering import Offering
from gpushare_plugin.decide.report.self_audit import AuditInput, NodeAudit
from gpushare_plugin.decide.report.status import node_status
from gpushare_plugin.devices.card import PhysicalCard

NOW = datetime(2026, 11, 21, 10, 0, tzinfo=UTC)
FOUR = [0, 1, 2, 3]
ADMITTED = replace(pod("a", container(units=4), annotation=annotation()), running=True)
OTHER_CARD = replace(ADMITTED, annotation=pod("a", annotation=annotation({"main": {"GPU-1": 4}})).annotation)


def held(**pods: dict[str, list[int]]) -> AssignedDevices:
    """By PodResources and checkpoint."""
    listed = assigned(**pods)
    known = {name: replace(pod, uid=f"uid-{name.name}") for name, pod in listed.pods.items()}
    return AssignedDevices(pods=known, stored=stored(layout(), **pods))


def given(
    pods: Sequence[Pod] = (ADMITTED,),
    devices: AssignedDevices | None = None,
    *,
    counted: AssignedDevices | None = None,
    cards: Sequence[PhysicalCard] = (card(0), card(1)),
) -> AuditInput:
    """``counted``: what the status was made of, where that is something else."""
    devices = held(a={"main": FOUR}) if devices is None else devices
    known = by_name(*pods)
    books = node_assignments(devices if counted is None else counted)
    allocations = every_allocation(books, known)
    status = node_status(share_node(), Offering(layout=layout()), allocations, now=NOW)
    named = {name: replace(pod, annotations=_annotations(pod)) for name, pod in known.items()}
    return AuditInput(node=NODE, status=status, pods=named, assigned=devices, cards=cards)


def _annotations(one: Pod) -> dict[str, str]:
    return {"gpushare.io/allocation": one.annotation} if one.annotation else {}


def told_another_card() -> AssignedDevices:
    devices = held(a={"main": FOUR})
    entry = devices.stored["uid-a"]["main"]
    (right,) = entry.cards
    wrong = replace(entry, cards=(replace(right, uuid="GPU-1"),))
    return replace(devices, stored={"uid-a": {"main": wrong}})


def kinds(seen: AuditInput, *, after: float = 5.0) -> list[str]:
    """What counts so many seconds after it was seen first."""
    audit = NodeAudit()
    audit.look(seen, now=100.0)
    return [f"{found.kind} {found.pod}".strip() for found in audit.look(seen, now=100.0 + after)]


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(given((), held()), id="nobody"),
        pytest.param(given(), id="admitted"),
        pytest.param(given((), held(a={"main": FOUR})), id="deleted by force, still held"),
        pytest.param(
            given(devices=replace(held(a={"main": FOUR}), stored={}, checkpoint_problem="no such file")),
            id="without a checkpoint",
        ),
    ],
)
def test_books_that_agree(seen: AuditInput) -> None:
    assert kinds(seen) == []


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(given((OTHER_CARD,)), ["SharesDiffer default/a"], id="another card is annotated"),
        pytest.param(
            given((replace(ADMITTED, annotation=None),)),
            ["SharesDiffer default/a"],
            id="nothing is annotated",
        ),
        pytest.param(
            given(devices=held(a={"main": FOUR}), counted=held()),
            ["SharesDiffer default/a", "Uncounted"],
            id="the status does not count it",
        ),
        pytest.param(
            given(devices=told_another_card()),
            ["EnvironmentDiffers default/a", "SharesDiffer default/a", "Uncounted"],
            id="its environment names another card",
        ),
        pytest.param(
            given(cards=(card(0, memory=2 * 2**30), card(1))),
            ["CapacityDiffers", "OverCapacity", "OverCounted"],
            id="the card is smaller than what is held",
        ),
    ],
)
def test_books_that_differ(seen: AuditInput, expected: list[str]) -> None:
    assert sorted(set(kinds(seen))) == expected


def test_books_on_their_way_are_no_alarm() -> None:
    assert kinds(given((OTHER_CARD,)), after=4.9) == []


def test_too_much_given_out_counts_at_once() -> None:
    audit = NodeAudit()
    found, *others = audit.look(given(cards=(card(0, memory=2 * 2**30), card(1))), now=0.0)
    assert {other.kind for other in (found, *others)} == {"OverCapacity"}
    assert "card 0 (GPU-0)" in found.sentence
    assert "delete" in found.sentence


def test_what_did_not_change_is_not_audited_again(monkeypatch: pytest.MonkeyPatch) -> None:
    audit, seen = NodeAudit(), given((OTHER_CARD,))
    audit.look(seen, now=0.0)
    monkeypatch.setattr("gpushare_plugin.decide.report.self_audit.node_differences", None)
    assert [found.pod for found in audit.look(replace(seen), now=5.0)] == ["default/a"]


def test_what_was_not_seen_for_a_while_has_not_lasted() -> None:
    audit = NodeAudit()
    audit.look(given((OTHER_CARD,)), now=0.0)
    audit.nothing_known()
    assert audit.look(given((OTHER_CARD,)), now=6.0) == []
    assert audit.lasting.seconds_until_due(now=6.0) == 5.0


def test_the_next_audit_is_not_due_before_it_is_made() -> None:
    """Sums and differences of clocks are rounded: the plugin made rounds without end, and audited nothing."""
    begun, now = 127.77539769099924, 128.77539769099923
    audit = NodeAudit()
    audit.look(given((), held()), now=begun)
    audit.look(given((OTHER_CARD,)), now=begun + 0.5)
    assert audit.seconds_until_due(now=begun + 0.5) == 0.5
    audit.look(given((OTHER_CARD,)), now=now)
    assert audit.seconds_until_due(now=now) == 5.0


def test_while_pods_are_admitted_the_audit_waits_but_not_for_ever() -> None:
    """It takes milliseconds, in which the kubelet waits for an answer."""
    audit, smaller = NodeAudit(), given(cards=(card(0, memory=2 * 2**30), card(1)))
    audit.look(given(), now=100.0)
    assert audit.look(smaller, now=104.9, admitting=True) == []
    assert audit.seconds_until_due(now=104.9) == 0
    assert audit.look(smaller, now=105.0, admitting=True)


def test_once_pods_are_admitted_the_audit_is_made_up_for() -> None:
    audit, smaller = NodeAudit(), given(cards=(card(0, memory=2 * 2**30), card(1)))
    audit.look(given(), now=100.0)
    assert audit.look(smaller, now=102.0, admitting=True) == []
    assert audit.look(smaller, now=102.1)
