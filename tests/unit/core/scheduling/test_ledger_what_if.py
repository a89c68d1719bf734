"""The sums of a node as they would be without some pods: the same as if those had never been there."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.samples.extender import asked, holder, pod_update, reference, reporting, share_node
from tests.samples.preemption import mixed_node

from gpushare_core.placement.requests import ResourceClass
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.share_node import ShareNode

MEMORY, SLICE, CARD = ResourceClass
SIZES = {MEMORY: ("1Gi", 5), SLICE: ("1/2 card", 1), CARD: ("1 card", 1)}
"""Unit, and what one pod has of a card."""

Pods = list[tuple[int, ResourceClass, bool]]
"""Card, class, and whether the kubelet has given the units out."""

PODS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(ResourceClass), st.booleans()), max_size=6)


def node_with(pods: Pods, left_out: set[int], *, base: ShareNode) -> NodeLedger:
    """The sums with those of ``pods`` that are not left out."""
    ledger, node = Ledger(), base
    for place, (card, resource, is_given) in enumerate(pods):
        unit, units = SIZES[resource]
        if place in left_out:
            continue
        ledger.set_pod(PodUpdate(f"p{place}", holder(f"p{place}", unit=unit, **{f"c{card}": units})))  # type: ignore[arg-type]
        if is_given:
            node = given_out(node, card, f"p{place}", units, resource)
    ledger.set_share_node(node)
    found = ledger.node("n1")
    assert found
    return found


def given_out(node: ShareNode, card: int, uid: str, units: int, resource: ResourceClass) -> ShareNode:
    before = {holder.uid: holder.units for holder in node.cards[card].holders}
    after = reporting(node, card, **before, **{uid: units})
    cards = list(after.cards)
    cards[card] = replace(cards[card], lock=resource if len(node.resources) > 1 else None)
    return replace(after, cards=tuple(cards))


def one_class_a_card(pods: Pods) -> Pods:
    """What no race and no defect has disturbed."""
    first: dict[int, ResourceClass] = {}
    return [(card, first.setdefault(card, resource), given) for card, resource, given in pods]


@given(PODS, st.sets(st.integers(0, 5)), st.sampled_from(ResourceClass), st.integers(1, 16))
@settings(max_examples=300, deadline=None)
def test_in_mode_mixed(pods: Pods, gone: set[int], resource: ResourceClass, amount: int) -> None:
    pods, base = one_class_a_card(pods), mixed_node(16, 16, 16)
    uids = {f"p{place}" for place in gone}
    before, after = node_with(pods, set(), base=base), node_with(pods, gone, base=base)
    assert before.choose(asked(amount, resource), gone=uids) == after.choose(asked(amount, resource))


@given(PODS, st.sets(st.integers(0, 5)), st.integers(1, 16))
@settings(max_examples=200, deadline=None)
def test_in_mode_memory(pods: Pods, gone: set[int], amount: int) -> None:
    pods = [(card, MEMORY, given) for card, _, given in pods]
    base, uids = share_node("n1", 16, 16, 16), {f"p{place}" for place in gone}
    before, after = node_with(pods, set(), base=base), node_with(pods, gone, base=base)
    assert before.choose(asked(amount), gone=uids) == after.choose(asked(amount))


def test_units_of_nobody_stay_in_use() -> None:
    ledger = Ledger()
    ledger.set_share_node(reporting(share_node("n1", 16), 0, allocated=12, a=8))
    ledger.set_pod(pod_update("a", c0=8))
    node = ledger.node("n1")
    assert node
    assert node.choose(asked(12), gone={"a"}) == {"n1-0": 12}
    assert node.choose(asked(13), gone={"a"}) == {}


@pytest.mark.parametrize("fits", [True, False])
def test_a_card_alone(*, fits: bool) -> None:
    ledger = Ledger()
    ledger.set_share_node(share_node("n1", 16, 16))
    ledger.reserve(reference("a"), node="n1", request=asked(10))
    node = ledger.node("n1")
    assert node
    assert node.card_fits("n1-0", asked(10), gone={"uid-a"} if fits else set()) is fits
    assert node.card_fits("n1-1", asked(10), gone=())
    assert not node.card_fits("n1-2", asked(10), gone=())
