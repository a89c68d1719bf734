"""Who finds by a few comparisons that books agree never contradicts the auditor's rules."""

import contextlib
from itertools import starmap

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.samples.extender import GI, asked, cordoning, holder, pod_update, reference, reporting, share_node

from gpushare_core.audit.auditor import node_differences
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.modes.table import MODES, NODE_MODES
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.scheduling.ledger.booking import Booking, without_pod
from gpushare_core.scheduling.ledger.ledger import DoesNotFitError, Ledger
from gpushare_core.scheduling.objects.holder import CardUnits, PodUpdate
from gpushare_core.scheduling.objects.share_node import ReportedHolder, ShareNode, ShareNodeCard
from gpushare_extender.decide.audit.fast_path import surely_agree
from gpushare_extender.decide.audit.records import node_records

ADMITTED = reporting(share_node(), 0, a=4)
UIDS = ("a", "b", "c")
UUIDS = ("n1-0", "n1-1", "n1-2")
UNITS = ("1Gi", "512Mi", "1/2 card", "1 card", "1Gi, 1/2 card, 1 card", "no unit", "")

amounts = st.sampled_from([1, 2, 4, 4, 16, 17, 0])
seldom = st.sampled_from([False] * 7 + [True])
reported = st.builds(
    ReportedHolder,
    uid=st.sampled_from([*UIDS, *UIDS, ""]),
    namespace=st.just("default"),
    name=st.sampled_from(UIDS),
    units=amounts,
    least=amounts,
    orphaned=seldom,
)


@st.composite
def cards(draw: st.DrawFn) -> ShareNodeCard:
    """Whose sum is mostly that of its holders."""
    holders = draw(st.lists(reported, max_size=2))
    total = sum(holder.units for holder in holders)
    return ShareNodeCard(
        draw(st.sampled_from(UUIDS)),
        draw(st.integers(0, 2)),
        draw(st.sampled_from([16, 16, 16, 17, 4, 0])),
        healthy=draw(st.booleans()),
        allocated=draw(st.sampled_from([total, total, total, 4])),
        holders=tuple(holders),
        lock=draw(st.sampled_from([None] * 9 + [*ResourceClass])),
        cordoned=draw(st.booleans()),
        offers=draw(st.sampled_from([{}] * 7 + [{ResourceClass.MEMORY: 16}])),
        memory=draw(st.sampled_from([16, 16, 17, 17, 4, 0])) * GI,
    )


def as_told(present: ShareNode) -> list[PodUpdate]:
    """The pods that ``present`` reports, annotated with what it says that they have."""
    units: dict[str, dict[str, int]] = {}
    for card in present.cards:
        for share in card.holders:
            units.setdefault(share.uid, {})[card.uuid] = share.units
    return [
        PodUpdate(
            uid, replace(holder(uid, unit=present.unit), cards=tuple(starmap(CardUnits, shares.items())))
        )
        for uid, shares in units.items()
    ]


@st.composite
def ledgers(draw: st.DrawFn) -> Ledger:
    """Of one node; mostly with what it reports, then with something that it does not."""
    unit = draw(st.sampled_from([*UNITS[:2] * 3, *UNITS]))
    mode = draw(st.sampled_from([*NODE_MODES.values()]))
    listed = tuple(draw(st.lists(cards(), max_size=3, unique_by=lambda card: card.uuid)))
    present = replace(share_node(unit=unit, mode=mode), cards=listed)
    present = replace(present, dialect=draw(st.sampled_from([*DIALECTS.values()])))
    ledger = Ledger()
    ledger.set_share_node(present)
    for update in () if draw(seldom) else as_told(present):
        ledger.set_pod(update)
    for uid in draw(st.lists(st.sampled_from(UIDS), max_size=2)) if draw(seldom) else ():
        given_units = {f"c{draw(st.integers(0, 3))}": draw(amounts)}
        node = draw(st.sampled_from(["n1", "n1", "n2"]))
        ledger.set_pod(pod_update(uid, node=node, unit=draw(st.sampled_from(UNITS)), **given_units))
    if draw(seldom):
        with contextlib.suppress(DoesNotFitError):
            ledger.reserve(reference("new"), node="n1", request=asked(1))
    if draw(seldom):
        ledger.pod_deleted(draw(st.sampled_from(UIDS)), now=0.0)
    return ledger


def corrupt(ledger: Ledger, *, what: str) -> Ledger:
    """A defect of the sums themselves."""
    sums = ledger.node("n1")
    assert sums
    if what == "uses":
        sums._uses.clear()
    elif what == "booked":
        sums._booked["n1-0"] = Booking("a", 5, without_pod(sums._booked.get("n1-0"), "a"))
    elif what == "holders":
        sums.holders.clear()
    elif what == "elsewhere":
        sums._booked["n9-9"] = Booking("a", 1)
    return ledger


def agreeing() -> Ledger:
    ledger = Ledger()
    ledger.set_share_node(ADMITTED)
    ledger.set_pod(pod_update("a", c0=4))
    return ledger


@given(ledger=ledgers(), what=st.sampled_from([*[""] * 8, "uses", "booked", "holders", "elsewhere"]))
@example(ledger=agreeing(), what="")
def test_the_rules_find_nothing_where_books_surely_agree(ledger: Ledger, what: str) -> None:
    if surely_agree(corrupt(ledger, what=what), "n1"):
        books = node_records(ledger, "n1")
        assert books is not None
        assert node_differences(books) == []


@pytest.mark.parametrize(
    "present",
    [
        pytest.param(ADMITTED, id="memory"),
        pytest.param(cordoning(ADMITTED, 0), id="cordoned"),
        pytest.param(reporting(share_node(unit="512Mi"), 0, a=4), id="of another size"),
        pytest.param(
            reporting(share_node("n1", 2, 2, unit="1/2 card", mode=MODES["Slices"]), 0, a=1), id="slices"
        ),
        pytest.param(
            reporting(share_node("n1", 1, unit="1 card", mode=MODES["Exclusive"]), 0, a=1), id="cards"
        ),
        pytest.param(share_node(), id="nobody"),
    ],
)
def test_where_all_say_the_same_nothing_else_need_be_asked(present: ShareNode) -> None:
    ledger = Ledger()
    ledger.set_share_node(present)
    for update in as_told(present):
        ledger.set_pod(update)
    assert surely_agree(ledger, "n1")


@pytest.mark.parametrize("what", ["uses", "booked", "holders", "elsewhere"])
def test_a_defect_of_the_sums_is_left_to_the_rules(what: str) -> None:
    assert not surely_agree(corrupt(agreeing(), what=what), "n1")


def test_a_pod_on_its_way_is_left_to_the_rules() -> None:
    ledger = agreeing()
    ledger.reserve(reference("b"), node="n1", request=asked(2))
    assert not surely_agree(ledger, "n1")


def test_a_pod_that_counts_on_two_nodes_is_left_to_the_rules() -> None:
    ledger = agreeing()
    ledger.set_pod(pod_update("a", node="n2", c0=4))
    assert not surely_agree(ledger, "n1")


def test_of_a_node_that_nobody_knows_nothing_is_said() -> None:
    assert not surely_agree(Ledger(), "n1")
