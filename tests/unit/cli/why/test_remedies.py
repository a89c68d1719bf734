"""What would help a pod that waits, proven by the ledger, and what would not."""

from typing import Any

from tests.samples.preemption import budget_json, budgets
from tests.samples.why import (
    CARD,
    MEMORY,
    SLICE,
    bound_pods,
    card_json,
    full_node,
    memory_pod,
    owned_pod,
    pod_json,
    share_node_json,
    situation,
)

from gpushare_cli.decide.why.explain import explain
from gpushare_cli.decide.why.finding import Remedy
from gpushare_core.text.json_object import Json

NODES = (full_node("gpu-1", 5), full_node("gpu-2", 9, cards=3), full_node("gpu-3"))


def remedies(pod: Json, share_nodes: tuple[Json, ...] = NODES, **facts: Any) -> dict[str, Remedy]:
    report = explain(situation(pod, share_nodes, **facts))
    return {remedy.code: remedy for remedy in report.remedies}


def there(*pods: Json, node: str = "gpu-2") -> dict[str, Any]:
    return {"neighbours": {node: bound_pods(*pods)}, "budgets": []}


def test_the_largest_amount_that_fits_now() -> None:
    smaller = remedies(memory_pod(12))["SmallerRequest"]
    assert (smaller.helps, smaller.units, smaller.nodes) == (True, 9, ["gpu-2"])
    assert "9 units (9Gi) of gpushare.io/memory would fit now, on gpu-2." in smaller.sentence


def test_the_amount_is_that_of_all_containers() -> None:
    pod = pod_json(a={MEMORY: 7}, b={MEMORY: 5})
    assert "9 units (9Gi) of gpushare.io/memory, all containers together" in (
        remedies(pod)["SmallerRequest"].sentence
    )


def test_nothing_smaller_fits() -> None:
    smaller = remedies(memory_pod(4), (full_node(),))["SmallerRequest"]
    assert not smaller.helps
    assert smaller.sentence == ("Asking for less: not even 1 unit (1Gi) of gpushare.io/memory would fit now.")


def test_fewer_cards() -> None:
    cards = [card_json(index, 1, held={f"ml/p{index}": 1} if index > 1 else {}) for index in range(4)]
    pod = pod_json(main={CARD: 4})
    smaller = remedies(pod, (share_node_json("gpu-1", *cards, mode="Exclusive"),))["SmallerRequest"]
    assert smaller.sentence.startswith("Ask for less: 2 cards of gpushare.io/card would fit now, on gpu-1.")


def test_a_pod_of_equal_priority_has_to_go_by_hand() -> None:
    found = remedies(memory_pod(12), **there(owned_pod("gpu-2-last"), owned_pod("gpu-2-0")))
    gone = found["PodsGone"]
    assert gone.helps
    assert gone.sentence == (
        "Without ml/gpu-2-last (7 units, priority 0) it would fit gpu-2 card 2. Not evicted for it: the"
        " priority of ml/gpu-2-last is not below its own, 0."
    )
    assert (gone.nodes, gone.pods) == (["gpu-2"], ["ml/gpu-2-last"])
    assert gone.commands == ["kubectl delete pod -n ml gpu-2-last"]
    assert found["HigherPriority"].helps


def test_less_important_pods_are_evicted_by_themselves() -> None:
    found = remedies(memory_pod(12, priority=100), **there(owned_pod("gpu-2-last")))
    assert "by its priority 100 it has ml/gpu-2-last (7 units, priority 0) evicted on gpu-2" in (
        found["Preemption"].sentence
    )
    assert "PodsGone" not in found


def test_a_pod_that_must_not_preempt() -> None:
    pod = memory_pod(12, priority=100, preemptionPolicy="Never")
    found = remedies(pod, **there(owned_pod("gpu-2-last")))
    assert "preemptionPolicy PreemptLowerPriority in place of Never" in found["PreemptionPolicy"].sentence


def test_a_policy_that_evicts_nobody() -> None:
    node = full_node("gpu-2", 9, cards=3, preemption="Disabled")
    found = remedies(memory_pod(12, priority=100), (node,), **there(owned_pod("gpu-2-last")))
    disabled = found["PreemptionDisabled"]
    assert "in policy default, where it is Disabled" in disabled.sentence
    assert disabled.commands[0].startswith("kubectl patch gpusharepolicy default --type=merge -p '{")


