"""The ledger of a node in mode Mixed: a card serves one class at a time, and all when it is empty."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.fakes.ledger_listener import HeardChanges
from tests.samples.extender import asked, pod_update, reference, reporting, share_node

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.modes.table import NODE_MODES
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest
from gpushare_core.scheduling.fit.candidates import prioritize_nodes
from gpushare_core.scheduling.fit.filter import filter_nodes
from gpushare_core.scheduling.ledger.ledger import DoesNotFitError, Ledger
from gpushare_core.scheduling.ledger.listener import LedgerListener
from gpushare_core.scheduling.objects.holder import read_pod
from gpushare_core.scheduling.objects.share_node import ShareNode
from gpushare_extender.bind.binding import allocation_of
from gpushare_extender.decide.waiting.unschedulable_pods import UnschedulablePods

MEMORY, SLICE, CARD = ResourceClass
UNIT = "1Gi, 1/2 card, 1 card"
UNITS = {MEMORY: "1Gi", SLICE: "1/2 card", CARD: "1 card"}


def mixed(*units: int, name: str = "n1") -> ShareNode:
    """Cards with two slices each, four of 86 units of memory if none is given."""
    node = share_node(name, *(units or (86, 86, 86, 86)), mode=NODE_MODES["Mixed"], unit=UNIT)
    cards = (structs.replace(card, offers={MEMORY: card.units, SLICE: 2, CARD: 1}) for card in node.cards)
    return structs.replace(node, cards=tuple(cards))


def ledger_of(node: ShareNode | None = None) -> Ledger:
    ledger = Ledger()
    ledger.set_share_node(node or mixed())
    return ledger


def offered(ledger: Ledger) -> tuple[int, int, int]:
    """Cards, slices and units of memory, as the kubelet shall show them."""
    node = ledger.node("n1")
    assert node
    cards, slices, memory = (node.cards(entry) for entry in (CARD, SLICE, MEMORY))
    shown = [
        sum(card.units for card in each if node.lock_of(card.uuid) in (None, resource))
        for resource, each in ((CARD, cards), (SLICE, slices), (MEMORY, memory))
    ]
    return shown[0], shown[1], shown[2]


def reserve(ledger: Ledger, name: str, *requests: ResourceRequest) -> list[str]:
    """Returns the indices of the pod's cards."""
    holder = ledger.reserve(reference(name), node="n1", request=PodRequest(requests))
    return [card.removeprefix("n1-") for card in holder.shares]


def test_the_published_table() -> None:
    ledger = ledger_of()
    seen = [offered(ledger)]
    for name, request in (("s", asked(2, SLICE)), ("m", asked(10)), ("c", asked(1, CARD))):
        reserve(ledger, name, request)
        seen.append(offered(ledger))
    for name in ("c", "m", "s"):
        ledger.drop_pod(f"uid-{name}")
        seen.append(offered(ledger))
    down = [(4, 8, 344), (2, 8, 172), (1, 6, 172), (1, 4, 86)]
    assert seen == [*down, *reversed(down[:-1])]


def test_a_class_fills_its_own_cards_before_it_takes_a_free_one() -> None:
    ledger = ledger_of(mixed(40, 86, 86))
    reserve(ledger, "big", asked(60))
    assert reserve(ledger, "small", asked(20)) == ["1"]
    reserve(ledger, "half", asked(1, SLICE))
    assert reserve(ledger, "other", asked(1, SLICE)) == ["0"]
    assert reserve(ledger, "two", asked(1, CARD)) == ["2"]


def test_of_two_classes_that_race_for_the_last_free_card_one_is_refused_with_a_reason() -> None:
    ledger = ledger_of(mixed(86))
    reserve(ledger, "first", asked(10))
    with pytest.raises(DoesNotFitError, match="needs a free card, has 0"):
        reserve(ledger, "second", asked(1, CARD))
    with pytest.raises(DoesNotFitError, match="needs a card with a free slice, has 0"):
        reserve(ledger, "third", asked(1, SLICE))


def test_what_waits_for_a_card_hears_when_one_is_free_again() -> None:
    heard = HeardChanges()
    ledger, room = Ledger(heard), heard.rooms
    ledger.set_share_node(mixed(86))
    reserve(ledger, "first", asked(10))
    room.clear()
    ledger.drop_pod("uid-first")
    assert (GPUSHARE.card_resource, 1) in room
    assert (GPUSHARE.slice_resource, 1) in room


