"""Units that are held for a pod: out of reach for those that are no more important."""

from collections.abc import Collection
from typing import Any

import pytest
from msgspec.structs import replace
from tests.fakes.ledger_listener import HeardChanges
from tests.samples.extender import asked, holder, pod_request, reference, share_node
from tests.samples.preemption import ledger_with, mixed_node

from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.scheduling.fit.filter import filter_nodes
from gpushare_core.scheduling.ledger.hold import Hold
from gpushare_core.scheduling.ledger.ledger import DoesNotFitError, Ledger
from gpushare_core.scheduling.objects.holder import PodUpdate


def hold(
    ledger: Ledger, name: str = "p", *, units: int = 16, priority: int = 10, gone: Collection[str] = ()
) -> Hold:
    return ledger.hold(
        reference(name), node="n1", request=asked(units), priority=priority, gone=gone, until=100.0
    )


def held(*, free: bool = True) -> Ledger:
    """n1 with two cards of 16: card 0 is held for p, and used by a unless ``free``; card 1 is full."""
    holders: dict[str, Any] = {} if free else {"a": {"c0": 16}}
    ledger = ledger_with(16, 16, full={"c1": 16}, **holders)
    hold(ledger, gone="a")
    return ledger


def passes(ledger: Ledger, units: int, *, uid: str = "uid-q", priority: int = 0) -> bool:
    request = pod_request(units)
    request = PodRequest(request.resources, priority=priority)
    return bool(filter_nodes(ledger, ["n1"], uid=uid, request=request).passing)


@pytest.mark.parametrize(
    ("uid", "priority", "fits"),
    [
        pytest.param("uid-p", 10, True, id="the pod itself"),
        pytest.param("uid-q", 9, False, id="a lesser one"),
        pytest.param("uid-q", 10, False, id="an equal one"),
        pytest.param("uid-q", 11, True, id="a more important one"),
    ],
)
def test_who_may_have_what_is_held(uid: str, priority: int, *, fits: bool) -> None:
    assert passes(held(), 1, uid=uid, priority=priority) is fits


def test_what_is_in_use_still_is_not_there_for_the_pod_either() -> None:
    assert not passes(held(free=False), 16, uid="uid-p", priority=10)


def test_what_is_held_counts_while_its_card_is_not_named() -> None:
    """As it does where the hold comes after the GPUShareNode: the sums do not depend on what came first."""
    ledger = held()
    present = ledger.share_node("n1")
    assert present
    ledger.set_share_node(replace(present, cards=present.cards[1:]))
    sums = ledger.node("n1")
    assert sums
    assert sums.lock_of("n1-0") is ResourceClass.MEMORY
    ledger.end_hold("uid-p")
    assert sums.lock_of("n1-0") is None


def test_bind_keeps_to_it_as_well() -> None:
    ledger = held()
    with pytest.raises(DoesNotFitError):
        ledger.reserve(reference("q"), node="n1", request=asked(1), priority=10)
    assert ledger.reserve(reference("p"), node="n1", request=asked(16), priority=10).shares == {"n1-0": 16}


def test_it_ends_when_the_pod_is_bound_and_its_units_count_once() -> None:
    ledger = held()
    ledger.reserve(reference("p"), node="n1", request=asked(16), priority=10)
    assert ledger.holds.get("uid-p") is None
    ledger.release("uid-p")
    assert ledger.greatest["gpushare.io/memory"]["n1"] == 16


def test_a_more_important_pod_that_takes_the_card_ends_it() -> None:
    ledger = held()
    ledger.reserve(reference("q"), node="n1", request=asked(4), priority=11)
    assert [*ledger.holds] == []
    assert ledger.greatest["gpushare.io/memory"]["n1"] == 12


def test_a_more_important_pod_elsewhere_leaves_it() -> None:
    ledger = ledger_with(16, 16)
    hold(ledger)
    ledger.reserve(reference("q"), node="n1", request=asked(16), priority=1)
    assert [entry.uid for entry in ledger.holds.values()] == ["uid-p"]


def test_everybody_hears_of_its_end() -> None:
    changes = HeardChanges()
    ledger, heard = Ledger(changes), changes.rooms
    ledger.set_share_node(share_node("n1", 16))
    hold(ledger)
    heard.clear()
    ledger.end_hold("uid-p")
    assert heard == [("gpushare.io/memory", 16)]