def test_a_node_whose_policy_evicts_goes_before_one_whose_policy_does_not() -> None:
    quiet = full_node("gpu-2", 9, cards=3, preemption="Disabled")
    facts = {
        "neighbours": {
            "gpu-2": bound_pods(owned_pod("gpu-2-last")),
            "gpu-1": bound_pods(owned_pod("gpu-1-last", priority=3)),
        },
        "budgets": [],
    }
    found = remedies(memory_pod(12, priority=100), (NODES[0], quiet), **facts)
    assert found["Preemption"].pods == ["ml/gpu-1-last"]


def test_a_manifest_has_others_evicted_once_it_is_created() -> None:
    found = remedies(memory_pod(12, priority=100), exists=False, **there(owned_pod("gpu-2-last")))
    assert found["Preemption"].sentence.startswith("Create it: by its priority 100")
    assert "anew" not in found["SmallerRequest"].sentence


def test_a_budget_protects_what_is_in_the_way() -> None:
    facts = there(owned_pod("gpu-2-last", labels={"app": "nb"}))
    facts["budgets"] = budgets(budget_json("notebooks", namespace="ml", app="nb"))
    gone = remedies(memory_pod(12, priority=100), **facts)["PodsGone"]
    assert "Not evicted for it: PodDisruptionBudget ml/notebooks protects ml/gpu-2-last." in gone.sentence


def test_budgets_that_cannot_be_read_are_said_to_be_unknown() -> None:
    facts = there(owned_pod("gpu-2-last")) | {"budgets": None}
    gone = remedies(memory_pod(12), **facts)["PodsGone"]
    assert "whether a PodDisruptionBudget protects them cannot be known" in gone.sentence


def test_a_pod_that_would_come_back_at_once() -> None:
    owner = [{"kind": "DaemonSet", "controller": True}]
    gone = remedies(memory_pod(12, priority=100), **there(owned_pod("gpu-2-last", ownerReferences=owner)))
    assert (gone["PodsGone"].helps, gone["PodsGone"].commands) == (False, [])


def test_a_pod_that_is_ending_makes_room_by_itself() -> None:
    ending = owned_pod("gpu-2-last", deletionTimestamp="2026-11-21T10:00:00Z")
    found = remedies(memory_pod(12), **there(ending, owned_pod("gpu-2-0")))
    assert (
        found["EndingPods"].sentence == "Wait: ml/gpu-2-last on gpu-2 is ending, and leaves room on card 2."
    )
    assert "PodsGone" not in found


def test_what_is_in_the_way_is_not_in_the_api() -> None:
    gone = remedies(memory_pod(12), **there())["PodsGone"]
    assert "pods are in the way that the API server no longer has" in gone.sentence


def test_no_eviction_makes_a_card_larger() -> None:
    gone = remedies(memory_pod(20))["PodsGone"]
    assert (gone.helps, gone.sentence) == (
        False,
        "Deleting pods, or a higher priority: it would not fit if all other pods were gone.",
    )


def test_a_whole_card_of_mode_mixed_needs_all_pods_of_a_card_gone() -> None:
    locked = card_json(0, 16, held={"ml/a": 4, "ml/b": 4}, lock="Memory", offers={"memory": 16, "card": 1})
    node = share_node_json("gpu-1", locked, mode="Mixed")
    facts = there(owned_pod("a"), owned_pod("b"), node="gpu-1")
    gone = remedies(pod_json(main={CARD: 1}), (node,), **facts)["PodsGone"]
    assert gone.sentence.startswith("Without ml/a (4 units, priority 0), ml/b (4 units, priority 0)")
    assert gone.commands == ["kubectl delete pod -n ml a", "kubectl delete pod -n ml b"]


def test_in_mode_mixed_nobody_is_evicted_for_another_class() -> None:
    """kube-scheduler does not offer such a pod the node: it has no free card, and so none at all."""
    locked = card_json(0, 16, held={"ml/a": 4}, lock="Memory", offers={"memory": 16, "card": 1})
    node = share_node_json("gpu-1", locked, mode="Mixed")
    pod = pod_json(main={CARD: 1})
    pod["spec"]["priority"] = 100
    found = remedies(pod, (node,), **there(owned_pod("a"), node="gpu-1"))
    assert found["PodsGone"].helps
    assert "for pods of another class nobody is evicted in mode Mixed" in found["PodsGone"].sentence
    assert found.keys().isdisjoint({"Preemption", "HigherPriority"})


def test_a_cordoned_card_that_would_take_it() -> None:
    node = share_node_json("gpu-4", card_json(0, node="gpu-4", held={"ml/a": 9}), card_json(2, cordoned=True))
    uncordon = remedies(memory_pod(12), (*NODES, node))["Uncordon"]
    assert uncordon.helps
    assert uncordon.sentence == "Uncordon card 2 of gpu-4: it would fit there if it were not cordoned."
    assert uncordon.commands == ["kubectl gpushare uncordon gpu-4 2"]