def two_classes() -> PodRequest:
    return PodRequest((asked(10, container="main"), asked(2, SLICE, container="side")))


def test_a_pod_of_two_classes_has_cards_of_each_and_one_annotation() -> None:
    ledger, node = ledger_of(mixed(86, 86, 86)), mixed(86, 86, 86)
    holder = ledger.reserve(reference("a"), node="n1", request=two_classes())
    written = allocation_of(holder, two_classes(), node, now=datetime(2026, 11, 21, tzinfo=UTC))
    assert written.containers == {"main": {"n1-0": 10}, "side": {"n1-1": 1, "n1-2": 1}}
    assert (written.unit, written.resource) == ("1Gi", MEMORY)
    assert written.other_units == {"n1-1": "1/2 card", "n1-2": "1/2 card"}
    assert read_back(written) == offered(ledger) == (0, 4, 86)


def read_back(written: Allocation) -> tuple[int, int, int]:
    """What another extender sees that reads the annotation."""
    metadata = {"name": "a", "namespace": "default", "uid": written.uid}
    text = {"metadata": {**metadata, "annotations": {"gpushare.io/allocation": encode_allocation(written)}}}
    ledger = ledger_of(mixed(86, 86, 86))
    ledger.set_pod(read_pod(msgspec.json.encode(text)))
    return offered(ledger)


def test_two_classes_that_fit_alone_and_not_together_are_refused() -> None:
    ledger = ledger_of(mixed(86))
    request = PodRequest((asked(10), asked(1, SLICE, container="side")))
    result = filter_nodes(ledger, ["n1"], uid="p", request=request)
    assert result.failed == {"n1": "insufficient GPU cards for all resources of the pod together"}
    with pytest.raises(DoesNotFitError, match="together"):
        ledger.reserve(reference("p"), node="n1", request=request)


def held_beside_two_cards() -> Ledger:
    """Two cards are free, and one is held for a pod of a higher priority."""
    ledger = ledger_of(mixed(86, 86, 86))
    hold = PodRequest((asked(1, CARD),))
    ledger.hold(reference("high"), node="n1", request=hold, priority=5, until=60)
    return ledger


PAIR = PodRequest((asked(10), asked(1, SLICE, container="side")))


def test_a_pause_counts_whatever_was_known_to_fit_before() -> None:
    ledger = held_beside_two_cards()
    assert filter_nodes(ledger, ["n1"], uid="p", request=PAIR).passing == ["n1"]
    ledger.pause("n1", "its kubelet rejects pods")
    assert filter_nodes(ledger, ["n1"], uid="p", request=PAIR).passing == []


def test_a_pause_that_is_over_counts_no_more() -> None:
    ledger = held_beside_two_cards()
    ledger.pause("n1", "its kubelet rejects pods")
    assert filter_nodes(ledger, ["n1"], uid="p", request=PAIR).passing == []
    ledger.resume("n1")
    assert filter_nodes(ledger, ["n1"], uid="p", request=PAIR).passing == ["n1"]


def test_a_pod_of_two_classes_is_woken_when_another_card_than_the_largest_has_room() -> None:
    """A free card offers as much of each class alone as it did before."""
    refused = UnschedulablePods()

    class Waiting(LedgerListener):
        def has_room(self, name: str, amount: int) -> None:
            refused.has_room(name, amount)

        def card_has_room(self) -> None:
            refused.card_has_room()

    ledger = Ledger(Waiting())
    ledger.set_share_node(mixed(86, 86))
    ledger.set_pod(pod_update("a", c0=80))
    ledger.set_pod(pod_update("b", c0=1))
    assert filter_nodes(ledger, ["n1"], uid="p", request=PAIR).passing == []
    refused.refused("p", PAIR)
    ledger.drop_pod("a")
    assert refused.take_waiting()
    assert filter_nodes(ledger, ["n1"], uid="p", request=PAIR).passing == ["n1"]


def test_memory_takes_the_card_that_is_large_enough_and_leaves_others_the_rest() -> None:
    ledger = ledger_of(mixed(16, 86))
    request = PodRequest((asked(1, CARD, container="side"), asked(60)))
    holder = ledger.reserve(reference("p"), node="n1", request=request)
    assert holder.shares == {"n1-1": 60, "n1-0": 1}


