"""What keeps containers to their units, what exceeds them all the same, and when its pod is evicted."""

from typing import Any

import pytest
from tests.samples.shared_cards import (
    EVICTING,
    HEALTHY,
    HELD,
    HOOK,
    MOMENT,
    NO_HOOK,
    UNABLE,
    card,
    condition,
    reading,
    share,
    share_node_object,
)

from gpushare_cli.decide.holders.pod_holding import pod_holdings
from gpushare_cli.decide.inspection.node_reader import shared_nodes
from gpushare_cli.decide.inspection.shared_card import ContainerHolding
from gpushare_cli.decide.inspection.shared_node import SharedNode
from gpushare_cli.decide.use.top_report import TopOf, TopSort, top_report
from gpushare_core.text.json_object import Json

GI = 2**30


def a_node(*cards: Json, given: str | None = "Hook", **spec: Any) -> SharedNode:
    fields = {"isolation": HOOK, "conditions": HELD, **spec}
    (node,) = shared_nodes(reading(share_node_object("n1", *cards, given=given, **fields)))
    return node


def containers(node: SharedNode) -> list[ContainerHolding]:
    return [container for holder in node.holders for container in holder.containers]


def test_a_container_is_held_to_what_its_units_are_worth() -> None:
    node = a_node(card(0, 16, share("a/x", 4, isolation="Hook")))
    (held,) = containers(node)
    assert (held.isolation, held.limit_bytes, held.lacks_isolation) == ("Hook", 4 * GI, False)
    assert node.isolation
    assert (node.isolation.asked, node.isolation.given, node.isolation.in_force) == ("Hook", "Hook", "True")
    assert not node.problems


def test_a_container_from_before_has_no_limit() -> None:
    (before,) = containers(a_node(card(0, 16, share("a/x", 4))))
    assert (before.isolation, before.limit_bytes, before.lacks_isolation) == ("", None, True)


def test_what_was_given_stays_when_the_policy_asks_for_nothing_any_more() -> None:
    node = a_node(card(0, 16, share("a/x", 4, isolation="Hook")), isolation={}, given="None")
    assert containers(node)[0].limit_bytes == 4 * GI
    assert node.isolation
    assert (node.isolation.asked, node.isolation.given) == ("None", "None")


@pytest.mark.parametrize(("given", "reserved", "limit"), [("", "0", None), ("Hook", "1Gi", 15 * GI)])
def test_a_whole_card_has_a_limit_where_something_of_it_is_reserved(
    given: str, reserved: str, limit: int | None
) -> None:
    whole = card(0, 1, share("a/x", 1, isolation=given))
    node = a_node(whole, mode="Exclusive", unit="1 card", reservedMemory=reserved)
    (held,) = containers(node)
    assert (held.limit_bytes, held.lacks_isolation) == (limit, False)


def test_the_driver_has_one_limit_for_all_cards_of_a_container() -> None:
    large, small = (
        card(index, 4, share("a/x", 1, isolation="Driver"), memory=memory)
        for index, memory in enumerate(("32Gi", "16Gi"))
    )
    node = a_node(
        large, small, given="Driver", isolation={"memory": "Driver"}, mode="Slices", unit="1/4 card"
    )
    assert [held.asked_bytes for held in containers(node)] == [8 * GI, 4 * GI]
    assert [held.limit_bytes for held in containers(node)] == [4 * GI, 4 * GI]


def test_a_pod_is_evicted_when_it_has_had_more_for_so_long() -> None:
    over = share("a/x", 4, used="5Gi", isolation="Hook", exceededSince=MOMENT)
    node = a_node(card(0, 16, over), isolation=EVICTING)
    (held,) = containers(node)
    assert held.exceeds
    assert (held.exceeded_since, held.evicted_from) == (MOMENT, "2026-01-02T03:01:00Z")
    (problem,) = node.problems
    assert "Its pod is evicted from 2026-01-02T03:01:00Z on." in problem.message


def test_it_is_only_reported_where_the_policy_says_so() -> None:
    over = share("a/x", 4, used="5Gi", exceededSince=MOMENT)
    assert containers(a_node(card(0, 16, over)))[0].evicted_from == ""


def test_how_long_a_silent_plugin_has_seen_more_is_not_known() -> None:
    silent = (condition("Registered", "Unknown", "PluginSilent"), *HELD[1:])
    over = share("a/x", 4, used="5Gi", exceededSince=MOMENT)
    (held,) = containers(a_node(card(0, 16, over), isolation=EVICTING, conditions=silent))
    assert (held.exceeds, held.exceeded_since, held.evicted_from) == (False, "", "")


def test_a_node_that_cannot_have_it_takes_no_pods() -> None:
    running = card(0, 16, share("a/x", 4, isolation="Hook"))
    node = a_node(running, card(1, 16), given="Unavailable", conditions=UNABLE)
    assert not node.takes_pods
    assert [found.free_units for found in node.cards] == [0, 0]
    assert NO_HOOK in node.closed_reason
    (problem,) = node.problems
    assert problem.message == f"IsolationReady is False (HookMissing): {NO_HOOK}"


@pytest.mark.parametrize(
    ("status", "reason"), [("False", "LimitDiffers"), ("Unknown", "NotKnown"), ("True", "ShareTooSmall")]
)
def test_what_is_not_in_force_or_of_no_use_is_a_problem(status: str, reason: str) -> None:
    said = condition("IsolationInForce", status, reason, "a/x has 8Gi instead of 4Gi.")
    node = a_node(card(0, 16, share("a/x", 4, isolation="Driver")), conditions=(*HELD[:-1], said))
    assert [problem.reason for problem in node.problems] == ["IsolationInForce"]
    assert node.isolation
    assert node.isolation.in_force == status


def test_a_node_of_an_older_plugin_has_nothing_odd() -> None:
    held = card(0, 16, share("a/x", 4))
    (node,) = shared_nodes(reading(share_node_object("n1", held, conditions=HEALTHY)))
    assert node.isolation is None
    assert not node.problems
    assert node.takes_pods
    (container,) = containers(node)
    assert (container.isolation, container.limit_bytes, container.lacks_isolation) == ("", None, False)


def test_a_pod_has_what_its_containers_have() -> None:
    first = share("a/x", 4, isolation="Hook", container="one", used="5Gi", exceededSince=MOMENT)
    read = reading(
        share_node_object(
            "n1",
            card(0, 16, first, share("a/x", 2, container="two")),
            conditions=HELD,
            given="Hook",
            isolation=EVICTING,
        )
    )
    nodes = shared_nodes(read)
    (pod,) = pod_holdings(nodes, read, {})
    assert (pod.isolation, pod.lacks_isolation, pod.exceeds) == (["Hook"], True, True)
    assert (pod.exceeded_since, pod.evicted_from) == (MOMENT, "2026-01-02T03:01:00Z")
    rows = top_report(nodes, of=TopOf.PODS, sort=TopSort.USED).containers
    assert [(row.container, row.isolation, row.limit_bytes) for row in rows] == [
        ("one", "Hook", 4 * GI),
        ("two", "", None),
    ]
