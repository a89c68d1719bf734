"""What kube-scheduler proposes to evict, completed so that it frees a card."""

import pytest
from tests.samples.extender import asked
from tests.samples.preemption import bound, budget_json, budgets, ledger_with

from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod import Container, PodSpec, ResourceRequirements
from gpushare_core.scheduling.preemption.bound_pods import BoundPod
from gpushare_core.scheduling.preemption.victims import NodeWithout
from gpushare_core.text.json_object import Json
from gpushare_extender.decide.preemption.proposals import NodeToFree, Proposal, complete

WEB = {"app": "web"}


def two_halves_a_card() -> Ledger:
    return ledger_with(16, 16, a={"c0": 8}, b={"c0": 8}, c={"c1": 8}, d={"c1": 8})


def completed(
    ledger: Ledger,
    amount: int,
    proposed: str,
    *pods: BoundPod,
    gone: str = "",
    may_add: bool = True,
    budget: Json | None = None,
) -> Proposal | None:
    node = ledger.node("n1")
    assert node
    to_free = NodeToFree(
        NodeWithout("n1", node, asked(amount)),
        pods,
        frozenset(gone),
        below=10,
        budgets=budgets(budget) if budget else (),
    )
    return complete(Proposal(tuple(proposed)), to_free, may_add=may_add)


def pods(*uids: str) -> list[BoundPod]:
    return [bound(uid) for uid in uids]


def test_victims_that_free_a_card_stay() -> None:
    assert completed(two_halves_a_card(), 8, "a", *pods(*"abcd")) == Proposal(("a",))


def test_none_are_added_where_the_scheduler_found_none() -> None:
    ledger = ledger_with(16, 16, a={"c0": 10}, b={"c1": 10})
    assert completed(ledger, 10, "", bound("a", 3), bound("b", 2)) == Proposal(("b",))


def test_victims_on_two_cards_are_replaced_by_as_many_on_one() -> None:
    assert completed(two_halves_a_card(), 16, "ac", *pods(*"abcd")) in (
        Proposal(("a", "b")),
        Proposal(("c", "d")),
    )


def test_a_victim_without_units_of_ours_stays_besides() -> None:
    found = completed(two_halves_a_card(), 16, "xa", bound("x", 5), *pods(*"abcd"))
    assert found is not None
    assert found.victims[0] == "x"
    assert set(found.victims[1:]) in ({"a", "b"}, {"c", "d"})


@pytest.mark.parametrize(
    "resources",
    [
        pytest.param(ResourceRequirements(requests={"cpu": "4"}), id="CPU"),
        pytest.param(ResourceRequirements(limits={"example.com/rdma": "1"}), id="another extended resource"),
    ],
)
def test_victims_that_free_more_than_others_stay_and_more_are_added(resources: ResourceRequirements) -> None:
    spec = PodSpec(containers=[Container("main", resources=resources)])
    greedy = BoundPod(pod=bound("a").pod, priority=1, spec=spec)
    others = [bound("b", 1), bound("c"), bound("d")]
    found = completed(two_halves_a_card(), 16, "ac", greedy, *others)
    assert found is not None
    assert {"a", "c"} < set(found.victims)


def test_where_nothing_helps_the_node_is_dropped() -> None:
    assert (
        completed(two_halves_a_card(), 16, "ac", bound("a"), bound("b", 99), bound("c"), bound("d", 99))
        is None
    )


def test_a_node_that_takes_the_pod_already_is_dropped_for_nothing_is_to_be_evicted() -> None:
    assert completed(ledger_with(16), 16, "") is None


def test_the_most_important_victim_comes_first() -> None:
    found = completed(two_halves_a_card(), 16, "", bound("a", 1), bound("b", 5), bound("c", 9), bound("d", 9))
    assert found == Proposal(("b", "a"))


def test_what_ends_already_is_not_evicted() -> None:
    assert completed(two_halves_a_card(), 16, "", *pods("b", "c", "d"), gone="a") == Proposal(("b",))


def test_nothing_is_added_where_that_is_off() -> None:
    assert completed(two_halves_a_card(), 16, "ac", *pods(*"abcd"), may_add=False) is None
    assert completed(two_halves_a_card(), 16, "ab", *pods(*"abcd"), may_add=False) is not None


class TestBudgets:
    def test_none_that_is_added_violates_one(self) -> None:
        protected = [bound("a", labels=WEB), bound("b", labels=WEB), bound("c", 5), bound("d", 5)]
        found = completed(two_halves_a_card(), 16, "", *protected, budget=budget_json(allowed=1, app="web"))
        assert found is not None
        assert (set(found.victims), found.violations) == ({"c", "d"}, 0)

    def test_those_of_the_scheduler_are_counted(self) -> None:
        protected = [bound("a", labels=WEB), bound("b", labels=WEB), *pods("c", "d")]
        found = completed(two_halves_a_card(), 16, "ab", *protected, budget=budget_json(allowed=1, app="web"))
        assert found is not None
        assert found.violations == 1
