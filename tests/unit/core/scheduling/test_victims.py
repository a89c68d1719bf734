"""Which pods are evicted for a request: least important, then fewest, and only where it fits a card then."""

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.samples.extender import asked, pod_update, share_node
from tests.samples.preemption import bound, budget_json, budgets, ledger_with, mixed_node

from gpushare_core.placement.modes.table import MODES
from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.preemption.bound_pods import BoundPod
from gpushare_core.scheduling.preemption.victims import Eviction, NodeWithout, cost, evictable, find_eviction
from gpushare_core.text.json_object import Json

SLICES, EXCLUSIVE = MODES["Slices"], MODES["Exclusive"]


def node(ledger: Ledger, amount: int, resource: ResourceClass = ResourceClass.MEMORY) -> NodeWithout:
    found = ledger.node("n1")
    assert found
    return NodeWithout("n1", found, asked(amount, resource))


def eviction(
    without: NodeWithout,
    pods: list[BoundPod],
    *,
    gone: frozenset[str] = frozenset(),
    protected: Json | None = None,
) -> Eviction | None:
    return find_eviction(without, pods, gone=gone, budgets=budgets(protected) if protected else ())


def victims(without: NodeWithout, *pods: BoundPod, gone: frozenset[str] = frozenset()) -> list[str] | None:
    found = eviction(without, list(pods), gone=gone)
    return None if found is None else [pod.uid for pod in found.victims]


def test_the_sum_that_fits_frees_no_card_but_the_least_important_pod_does() -> None:
    ledger = ledger_with(16, 16, a={"c0": 10}, b={"c1": 10})
    assert victims(node(ledger, 10), bound("a", 5), bound("b", 1)) == ["b"]


