"""What is kept of thousands of GPUShareNodes to say whether all is well."""

from typing import Any

from msgspec import convert
from tests.fakes.status_facts import condition, facts, node_object, nodes_of

from gpushare_cli.decide.objects.node_state import NodeState
from gpushare_cli.decide.status import status_report
from gpushare_core.text.json_object import Json

GIVEN = {"uid": "a", "container": "main", "isolation": "Hook"}
OLDER = {"uid": "b", "container": "main"}


def node(*changed: Json, name: str = "gpu-1", asked: str = "Hook", **card: Any) -> Json:
    """With a card that has ``card``, beside one with which all is well."""
    cards = [{"index": 0, "units": 16, "allocatedUnits": 4, "pods": [GIVEN]}, {"index": 1, **card}]
    found = node_object(*changed, name=name, cards=cards, isolation="Hook")
    return {**found, "spec": {**found["spec"], "isolation": {"memory": asked}}}


def test_of_nodes_that_are_well_neither_cards_nor_holders_are_kept() -> None:
    one, other = nodes_of(node(), node(name="gpu-2"))
    assert (one.cards, other.cards) == ([], [])
    pairs = zip(one.status.conditions or (), other.status.conditions or (), strict=True)
    assert all(condition is same for condition, same in pairs)


def test_where_no_isolation_is_asked_for_no_holder_is_kept() -> None:
    (found,) = nodes_of(node(asked="None", health="Unhealthy", pods=[OLDER]))
    assert [(card.index, card.pods) for card in found.cards] == [(1, None)]


def test_what_is_kept_says_all_that_a_whole_node_says() -> None:
    message = "container main of pod ml/a on card GPU-gpu-7-1: 8Gi of 16Gi"
    nodes = [
        node(name="gpu-1"),
        node(name="gpu-2", health="Unhealthy", healthReason="Xid 79"),
        node(name="gpu-3", cordoned=True),
        node(name="gpu-4", lock="slice"),
        node(name="gpu-5", lock="slice", allocatedUnits=2),
        node(name="gpu-6", pods=[GIVEN, OLDER]),
        node(condition("IsolationInForce", "False", "Lost", message), name="gpu-7"),
        node(condition("CardsHealthy", "False", "CardsSick", "a card is gone"), name="gpu-8"),
        node(name="gpu-9", asked="None", pods=[OLDER]),
    ]
    whole = status_report(facts(nodes=[convert(one, NodeState) for one in nodes]))
    assert status_report(facts(nodes=nodes_of(*nodes))) == whole
    assert len(whole.problems) == 6
    assert any("on card 1:" in problem.detail for problem in whole.problems)