def test_the_pod_hears_when_its_card_is_free() -> None:
    changes = HeardChanges()
    ledger, heard = Ledger(changes), changes.fits_now
    ledger.set_share_node(share_node("n1", 16))
    ledger.reserve(reference("a"), node="n1", request=asked(16))
    hold(ledger, gone={"uid-a"})
    assert heard == []
    ledger.release("uid-a")
    assert heard == ["uid-p", "uid-a"]


def test_a_pod_hears_when_it_may_go_elsewhere_than_to_where_it_had_units_reserved() -> None:
    """Meanwhile it was refused on all other nodes; the room on its own may be no more than before."""
    changes = HeardChanges()
    ledger, heard = Ledger(changes), changes.fits_now
    ledger.set_share_node(share_node("n1", 16, 16))
    for name in ("a", "b"):
        ledger.reserve(reference(name), node="n1", request=asked(4))
    ledger.release("uid-a")
    assert heard == ["uid-a"]
    ledger.release_later("uid-b", now=0.0)
    assert heard == ["uid-a"], "its units count still"
    ledger.free_unreleased(now=1000.0)
    assert heard == ["uid-a", "uid-b"]


def test_it_outlives_the_loss_of_the_node_and_can_be_ended_after() -> None:
    ledger = held()
    ledger.drop_share_node("n1")
    assert not passes(ledger, 1, uid="uid-p", priority=10)
    ledger.end_hold("uid-p")
    assert [*ledger.holds] == []


def test_another_for_the_same_pod_takes_its_place() -> None:
    ledger = ledger_with(16, 8)
    hold(ledger, units=16)
    hold(ledger, units=4)
    assert [entry.holder.shares for entry in ledger.holds.values()] == [{"n1-1": 4}]
    assert passes(ledger, 16)


def test_one_for_a_more_important_pod_takes_the_place_of_a_lesser_ones() -> None:
    ledger = ledger_with(16)
    hold(ledger)
    hold(ledger, "q", priority=11)
    assert [entry.uid for entry in ledger.holds.values()] == ["uid-q"]
    with pytest.raises(DoesNotFitError):
        hold(ledger, "r", priority=11)


def test_nothing_is_held_that_will_not_be_free() -> None:
    ledger = ledger_with(16, a={"c0": 10})
    with pytest.raises(DoesNotFitError):
        hold(ledger, units=10)
    assert [*ledger.holds] == []


SLICE = ResourceClass.SLICE


class TestMixed:
    """A card that is being freed of memory is held for a slice."""

    def ledger(self) -> Ledger:
        ledger = Ledger()
        ledger.set_share_node(mixed_node(16))
        ledger.set_pod(PodUpdate("a", holder("a", c0=10)))
        ledger.hold(reference("p"), node="n1", request=asked(1, SLICE), priority=10, gone={"a"}, until=100.0)
        return ledger

    def test_while_memory_is_in_use_it_serves_nobody(self) -> None:
        ledger = self.ledger()
        assert not ledger.fits("n1", asked(1))
        assert not ledger.fits("n1", asked(1, SLICE), gone={"uid-p"})

    def test_then_it_is_locked_for_the_slice(self) -> None:
        ledger = self.ledger()
        ledger.drop_pod("a")
        assert not ledger.fits("n1", asked(1))
        assert ledger.fits("n1", asked(1, SLICE))
        assert ledger.fits("n1", asked(1, SLICE), gone={"uid-p"})


class TestUnitsOfItsOwn:
    """What may pass a hold passes everything of its pod: a pod has either units or a hold."""

    def test_bound_by_somebody_else_the_pod_has_its_units_and_no_hold(self) -> None:
        ledger = ledger_with(16)
        hold(ledger)
        ledger.set_pod(PodUpdate("uid-p", holder("uid-p", c0=16)))
        with pytest.raises(DoesNotFitError):
            ledger.reserve(reference("q"), node="n1", request=asked(16), priority=11)
        assert [*ledger.holds] == []

    def test_while_it_is_being_bound_nothing_is_held_for_it(self) -> None:
        ledger = ledger_with(16, 16)
        ledger.reserve(reference("p"), node="n1", request=asked(16), priority=10)
        with pytest.raises(DoesNotFitError, match="units of its own"):
            hold(ledger)
        ledger.reserve(reference("q"), node="n1", request=asked(16), priority=11)
        assert ledger.greatest["gpushare.io/memory"]["n1"] == 0
