"""Among the nodes that take a pod, the ones that keep whole cards free come first."""

from collections.abc import Callable, Mapping

import pytest
from msgspec.structs import replace
from tests.samples.extender import asked, reference, share_node

from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.modes.memory import MemoryMode
from gpushare_core.placement.modes.table import MODES
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.scheduling.fit.candidates import prioritize_nodes
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.share_node import ShareNode, ShareNodeCard


def node(name: str, *, cards: int = 2, score: int = 100, strategy: Strategy = Strategy.BINPACK) -> ShareNode:
    return ShareNode(
        name=name,
        cards=tuple(ShareNodeCard(f"{name}-{index}", index, 16, healthy=True) for index in range(cards)),
        unit="1Gi",
        meanings=((ResourceClass.MEMORY, 2**30),),
        strategy=strategy,
        compute_score=score,
    )


def ledger_of(*nodes: ShareNode, **reserved: int) -> Ledger:
    ledger = Ledger()
    ledger.replace_share_nodes(nodes)
    for name, units in reserved.items():
        ledger.reserve(reference("held", uid=f"on-{name}"), node=name, request=asked(units))
    return ledger


@pytest.mark.parametrize(
    ("ledger", "units", "expected"),
    [
        pytest.param(ledger_of(node("a"), node("b"), b=4), 8, {"a": 2, "b": 10}, id="shared already"),
        pytest.param(
            ledger_of(node("a"), node("b"), a=4, b=8), 8, {"a": 2, "b": 10}, id="fills the card up completely"
        ),
        pytest.param(
            ledger_of(node("a"), node("b", score=10), a=8), 8, {"a": 2, "b": 10}, id="slow cards first"
        ),
        pytest.param(
            ledger_of(node("a", strategy=Strategy.SPREAD), node("b", strategy=Strategy.SPREAD), b=4),
            8,
            {"a": 10, "b": 2},
            id="spread to the empty node",
        ),
        pytest.param(ledger_of(node("a"), node("b", cards=0)), 8, {"a": 10, "b": 0}, id="no room, no score"),
        pytest.param(ledger_of(node("a")), 8, {"a": 10, "b": 0}, id="a node that shares nothing"),
        pytest.param(ledger_of(node("a")), 0, {"a": 0}, id="a pod that asks for nothing"),
    ],
)
def test_better_nodes_score_higher(ledger: Ledger, units: int, expected: dict[str, int]) -> None:
    assert prioritize_nodes(ledger, sorted(expected), asked(units)) == expected


def whole(name: str, *, cards: int, score: int = 100) -> ShareNode:
    present = share_node(name, *[1] * cards, mode=MODES["Exclusive"], unit="1 card")
    return replace(present, compute_score=score)


@pytest.mark.parametrize(
    ("nodes", "held", "amount", "expected"),
    [
        pytest.param(
            (whole("a", cards=4), whole("b", cards=4, score=200)), {"a": 1}, 1, {"a": 2, "b": 10}, id="fast"
        ),
        pytest.param(
            (whole("a", cards=4), whole("b", cards=4)), {"b": 1}, 1, {"a": 2, "b": 10}, id="held already"
        ),
        pytest.param(
            (whole("a", cards=8), whole("b", cards=4), whole("c", cards=3)),
            {},
            4,
            {"a": 2, "b": 10, "c": 0},
            id="a node for itself",
        ),
    ],
)
def test_whole_cards_go_where_the_free_ones_are_of_least_use(
    nodes: tuple[ShareNode, ...], held: dict[str, int], amount: int, expected: dict[str, int]
) -> None:
    ledger = Ledger()
    ledger.replace_share_nodes(nodes)
    for name, cards in held.items():
        request = asked(cards, ResourceClass.CARD)
        ledger.reserve(reference("held", uid=f"on-{name}"), node=name, request=request)
    assert prioritize_nodes(ledger, sorted(expected), asked(amount, ResourceClass.CARD)) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            lambda ledger: ledger.reserve(reference("p"), node="b", request=asked(4)),
            {"a": 10, "b": 2},
            id="a pod comes",
        ),
        pytest.param(lambda ledger: ledger.drop_pod("on-a"), {"a": 10, "b": 2}, id="a pod goes"),
        pytest.param(lambda ledger: ledger.pause("a", "wait"), {"a": 0, "b": 10}, id="a pause"),
        pytest.param(
            lambda ledger: ledger.set_share_node(node("b", score=10)), {"a": 2, "b": 10}, id="another card"
        ),
        pytest.param(
            lambda ledger: ledger.set_share_node(node("a", cards=0)), {"a": 0, "b": 10}, id="a card fewer"
        ),
    ],
)
def test_scores_follow_what_happens_to_a_node(
    change: Callable[[Ledger], object], expected: dict[str, int]
) -> None:
    """A pod of 12 fits beside the 4 on ``a``, and fills the card up."""
    ledger = ledger_of(node("a"), node("b"), a=4)
    assert prioritize_nodes(ledger, ["a", "b"], asked(12)) == {"a": 10, "b": 2}
    change(ledger)
    assert prioritize_nodes(ledger, ["a", "b"], asked(12)) == expected


def test_more_different_requests_than_are_remembered_are_answered_as_well() -> None:
    ledger = ledger_of(node("a"), node("b"), b=1)
    for _ in range(2):
        for units in range(1, 16):
            assert prioritize_nodes(ledger, ["a", "b"], asked(units)) == {"a": 2, "b": 10}


def test_a_burst_of_equal_pods_asks_each_kind_of_node_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choosing cards is what takes the time: 500 nodes took 5 ms, and every pod of a burst again."""
    ledger = ledger_of(*(node(f"n{number}") for number in range(20)))
    ledger.reserve(reference("before"), node="n3", request=asked(2))
    names, chosen = [f"n{number}" for number in range(20)], []
    choose = MemoryMode.choose

    def counting(*arguments: object, **named: object) -> Mapping[str, int]:
        chosen.append(arguments)
        return choose(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryMode, "choose", counting)
    for _ in range(3):
        prioritize_nodes(ledger, names, asked(4))
    assert len(chosen) == 2
    ledger.reserve(reference("p"), node="n7", request=asked(4))
    prioritize_nodes(ledger, names, asked(4))
    assert len(chosen) == 4, "one to reserve, and the node that changed"


def test_of_equal_nodes_every_pod_is_shown_the_same_one_with_binpack() -> None:
    """Pods of one file follow each other before the first one's units are known."""
    ledger = ledger_of(node("a"), node("b"), node("c"))
    assert prioritize_nodes(ledger, ["c", "a", "b"], asked(8)) == {"a": 10, "b": 2, "c": 2}


def test_equal_nodes_score_alike_with_spread() -> None:
    ledger = ledger_of(*(node(name, strategy=Strategy.SPREAD) for name in "ab"))
    assert prioritize_nodes(ledger, ["a", "b"], asked(8)) == {"a": 10, "b": 10}
