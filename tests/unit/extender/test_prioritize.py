"""Among the nodes that take a pod, the ones that keep whole cards free come first."""

import pytest
from tests.samples.extender import asked, reference

from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.requests import ResourceClass
from gpushare_extender.decide.prioritize import prioritize_nodes
from gpushare_extender.ledger.ledger import Ledger
from gpushare_extender.ledger.share_node import ShareNode, ShareNodeCard


def node(name: str, *, cards: int = 2, score: int = 100, strategy: Strategy = Strategy.BINPACK) -> ShareNode:
    return ShareNode(
        name=name,
        cards=tuple(ShareNodeCard(f"{name}-{index}", index, 16, healthy=True) for index in range(cards)),
        unit="1Gi",
        unit_meaning=(ResourceClass.MEMORY, 2**30),
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
        pytest.param(ledger_of(node("a"), node("b"), b=4), 8, {"a": 9, "b": 10}, id="shared already"),
        pytest.param(
            ledger_of(node("a"), node("b"), a=4, b=8), 8, {"a": 9, "b": 10}, id="fills the card up completely"
        ),
        pytest.param(
            ledger_of(node("a"), node("b", score=10), a=8), 8, {"a": 9, "b": 10}, id="slow cards first"
        ),
        pytest.param(
            ledger_of(node("a", strategy=Strategy.SPREAD), node("b", strategy=Strategy.SPREAD), b=4),
            8,
            {"a": 10, "b": 9},
            id="spread to the empty node",
        ),
        pytest.param(ledger_of(node("a"), node("b", cards=0)), 8, {"a": 10, "b": 0}, id="no room, no score"),
        pytest.param(ledger_of(node("a")), 8, {"a": 10, "b": 0}, id="a node that shares nothing"),
        pytest.param(ledger_of(node("a")), 0, {"a": 0}, id="a pod that asks for nothing"),
    ],
)
def test_better_nodes_score_higher(ledger: Ledger, units: int, expected: dict[str, int]) -> None:
    assert prioritize_nodes(ledger, sorted(expected), asked(units)) == expected
