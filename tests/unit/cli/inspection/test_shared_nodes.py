"""What is held and free of cards is what the extender counts, in every mode and dialect."""

import pytest
from tests.samples.shared_cards import (
    HEALTHY,
    WITHIN,
    card,
    condition,
    pending_pod_object,
    raw,
    reading,
    share,
    share_node_object,
)

from gpushare_cli.decide.inspection.cluster_reading import ClusterReading
from gpushare_cli.decide.inspection.node_reader import shared_nodes
from gpushare_cli.decide.inspection.shared_card import HolderState, SharedCard
from gpushare_cli.decide.inspection.shared_node import SharedNode
from gpushare_cli.decide.ledger import booking_of
from gpushare_core.dialects.table import DIALECTS

GI = 2**30


def the_node(read: ClusterReading) -> SharedNode:
    (node,) = shared_nodes(read)
    return node


def sums(found: SharedCard) -> tuple[str, int, int, int]:
    return found.resource, found.units, found.held_units, found.free_units


def reasons(node: SharedNode) -> list[str]:
    return [problem.reason for problem in node.problems]


def test_memory_is_held_in_units_and_worth_bytes() -> None:
    node = the_node(reading(share_node_object("n1", card(0, 16, share("a/x", 4)), card(1, 16))))
    first, second = node.cards
    assert sums(first) == ("gpushare.io/memory", 16, 4, 12)
    assert sums(second) == ("gpushare.io/memory", 16, 0, 16)
    assert (first.held_bytes, first.free_bytes) == (4 * GI, 12 * GI)
    (resource,) = node.resources
    assert (resource.total_units, resource.held_units, resource.free_units) == (32, 4, 28)
    assert resource.largest_free == 16
    assert (node.mode, node.unit, node.takes_pods, reasons(node)) == ("Memory", "1Gi", True, [])


def test_slices_are_parts_of_what_is_not_reserved() -> None:
    cards = [card(index, 4, share(f"a/{index}", 1), memory="18Gi") for index in range(2)]
    node = the_node(
        reading(share_node_object("n1", *cards, mode="Slices", unit="1/4 card", reservedMemory="2Gi"))
    )
    assert [sums(found) for found in node.cards] == [("gpushare.io/slice", 4, 1, 3)] * 2
    assert [found.held_bytes for found in node.cards] == [4 * GI] * 2
    assert node.resources[0].largest_free == 2  # a pod has one slice of a card at most
    assert node.reserved_bytes == 2 * GI


def test_a_whole_card_is_held_or_free() -> None:
    cards = [card(0, 1, share("a/x", 1)), card(1, 1), card(2, 1)]
    node = the_node(reading(share_node_object("n1", *cards, mode="Exclusive", unit="1 card")))
    assert [sums(found) for found in node.cards] == [
        ("gpushare.io/card", 1, 1, 0),
        ("gpushare.io/card", 1, 0, 1),
        ("gpushare.io/card", 1, 0, 1),
    ]
    assert node.held_bytes == 16 * GI
    assert node.resources[0].largest_free == 2


def test_in_mode_mixed_a_card_counts_as_what_it_serves() -> None:
    offers = {"memory": 16, "slice": 2, "card": 1}
    node = the_node(
        reading(
            share_node_object(
                "n1",
                card(0, 2, share("a/x", 1), lock="Slices", offers=offers),
                card(1, 16, share("a/y", 10), lock="Memory", offers=offers),
                card(2, 1, share("a/z", 1), lock="Exclusive", offers=offers),
                card(3, 16, offers=offers),
                mode="Mixed",
                unit="1Gi, 1/2 card, 1 card",
            )
        )
    )
    assert [(found.serves, found.units, found.held_units, found.free_units) for found in node.cards] == [
        ("Slices", 2, 1, 1),
        ("Memory", 16, 10, 6),
        ("Exclusive", 1, 1, 0),
        ("", 16, 0, 16),
    ]
    assert {
        resource.name: (resource.total_units, resource.held_units, resource.largest_free)
        for resource in node.resources
    } == {
        "gpushare.io/memory": (32, 10, 16),
        "gpushare.io/slice": (4, 1, 2),
        "gpushare.io/card": (2, 1, 1),
    }


@pytest.mark.parametrize("dialect", DIALECTS)
def test_resources_have_the_names_of_the_dialect_in_force(dialect: str) -> None:
    node = the_node(reading(share_node_object("n1", card(0, 16), dialect=dialect)))
    assert node.dialect == dialect
    assert node.cards[0].resource == node.resources[0].name == DIALECTS[dialect].memory_resource


def test_a_pod_that_is_bound_and_has_not_started_holds_already() -> None:
    pod = pending_pod_object("a/new", 6, node="n1", card="GPU-n1-0")
    node = the_node(reading(share_node_object("n1", card(0, 16, share("a/x", 4))), pods=(pod,)))
    (found,) = node.cards
    assert (found.held_units, found.not_started_units, found.free_units) == (10, 6, 6)
    assert [(holder.pod, holder.units, holder.state) for holder in found.holders] == [
        ("a/new", 6, HolderState.NOT_STARTED),
        ("a/x", 4, HolderState.STARTED),
    ]