def test_hundreds_of_pods_on_a_card_are_told_apart_by_their_uids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compared field by field, all with all for each of them, 250 pods took two seconds."""
    monkeypatch.setattr(BoundPod, "__eq__", lambda *_: pytest.fail("compared"))
    uids = [f"p{number}" for number in range(20)]
    ledger = ledger_with(20)
    for uid in uids:
        ledger.set_pod(pod_update(uid, c0=1))
    assert victims(node(ledger, 20), *map(bound, uids)) == uids


def test_one_pod_rather_than_two_of_the_same_priority() -> None:
    ledger = ledger_with(16, 16, a={"c0": 8}, b={"c0": 8}, c={"c1": 16})
    assert victims(node(ledger, 16), bound("a"), bound("b"), bound("c")) == ["c"]


def test_two_pods_of_low_priority_rather_than_one_of_higher() -> None:
    ledger = ledger_with(16, 16, a={"c0": 8}, b={"c0": 8}, c={"c1": 16})
    assert victims(node(ledger, 16), bound("a"), bound("b"), bound("c", 1)) == ["a", "b"]


def test_pods_of_two_cards_are_never_added_up() -> None:
    ledger = ledger_with(16, 16, a={"c0": 8}, b={"c0": 8}, c={"c1": 8}, d={"c1": 8})
    found = eviction(node(ledger, 16), [bound("a"), bound("c"), bound("b", 1), bound("d", 2)])
    assert found
    assert [pod.uid for pod in found.victims] == ["a", "b"]


def test_no_more_than_need_be_on_the_card() -> None:
    ledger = ledger_with(16, a={"c0": 4}, b={"c0": 4}, c={"c0": 8})
    assert victims(node(ledger, 4), bound("a"), bound("b"), bound("c")) == ["a"]
    assert victims(node(ledger, 8), bound("a"), bound("b"), bound("c")) == ["c"]
    assert victims(node(ledger, 8), bound("a"), bound("b"), bound("c", 1)) == ["a", "b"]


def test_of_equal_pods_the_one_that_began_last_goes() -> None:
    ledger = ledger_with(16, 16, a={"c0": 16}, b={"c1": 16})
    assert victims(node(ledger, 16), bound("a", started=10), bound("b", started=20)) == ["b"]


def test_nothing_where_the_others_are_too_many() -> None:
    ledger = ledger_with(16, 16, a={"c0": 10}, b={"c0": 2}, c={"c1": 16})
    assert victims(node(ledger, 16), bound("a")) is None


def test_nothing_is_evicted_where_those_that_end_already_will_do() -> None:
    ledger = ledger_with(16, 16, a={"c0": 10}, b={"c1": 10})
    assert victims(node(ledger, 10), bound("b"), gone=frozenset("a")) == []


def test_what_ends_already_counts_towards_it() -> None:
    ledger = ledger_with(16, 16, a={"c0": 8}, b={"c0": 8}, c={"c1": 16})
    assert victims(node(ledger, 16), bound("b", 1), bound("c", 2), gone=frozenset("a")) == ["b"]


def test_an_over_full_card_has_to_be_freed_of_all_that_is_too_much() -> None:
    ledger = ledger_with(16, a={"c0": 16}, b={"c0": 4}, c={"c0": 4})
    assert victims(node(ledger, 8), bound("b"), bound("c")) is None
    assert victims(node(ledger, 8), bound("a", 9), bound("b"), bound("c")) == ["a"]


def test_a_sick_card_is_not_freed() -> None:

    ledger = ledger_with(16, 16, a={"c0": 16}, b={"c1": 16})
    ledger.set_share_node(share_node("n1", 16, 16, sick=(0,)))
    assert victims(node(ledger, 16), bound("a"), bound("b", 5)) == ["b"]


class TestDistinctCards:
    def test_slices_free_as_many_cards_as_are_missing(self) -> None:
        holders = {"a": {"c0": 1, "c1": 1}, "b": {"c0": 1}, "c": {"c1": 1}, "d": {"c2": 1}}
        ledger = ledger_with(2, 2, 2, mode=SLICES, unit="1/2 card", **holders)
        slices = node(ledger, 3, ResourceClass.SLICE)
        assert victims(slices, *(bound(uid) for uid in "abcd")) == ["a"]
        assert victims(slices, bound("a", 5), bound("b"), bound("c"), bound("d")) == ["b", "c"]

    def test_one_pod_of_two_cards_rather_than_the_newest_of_each(self) -> None:
        ledger = ledger_with(
            2, 2, mode=SLICES, unit="1/2 card", a={"c0": 1, "c1": 1}, b={"c0": 1}, c={"c1": 1}
        )
        slices = node(ledger, 2, ResourceClass.SLICE)
        assert victims(slices, bound("a", started=1), bound("b", started=2), bound("c", started=2)) == ["a"]
        assert victims(slices, bound("a", 1), bound("b"), bound("c")) == ["b", "c"]

    def test_whole_cards(self) -> None:
        holders = {"a": {"c0": 1}, "b": {"c1": 1, "c2": 1}, "c": {"c3": 1}}
        ledger = ledger_with(1, 1, 1, 1, mode=EXCLUSIVE, unit="1 card", **holders)
        cards = node(ledger, 2, ResourceClass.CARD)
        assert victims(cards, *(bound(uid) for uid in "abc")) == ["b"]
        assert victims(cards, bound("a", 1), bound("b", 9), bound("c", 2)) == ["a", "c"]

    def test_more_cards_than_can_be_freed(self) -> None:
        ledger = ledger_with(1, 1, mode=EXCLUSIVE, unit="1 card", a={"c0": 1}, b={"c1": 1})
        assert victims(node(ledger, 2, ResourceClass.CARD), bound("a")) is None


class TestMixed:
    """No card serves two classes: whoever asks for another one needs it empty."""

    def ledger(self) -> Ledger:
        ledger = Ledger()
        ledger.set_share_node(mixed_node(16, 16))
        for uid, cards in {"a": {"c0": 4}, "b": {"c0": 4}, "c": {"c1": 4}}.items():
            ledger.set_pod(pod_update(uid, **cards))  # type: ignore[arg-type]
        return ledger

    def test_a_slice_needs_all_memory_of_a_card(self) -> None:
        slices = node(self.ledger(), 1, ResourceClass.SLICE)
        assert victims(slices, bound("a"), bound("b"), bound("c")) == ["c"]
        assert victims(slices, bound("a"), bound("b"), bound("c", 1)) == ["a", "b"]

    def test_a_slice_and_memory_together(self) -> None:
        found = self.ledger().node("n1")
        assert found
        both = PodRequest((asked(1, ResourceClass.SLICE), asked(12, container="second")))
        without = NodeWithout("n1", found, both)
        assert sorted(victims(without, bound("a"), bound("b"), bound("c")) or ()) == ["a", "c"]
        assert victims(without, bound("c", 1)) is None


class TestBudgets:
    def test_a_protected_pod_stays_and_another_goes(self) -> None:
        ledger = ledger_with(16, 16, a={"c0": 16}, b={"c1": 16})
        pods = [bound("a", labels={"app": "web"}), bound("b", 3)]
        found = eviction(node(ledger, 16), pods, protected=budget_json(app="web"))
        assert found
        assert [pod.uid for pod in found.victims] == ["b"]

    def test_where_all_are_protected_nothing_goes(self) -> None:
        ledger = ledger_with(16, a={"c0": 16})
        pods = [bound("a", labels={"app": "web"})]
        assert eviction(node(ledger, 16), pods, protected=budget_json(app="web")) is None

    def test_a_budget_that_lets_one_go_is_not_used_twice(self) -> None:
        ledger = ledger_with(16, 16, a={"c0": 8}, b={"c0": 8}, c={"c1": 16})
        pods = [bound("a", labels={"app": "web"}), bound("b", labels={"app": "web"}), bound("c", 1)]
        found = eviction(node(ledger, 16), pods, protected=budget_json(allowed=1, app="web"))
        assert found
        assert [pod.uid for pod in found.victims] == ["c"]


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(BoundPod(pod=bound("a").pod, priority=5), id="as important"),
        pytest.param(BoundPod(pod=bound("a").pod, is_terminating=True), id="ends already"),
        pytest.param(BoundPod(pod=bound("a").pod, comes_back=True), id="comes back"),
    ],
)
def test_what_is_not_evicted(pod: BoundPod) -> None:
    assert evictable([pod, bound("b", 4)], below=5) == [bound("b", 4)]


HOLDERS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 8), st.integers(0, 2)), max_size=7)
"""Card, units and priority of each pod."""


@given(HOLDERS, st.integers(1, 16))
@settings(max_examples=300, deadline=None)
def test_as_good_as_trying_everything(holders: list[tuple[int, int, int]], amount: int) -> None:
    """For memory: the same highest priority and as few pods as the best of all subsets."""
    names = "abcdefg"[: len(holders)]
    cards: dict[str, Any] = {
        name: {f"c{card}": units} for name, (card, units, _) in zip(names, holders, strict=True)
    }
    without = node(ledger_with(16, 16, 16, **cards), amount)
    pods = [bound(name, priority) for name, (_, _, priority) in zip(names, holders, strict=True)]
    subsets = [combination for size in range(len(pods) + 1) for combination in combinations(pods, size)]
    enough = [subset for subset in subsets if without.fits(frozenset(pod.uid for pod in subset))]
    found = find_eviction(without, pods, gone=frozenset())
    if not enough:
        assert found is None
        return
    assert found is not None
    assert without.fits(frozenset(pod.uid for pod in found.victims))
    assert found.cost[:2] == min(map(cost, enough))[:2]