@pytest.mark.parametrize("lock", [SLICE, CARD])
def test_a_card_that_the_plugin_reports_as_locked_is_nobody_elses(lock: ResourceClass) -> None:
    node = reporting(mixed(86), a=1)
    (card,) = node.cards
    ledger = ledger_of(structs.replace(node, cards=(structs.replace(card, lock=lock),)))
    with pytest.raises(DoesNotFitError):
        reserve(ledger, "m", asked(1))


def test_a_card_that_is_used_as_two_classes_by_mistake_serves_nobody_else() -> None:
    ledger = ledger_of(mixed(86))
    ledger.set_pod(pod_update("a", c0=10))
    ledger.set_pod(pod_update("b", unit="1/2 card", c0=1))
    for request in (asked(1), asked(1, SLICE), asked(1, CARD)):
        with pytest.raises(DoesNotFitError):
            reserve(ledger, "p", request)
    ledger.drop_pod("b")
    reserve(ledger, "p", asked(1))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["bind", "bind", "leave"]), st.sampled_from([*ResourceClass]), st.integers(1, 6)
    ),
    max_size=60,
)


@given(STEPS)
def test_no_card_serves_two_classes_and_all_is_given_back(
    steps: list[tuple[str, ResourceClass, int]],
) -> None:
    ledger, running = ledger_of(mixed(8, 8, 4)), dict[str, tuple[ResourceClass, dict[str, int]]]()
    for moment, (step, resource, amount) in enumerate(steps):
        if step == "leave" and running:
            uid = sorted(running)[amount % len(running)]
            del running[uid]
            ledger.drop_pod(uid)
        elif step == "bind":
            fits = ledger.greatest[GPUSHARE.resource_name(resource)]["n1"] >= amount
            try:
                held = ledger.reserve(reference(f"p{moment}"), node="n1", request=asked(amount, resource))
            except DoesNotFitError:
                assert not fits
            else:
                assert fits
                running[held.uid] = (resource, held.shares)
        for card, size in (("n1-0", 8), ("n1-1", 8), ("n1-2", 4)):
            here = [(each, cards[card]) for each, cards in running.values() if card in cards]
            assert len({each for each, _ in here}) <= 1
            capacity = {MEMORY: size, SLICE: 2, CARD: 1}
            assert all(sum(units for _, units in here) <= capacity[each] for each, _ in here)
    for uid in running:
        ledger.drop_pod(uid)
    assert offered(ledger) == (3, 6, 20)


@pytest.mark.parametrize(
    ("request_", "best"),
    [
        pytest.param(asked(4, MEMORY), "memory", id="memory where memory is"),
        pytest.param(asked(1, SLICE), "slices", id="a slice where slices are"),
        pytest.param(asked(2, SLICE), "slices", id="two slices, one of them of a card that is free"),
        pytest.param(asked(1, CARD), "cards", id="a card where cards are, and nobody shares"),
        pytest.param(asked(4, CARD), "empty", id="a node for itself"),
    ],
)
def test_each_class_goes_to_nodes_that_hold_it(request_: ResourceRequest, best: str) -> None:
    ledger = Ledger()
    held = {"memory": asked(4, MEMORY), "slices": asked(1, SLICE), "cards": asked(1, CARD), "empty": None}
    for name, held_there in held.items():
        ledger.set_share_node(mixed(name=name))
        if held_there:
            request = PodRequest((held_there,))
            ledger.reserve(reference(name), node=name, request=request)
    scores = prioritize_nodes(ledger, [*held], request_)
    assert [name for name, score in scores.items() if score == max(scores.values())] == [best]


def test_a_card_goes_where_nobody_shares_rather_than_where_fewest_are_free() -> None:
    ledger = Ledger()
    ledger.set_share_node(mixed(name="shared"))
    ledger.set_share_node(mixed(name="empty"))
    ledger.reserve(reference("a"), node="shared", request=PodRequest((asked(2, SLICE),)))
    assert prioritize_nodes(ledger, ["shared", "empty"], asked(1, CARD)) == {"shared": 2, "empty": 10}
    assert prioritize_nodes(ledger, ["shared", "empty"], asked(1, MEMORY)) == {"shared": 10, "empty": 2}
