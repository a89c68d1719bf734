"""What of the cards keeps a pod from running, in each mode."""

import pytest
from tests.samples.why import (
    CARD,
    MEMORY,
    SLICE,
    card_json,
    full_node,
    memory_pod,
    pod_json,
    share_node_json,
    situation,
)

from gpushare_cli.decide.why.causes.cards import cards_that_do_not_fit, cards_with_room, impossible_pods
from gpushare_cli.decide.why.finding import Finding
from gpushare_core.text.json_object import Json

OFFERS = {"memory": 16, "slice": 2, "card": 1}


def found(pod: Json, *share_nodes: Json) -> list[Finding]:
    facts = situation(pod, share_nodes)
    return [*impossible_pods(facts), *cards_that_do_not_fit(facts), *cards_with_room(facts)]


def only(pod: Json, *share_nodes: Json) -> Finding:
    (finding,) = found(pod, *share_nodes)
    return finding


def test_the_nearest_miss_of_memory_is_named_by_node_card_and_holders() -> None:
    finding = only(memory_pod(12), full_node("gpu-1", 5), full_node("gpu-2", 9, cards=3))
    assert finding.code == "CardsFull"
    assert finding.sentence == "No card has 12 units (12Gi) free on 2 nodes (gpu-1, gpu-2)."
    assert finding.nodes == 2
    assert finding.nearest == "gpu-2 card 2: 9 of the 12 units free, held by ml/gpu-2-last 7"
    assert finding.is_decisive


def test_many_holders_are_counted() -> None:
    held = {f"ml/nb-{number}": number for number in range(1, 6)}
    finding = only(memory_pod(12), share_node_json("gpu-1", card_json(0, held=held)))
    assert finding.nearest == (
        "gpu-1 card 0: 1 of the 12 units free, held by ml/nb-5 5, ml/nb-4 4, ml/nb-3 3 and 2 more"
    )


def test_a_card_that_is_too_small_is_not_the_nearest_while_a_larger_one_is_there() -> None:
    cards = (card_json(0, 8), card_json(1, 16, held={"ml/a": 10}))
    assert only(memory_pod(12), share_node_json("gpu-1", *cards)).nearest.startswith("gpu-1 card 1: 6 of")


def test_more_than_any_card_has() -> None:
    finding = only(memory_pod(20), full_node("gpu-1"), share_node_json("gpu-2", card_json(0, 8)))
    assert finding.code == "CardsTooSmall"
    assert finding.sentence == (
        "No card has 20 units (20Gi), not even an empty one, on 2 nodes (gpu-1, gpu-2)."
    )
    assert finding.nearest == "gpu-1 card 0: 16 of the 20 units, even when it is empty"


def test_a_pod_of_several_containers_needs_all_units_on_one_card() -> None:
    pod = pod_json(a={MEMORY: 7}, b={MEMORY: 5})
    assert only(pod, full_node("gpu-1", 9)).sentence == "No card has 12 units (12Gi) free on gpu-1."


def test_an_init_container_counts_where_it_asks_for_more() -> None:
    pod = pod_json(init={"load": {MEMORY: 12}}, main={MEMORY: 3})
    assert only(pod, full_node("gpu-1", 9)).sentence == "No card has 12 units (12Gi) free on gpu-1."


def test_no_slice_is_free() -> None:
    cards = [card_json(index, 2, held={f"ml/p{index}": 2}) for index in range(2)]
    finding = only(pod_json(main={SLICE: 1}), share_node_json("gpu-1", *cards, mode="Slices"))
    assert finding.sentence == "No slice is free on gpu-1."
    assert finding.nearest == "gpu-1 card 0: no slice free, held by ml/p0 2"


def test_slices_of_several_cards() -> None:
    cards = [card_json(0, 2), card_json(1, 2, held={"ml/a": 1, "ml/b": 1})]
    finding = only(pod_json(main={SLICE: 2}), share_node_json("gpu-1", *cards, mode="Slices"))
    assert finding.sentence == "Fewer than 2 cards have a free slice on gpu-1."
    assert finding.nearest == "gpu-1: 1 of 2 cards with a free slice; card 1 held by ml/a 1, ml/b 1"