def test_a_node_all_of_whose_cards_are_cordoned() -> None:
    node = share_node_json("gpu-4", card_json(0, cordoned=True), card_json(1, cordoned=True))
    assert remedies(memory_pod(12), (node,))["Uncordon"].commands == ["kubectl gpushare uncordon gpu-4 0"]


def test_two_cordoned_cards_where_it_needs_both() -> None:
    cards = [card_json(index, 1, cordoned=True) for index in range(2)]
    node = share_node_json("gpu-4", *cards, mode="Exclusive")
    uncordon = remedies(pod_json(main={CARD: 2}), (node,))["Uncordon"]
    assert uncordon.commands == [f"kubectl gpushare uncordon gpu-4 {index}" for index in range(2)]


def test_a_cordoned_card_without_room() -> None:
    node = share_node_json("gpu-4", card_json(0, node="gpu-4", cordoned=True, held={"ml/a": 9}))
    uncordon = remedies(memory_pod(12), (*NODES, node))["Uncordon"]
    assert (uncordon.helps, uncordon.sentence) == (
        False,
        "Uncordoning cards: those of gpu-4 have no room for it, either.",
    )


def test_a_sick_card_that_would_take_it() -> None:
    node = share_node_json("gpu-4", card_json(1, health="Unhealthy", healthReason="Xid 79"))
    mend = remedies(memory_pod(12), (node,))["Mend"]
    assert mend.sentence == "Repair card 1 of gpu-4 (Xid 79): it would fit there."
    assert mend.commands == ["kubectl gpushare inspect gpu-4 --card 1"]


def test_one_more_node_of_the_smallest_kind_that_takes_it() -> None:
    large = share_node_json("gpu-9", *(card_json(index, 80, held={"ml/a": 80}) for index in range(2)))
    assert remedies(memory_pod(12), (*NODES, large))["AnotherNode"].sentence == (
        "One more node like gpu-1 (2 cards of 16 units (16Gi))."
    )
    assert "like gpu-9" in remedies(memory_pod(40), (*NODES, large))["AnotherNode"].sentence


def test_one_more_node_of_a_kind_that_is_too_small() -> None:
    another = remedies(memory_pod(20))["AnotherNode"]
    assert not another.helps
    assert another.sentence.endswith("It needs a card of 20 units (20Gi).")


def test_free_units_on_different_cards_do_not_add_up() -> None:
    free = remedies(memory_pod(12))["FreeElsewhere"]
    assert free.sentence == (
        "The 14 units (14Gi) that are free in all: they lie on 2 cards, and units of a pod have to lie on"
        " one."
    )


def test_free_cards_of_different_nodes_do_not_add_up() -> None:
    nodes = [
        share_node_json(f"gpu-{number}", card_json(0, 1), card_json(1, 1, held={"ml/a": 1}), mode="Exclusive")
        for number in range(2)
    ]
    free = remedies(pod_json(main={CARD: 2}), tuple(nodes))["FreeElsewhere"]
    assert free.sentence == (
        "The 2 cards that are free in all: they lie on 2 nodes, and a pod gets all of its 2 cards from one."
    )


def test_slices_of_one_card_do_not_add_up() -> None:
    node = share_node_json("gpu-1", card_json(0, 2), mode="Slices")
    assert not remedies(pod_json(main={SLICE: 2}), (node,))["FreeElsewhere"].helps


def test_pods_that_come_first() -> None:
    waiting = (
        owned_pod("big", priority=9),
        owned_pod("earlier", creationTimestamp="2026-11-21T09:00:00Z"),
        owned_pod("later", creationTimestamp="2026-11-21T10:04:00Z"),
    )
    assert remedies(memory_pod(12), waiting=waiting)["QueueAhead"].sentence == (
        "Waiting alone: 2 pods that wait for cards as well come first (ml/big, ml/earlier): higher priority,"
        " or longer in the queue."
    )


def test_a_manifest_comes_last_of_its_priority() -> None:
    waiting = (owned_pod("later", creationTimestamp="2026-11-21T10:04:00Z"),)
    assert "ml/later" in remedies(memory_pod(12), waiting=waiting, exists=False)["QueueAhead"].sentence


def test_pods_that_no_node_takes_can_only_ask_for_less() -> None:
    assert remedies(memory_pod(70_000)).keys() == {"SmallerRequest"}


def test_the_facts_stay_as_they_are() -> None:
    """Everything is tried on copies."""
    facts = situation(memory_pod(12), NODES, **there(owned_pod("gpu-2-last")))
    assert explain(facts) == explain(facts)
