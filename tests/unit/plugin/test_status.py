"""The status says who has what on every card, and what is wrong."""

from datetime import UTC, datetime

import pytest
from tests.samples.plugin import GIB, card, container, layout, pod, share_node

from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import GPUShareNode, NodeStatus
from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.decide.conditions import Ledger, Registration, conditions
from gpushare_plugin.decide.holdings import PodUnits
from gpushare_plugin.decide.layout import Layout
from gpushare_plugin.decide.offering import Offering
from gpushare_plugin.decide.status import node_status, quantity_text

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LATER = datetime(2026, 11, 21, 13, 0, tzinfo=UTC)
GOOD = Offering(layout=layout())
REGISTERED = Registration(registered=True)
IN_SYNC = Ledger(readable=True)

Told = dict[str, tuple[str, str, str]]


def told(
    offering: Offering = GOOD,
    *,
    registration: Registration = REGISTERED,
    ledger: Ledger = IN_SYNC,
    node: GPUShareNode | None = None,
) -> Told:
    found = conditions(node or share_node(), offering, registration, ledger, now=NOW)
    return {each.type: (each.status, each.reason, each.message) for each in found}


def test_all_is_well() -> None:
    assert {kind: each[:2] for kind, each in told().items()} == {
        "Registered": ("True", "Registered"),
        "CardsHealthy": ("True", "AllHealthy"),
        "LedgerInSync": ("True", "InSync"),
        "UnitTooFine": ("False", "Fits"),
        "UnitChangeBlocked": ("False", "NotBlocked"),
    }


SLICES = Problem("UnsupportedMode", "mode Slices is not served yet: use mode Memory")
TOO_FINE = Offering(layout=layout(), finest=MemoryUnit.parse("3M"), wanted_units=640_000)


@pytest.mark.parametrize(
    ("kind", "found", "expected"),
    [
        pytest.param(
            "Registered",
            told(registration=Registration(registered=False, message="kubelet.sock does not exist")),
            ("False", "KubeletUnreachable", "kubelet.sock does not exist"),
            id="the kubelet is away",
        ),
        pytest.param(
            "Registered",
            told(Offering(problem=SLICES)),
            ("False", "UnsupportedMode", "mode Slices is not served yet: use mode Memory"),
            id="mode",
        ),
        pytest.param(
            "Registered",
            told(Offering(layout=layout(), problem=SLICES, blocked_by=2)),
            (
                "False",
                "UnsupportedMode",
                (
                    "mode Slices is not served yet: use mode Memory;"
                    " what was served before goes on while pods hold it"
                ),
            ),
            id="mode while units are held",
        ),
        pytest.param(
            "Registered",
            told(Offering(layout=layout(unit="64Gi"))),
            (
                "False",
                "UnitTooCoarse",
                (
                    "a unit of 64Gi does not fit the largest card, which has 17179869184 bytes less what is"
                    " reserved: set a smaller memoryUnit or reservedMemory"
                ),
            ),
            id="a unit larger than every card",
        ),
        pytest.param(
            "Registered",
            told(Offering(layout=Layout(MemoryUnit.parse("1Gi"), (), 0))),
            ("False", "NoCards", "no card was found on this node"),
            id="no cards",
        ),
        pytest.param(
            "Registered",
            told(Offering(finest=MemoryUnit.parse("3M"), wanted_units=9)),
            ("False", "UnitTooFine", "nothing is offered: set memoryUnit to 3M or more"),
            id="too fine from the start",
        ),
        pytest.param(
            "Registered", told(Offering()), ("False", "NotShared", "this node is not shared"), id="off"
        ),
        pytest.param(
            "CardsHealthy",
            told(Offering(layout=layout(card(0), card(1, healthy=False)))),
            ("False", "CardsUnhealthy", "card 1 (GPU-1): Xid 79"),
            id="an ill card",
        ),
        pytest.param(
            "CardsHealthy",
            told(Offering(layout=layout(card(0), card(1, memory=GIB), unit="2Gi"))),
            ("True", "UnitTooCoarse", "cards 1 are smaller than a unit of 2Gi and serve nothing"),
            id="a unit larger than one card",
        ),
        pytest.param(
            "CardsHealthy", told(Offering()), ("Unknown", "NothingOffered", ""), id="nothing offered"
        ),
        pytest.param(
            "LedgerInSync",
            told(ledger=Ledger(readable=True, wrong=("default/a",))),
            ("False", "RepairPending", "annotations that differ from the kubelet's books: default/a"),
            id="a repair is pending",
        ),
        pytest.param(
            "LedgerInSync",
            told(ledger=Ledger(readable=False)),
            ("Unknown", "PodResourcesUnreachable", "the kubelet's books cannot be read"),
            id="no books",
        ),
        pytest.param(
            "UnitTooFine",
            told(TOO_FINE, node=share_node("1M")),
            (
                "True",
                "TooManyUnits",
                (
                    "memoryUnit 1M makes 640000 units, more than the kubelet takes in one message:"
                    " the finest that works here is 3M; 1Gi stays in force"
                ),
            ),
            id="too fine",
        ),
        pytest.param(
            "UnitChangeBlocked",
            told(Offering(layout=layout(), blocked_by=1), node=share_node("512Mi")),
            ("True", "PodsHoldUnits", "memoryUnit 512Mi is applied when 1 pod holds no more units of 1Gi"),
            id="one pod in the way of a unit",
        ),
        pytest.param(
            "UnitChangeBlocked",
            told(
                Offering(layout=layout(), blocked_by=2, problem=SLICES),
                node=share_node(mode="Slices", slicesPerCard=2),
            ),
            ("True", "PodsHoldUnits", "mode Slices is applied when 2 pods hold no more units of 1Gi"),
            id="two pods in the way of a mode",
        ),
    ],
)
def test_a_condition_says_what_is_wrong_and_what_to_do(
    kind: str, found: Told, expected: tuple[str, str, str]
) -> None:
    assert found[kind] == expected