def test_too_few_free_cards() -> None:
    cards = [card_json(index, 1, held={f"ml/p{index}": 1} if index else {}) for index in range(4)]
    finding = only(pod_json(main={CARD: 3}), share_node_json("gpu-1", *cards, mode="Exclusive"))
    assert finding.sentence == "Fewer than 3 cards are free on gpu-1."
    assert finding.nearest == (
        "gpu-1: 1 of 3 free cards; card 1 held by ml/p1 1; card 2 held by ml/p2 1; and 1 more"
    )


def test_more_cards_than_a_node_has() -> None:
    finding = only(pod_json(main={CARD: 3}), share_node_json("gpu-1", card_json(0, 1), mode="Exclusive"))
    assert finding.sentence == "Fewer than 3 cards take pods at all on gpu-1."
    assert finding.nearest == "gpu-1: 1 card that take pods"


def test_a_card_that_serves_another_class_in_mode_mixed() -> None:
    locked = card_json(0, 2, held={"ml/a": 1}, lock="Slices", offers=OFFERS)
    finding = only(memory_pod(4), share_node_json("gpu-1", locked, mode="Mixed"))
    assert finding.nearest == "gpu-1 card 0 serves Slices as long as others have it, held by ml/a 1"


def test_resources_that_fit_only_one_by_one_in_mode_mixed() -> None:
    node = share_node_json("gpu-1", card_json(0, offers=OFFERS), mode="Mixed")
    finding = only(pod_json(a={MEMORY: 4}, b={SLICE: 1}), node)
    assert finding.code == "CardsNotTogether"
    assert finding.sentence == (
        "Each of its resources alone would fit on gpu-1, and all together do not: a card serves one of them"
        " at a time."
    )


def test_several_resources_elsewhere() -> None:
    slices = share_node_json("gpu-2", card_json(0, 2), mode="Slices")
    finding = only(pod_json(a={MEMORY: 4}, b={SLICE: 1}), full_node(), slices)
    assert finding.sentence == f"The pod asks for {MEMORY} and {SLICE} together: only mode Mixed allows that."


@pytest.mark.parametrize(
    ("cards", "sentence"),
    [
        pytest.param(
            [card_json(0, cordoned=True)],
            "It cannot go to 1 node whose GPU cards are cordoned: gpu-1.",
            id="cordoned",
        ),
        pytest.param(
            [card_json(0, health="Unhealthy")],
            "It cannot go to 1 node without a healthy GPU card: gpu-1.",
            id="sick",
        ),
    ],
)
def test_a_node_without_an_open_card(cards: list[Json], sentence: str) -> None:
    finding = only(memory_pod(4), share_node_json("gpu-1", *cards))
    assert (finding.code, finding.sentence) == ("NodeClosed", sentence)


def test_a_node_whose_plugin_is_away_says_what_its_condition_says() -> None:
    finding = only(memory_pod(4), share_node_json("gpu-1", card_json(0), registered="False"))
    assert finding.advice == ["gpu-1: its plugin is silent"]


def test_nodes_that_serve_something_else_do_not_decide_where_others_fit() -> None:
    other = share_node_json("gpu-2", card_json(0, 2), mode="Slices")
    nodes, room = found(memory_pod(4), full_node("gpu-1", 4), other)
    assert (nodes.code, nodes.is_decisive) == ("OtherResource", False)
    assert room.sentence == "1 node has room for it on its cards: gpu-1."


@pytest.mark.parametrize(
    ("pod", "code"),
    [
        (pod_json(main={MEMORY: 4, SLICE: 1}), "CrowdedContainer"),
        (memory_pod(70_000), "TooManyUnits"),
    ],
)
def test_pods_that_no_node_takes(pod: Json, code: str) -> None:
    assert (only(pod, full_node(free=8)).code, only(pod).is_decisive) == (code, True)


def test_annotations_without_room_for_ours() -> None:
    pod = memory_pod(4)
    pod["metadata"]["annotations"] = {"note": "x" * 262_100}
    assert only(pod, full_node(free=8)).code == "AnnotationsFull"


def test_a_pod_that_asks_for_nothing() -> None:
    assert found(pod_json(main={}), full_node()) == []