def test_a_pod_that_runs_holds_before_its_plugin_reports_it() -> None:
    early = pending_pod_object("a/early", 6, node="n1", card="GPU-n1-0")
    node = the_node(reading(share_node_object("n1", card(0, 16)), booked=[booking_of(raw(early))]))
    (found,) = node.cards
    assert (found.held_units, found.not_started_units, found.free_units) == (6, 0, 10)
    assert [(holder.pod, holder.units, holder.state) for holder in found.holders] == [
        ("a/early", 6, HolderState.STARTED)
    ]


def test_what_annotation_and_kubelet_both_say_counts_once() -> None:
    pod = pending_pod_object("a/x", 4, node="n1", card="GPU-n1-0")
    node = the_node(reading(share_node_object("n1", card(0, 16, share("a/x", 4))), pods=(pod,)))
    assert (node.cards[0].held_units, node.cards[0].not_started_units) == (4, 0)


def test_a_pod_of_a_replaced_system_holds_by_its_own_annotations() -> None:
    pod = pending_pod_object("a/old", 3, resource="aliyun.com/gpu-mem", node="n1")
    pod["metadata"]["annotations"] = {
        "ALIYUN_COM_GPU_MEM_IDX": "1",
        "ALIYUN_COM_GPU_MEM_POD": "3",
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "true",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1767322800000000000",
    }
    node = the_node(
        reading(share_node_object("n1", card(0, 16), card(1, 16), dialect="aliyun.com"), pods=(pod,))
    )
    assert [found.held_units for found in node.cards] == [0, 3]


def test_a_pod_that_the_api_does_not_have_is_named() -> None:
    node = the_node(reading(share_node_object("n1", card(0, 16, share("a/gone", 4, orphaned=True)))))
    assert node.cards[0].holders[0].state is HolderState.ORPHANED
    (problem,) = node.problems
    assert problem.reason == "Orphaned"
    assert "pod a/gone is gone from the API, and its kubelet still keeps 4 units" in problem.message


def test_units_without_a_name_are_said_to_be_held() -> None:
    node = the_node(reading(share_node_object("n1", card(0, 16, allocatedUnits=5))))
    assert (node.cards[0].held_units, node.cards[0].unnamed_units) == (5, 5)
    assert reasons(node) == ["UnnamedHolder"]


def test_more_held_than_there_is_leaves_nothing_free() -> None:
    node = the_node(reading(share_node_object("n1", card(0, 4, share("a/x", 6)))))
    assert (node.cards[0].held_units, node.cards[0].free_units) == (6, 0)
    assert reasons(node) == ["OverCommitted"]


def test_a_sick_card_says_why_and_how_it_returns() -> None:
    fault = {
        "uuid": "GPU-n1-0",
        "reason": "Xid79",
        "message": "it has fallen off the bus: reboot the node",
        "since": "2026-01-01T00:00:00Z",
        "lastSeen": "2026-01-01T00:00:10Z",
    }
    sick = card(0, 16, share("a/x", 4), health="Unhealthy", healthReason="Xid 79")
    conditions = (condition("Registered", "True"), condition("CardsHealthy", "False"), WITHIN)
    node = the_node(
        reading(share_node_object("n1", sick, card(1, 16), faults=(fault,), conditions=conditions))
    )
    assert [found.free_units for found in node.cards] == [0, 16]
    (problem,) = node.problems  # the condition says nothing more
    assert (problem.reason, problem.card) == ("Xid79", 0)
    assert "reboot the node" in problem.message
    assert problem.command.endswith("gpushare.io/clear-fault=GPU-n1-0@2026-01-01T00:00:10Z")


def test_a_fault_that_was_cleared_is_no_problem() -> None:
    fault = {"uuid": "GPU-n1-0", "reason": "Xid79", "cleared": "2026-01-01T00:00:00Z"}
    node = the_node(reading(share_node_object("n1", card(0, 16), faults=(fault,))))
    assert (node.cards[0].fault, reasons(node)) == (None, [])


def test_a_cordoned_card_keeps_its_pods_and_has_nothing_free() -> None:
    node = the_node(reading(share_node_object("n1", card(0, 16, share("a/x", 4), cordoned=True))))
    assert (node.cards[0].held_units, node.cards[0].free_units) == (4, 0)
    assert "CardCordoned" in reasons(node)


def test_a_cordon_says_why() -> None:
    cordoned = share_node_object("n1", card(0, 16, cordoned=True))
    cordoned["metadata"]["annotations"] = {"gpushare.io/cordon-reason": "GPU-n1-0: fan is loud"}
    node = the_node(reading(cordoned))
    assert node.cards[0].cordon_reason == "fan is loud"
    assert "card 0 is cordoned (fan is loud)" in node.problems[0].message + node.problems[-1].message


def test_a_node_that_kubectl_cordoned_takes_nobody() -> None:
    read = reading(share_node_object("n1", card(0, 16)), unschedulable_nodes=frozenset({"n1"}))
    node = the_node(read)
    assert (node.takes_pods, node.resources[0].free_units) == (False, 0)
    assert reasons(node) == ["Unschedulable"]