A = pod("a", container("x", 4), container("y", 2))
HELD = [(A, PodUnits({"x": {"GPU-0": 4}, "y": {"GPU-0": 2}}, {"GPU-0": 6}))]


def status_of(node: GPUShareNode, *, now: datetime = NOW) -> NodeStatus:
    found = conditions(node, GOOD, REGISTERED, IN_SYNC, now=now)
    return node_status(node, layout(reserved=GIB), HELD, found)


def test_every_card_shows_who_has_what() -> None:
    status = status_of(share_node())
    assert status.summary == "6/15 0/15"
    assert (status.memory_unit, status.observed_generation) == ("1Gi", 1)
    assert (status.units.total, status.units.allocated) == (30, 6)
    assert (status.memory.total, status.memory.allocated) == ("30Gi", "6Gi")
    first = status.cards[0]
    assert (first.uuid, first.memory, first.units, first.allocated_units) == ("GPU-0", "16Gi", 15, 6)
    assert [(each.name, each.container, each.units) for each in first.pods] == [("a", "x", 4), ("a", "y", 2)]


def test_nothing_changes_when_only_time_passes() -> None:
    written = share_node(status=status_of(share_node()).to_json())
    assert status_of(written, now=LATER) == written.status


def test_a_condition_that_turns_gets_the_time_at_which_it_did() -> None:
    written = share_node(status=status_of(share_node()).to_json())
    lost = conditions(written, GOOD, Registration(registered=False), IN_SYNC, now=LATER)
    times = {
        each.type: each.last_transition_time for each in node_status(written, layout(), HELD, lost).conditions
    }
    assert times["Registered"] == "2026-11-21T13:00:00Z"
    assert times["CardsHealthy"] == "2026-11-21T12:00:00Z"


def test_a_node_that_offers_nothing_shows_no_cards() -> None:
    status = node_status(share_node(), None, [], [])
    assert (status.cards, status.summary, status.memory_unit, status.units.total) == ([], "", "", 0)


@pytest.mark.parametrize(
    ("amount", "like", "expected"),
    [
        pytest.param(16 * GIB, "1Gi", "16Gi", id="binary"),
        pytest.param(32 * 10**9, "1Gi", "32G", id="decimal memory, binary unit"),
        pytest.param(0, "1Gi", "0", id="nothing"),
        pytest.param(1500 * 10**6, "1M", "1500M", id="in the unit's family"),
        pytest.param(17, "1Gi", "17", id="bytes"),
    ],
)
def test_quantities_are_exact_and_short(amount: int, like: str, expected: str) -> None:
    assert quantity_text(amount, like) == expected