def test_a_plugin_that_is_not_registered_closes_the_node() -> None:
    silent = condition("Registered", "Unknown", "PluginSilent", "nothing was heard for 75 s")
    node = the_node(reading(share_node_object("n1", card(0, 16), conditions=(silent,))))
    assert (node.takes_pods, node.free_bytes) == (False, 0)
    (problem,) = node.problems
    assert problem.message == "Registered is Unknown (PluginSilent): nothing was heard for 75 s"


def test_a_node_that_drains_for_another_unit_says_so() -> None:
    blocked = condition("UnitChangeBlocked", "True", "PodsHoldUnits", "pod a/x holds units of 2Gi")
    node = the_node(
        reading(
            share_node_object(
                "n1", card(0, 8, share("a/x", 1)), unit="2Gi", conditions=(*HEALTHY, blocked, WITHIN)
            )
        )
    )
    assert reasons(node) == ["UnitChangeBlocked", "TakesNoPods"]
    assert "the policy asks for units of 1Gi" in node.closed_reason


@pytest.mark.parametrize(
    ("scope", "conditions", "cards_use", "containers_use", "words"),
    [
        ("Off", HEALTHY, None, None, "is Off. Set it to Cards or Containers"),
        ("Cards", HEALTHY, 5 * GI, None, "is Cards. Set it to Containers"),
        ("Containers", (*HEALTHY, WITHIN), 5 * GI, 3 * GI, ""),
        (
            "Containers",
            (*HEALTHY, condition("MemoryExceeded", "Unknown", "ProcessesUnknown", "the driver is old")),
            5 * GI,
            None,
            "the driver is old",
        ),
        ("Containers", HEALTHY, 5 * GI, None, "has not said"),
        ("", HEALTHY, None, None, "has not said"),
    ],
    ids=["Off", "Cards", "Containers", "ProcessesUnknown", "older plugin", "older operator"],
)
def test_what_is_not_measured_is_unknown(
    scope: str,
    conditions: tuple[dict[str, str], ...],
    cards_use: int | None,
    containers_use: int | None,
    words: str,
) -> None:
    used = card(0, 16, share("a/x", 4, used="3Gi"), usedMemory="5Gi")
    node = the_node(reading(share_node_object("n1", used, scope=scope, conditions=conditions)))
    assert node.cards[0].used_bytes == node.used_bytes == cards_use
    assert node.cards[0].holders[0].used_bytes == containers_use
    assert words in node.unmeasured_reason
    assert bool(node.unmeasured_reason) is bool(words)


def test_a_container_that_uses_more_than_it_asked_for_is_a_problem() -> None:
    used = card(0, 16, share("a/x", 4, used="5Gi"), share("a/y", 4, used="4Gi"), usedMemory="9Gi")
    node = the_node(reading(share_node_object("n1", used)))
    assert [holder.exceeds for holder in node.cards[0].holders] == [True, False]
    (problem,) = node.problems
    assert "container main of pod a/x uses more memory than it asked for" in problem.message


def test_containers_of_a_pod_add_up() -> None:
    shares = share("a/x", 4, used="1Gi"), share("a/x", 2, used="2Gi", container="side")
    node = the_node(reading(share_node_object("n1", card(0, 16, *shares))))
    (holder,) = node.cards[0].holders
    assert (holder.units, holder.used_bytes, len(holder.containers)) == (6, 3 * GI, 2)


def test_an_object_of_another_version_is_named_and_not_believed() -> None:
    newer = share_node_object("n1", card(0, 16))
    newer["status"]["cards"][0]["units"] = "sixteen"
    node = the_node(reading(newer))
    assert (node.takes_pods, node.cards, reasons(node)) == (False, (), ["Unreadable"])


def test_a_mode_that_this_version_does_not_know_is_said() -> None:
    node = the_node(reading(share_node_object("n1", card(0, 16), mode="Time")))
    assert node.takes_pods is False
    assert "mode Time, which is not served" in node.problems[0].message


def test_a_node_without_a_status_is_shown() -> None:
    bare = {"metadata": {"name": "n1"}, "spec": {"mode": "Memory", "memoryUnit": "1Gi"}}
    node = the_node(reading(bare))
    assert (node.cards, node.takes_pods) == ([], False)
    assert "not registered" in node.closed_reason


def test_what_has_no_name_is_left_out() -> None:
    assert shared_nodes(reading({"metadata": {}})) == []


def test_use_by_a_plugin_that_is_not_heard_of_is_unknown() -> None:
    silent = condition("Registered", "Unknown", "PluginSilent", "nothing was heard for 75 s")
    used = card(0, 16, share("a/x", 4, used="1Gi"), usedMemory="1Gi")
    node = the_node(reading(share_node_object("n1", used, conditions=(silent, WITHIN))))
    assert (node.cards[0].used_bytes, node.cards[0].holders[0].used_bytes) == (None, None)
    assert node.unmeasured_reason == "what it says of use is old: nothing was heard for 75 s"
