"""What the kubelet has assigned is right; annotations that say otherwise are rewritten."""

from datetime import UTC, datetime

import pytest
from tests.samples.plugin import ANNOTATION, NODE, annotation, assigned, container, node_assignments, pod

from gpushare_core.allocation_annotation import Allocation, decode_allocation
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_plugin.decide.admit.preferred_allocation import NO_ROOM
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.decide.held.preferred_cards import PreferredCard, PreferredCards
from gpushare_plugin.decide.report.annotation_repairs import other_card_events, plan_repairs

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
FOUR, FOUR_ON_1 = [0, 1, 2, 3], [16, 17, 18, 19]


def annotated(text: str | None) -> Pod:
    return pod("a", container(units=4), annotation=text)


def repaired(held: AssignedDevices, *pods: Pod) -> dict[str, Allocation]:
    return {
        repair.pod.name: decode_allocation(repair.annotations[ANNOTATION], uid=repair.uid)
        for repair in plan_repairs(node_assignments(held), pods, GPUSHARE, now=NOW)
    }


@pytest.mark.parametrize(
    ("text", "held"),
    [
        pytest.param(annotation(), assigned(a={"main": FOUR}), id="it says the same"),
        pytest.param(
            annotation(unit="1024Mi", cards={"GPU-0": 4}), assigned(a={"main": FOUR}), id="in other words"
        ),
        pytest.param(annotation({"main": {"GPU-1": 4}}), assigned(a={"main": []}), id="not admitted yet"),
        pytest.param(annotation({"main": {"GPU-1": 4}}), AssignedDevices(), id="not seen by the kubelet yet"),
        pytest.param(None, AssignedDevices(), id="no annotation and no units"),
    ],
)
def test_nothing_is_done_where_there_is_nothing_to_do(text: str | None, held: AssignedDevices) -> None:
    assert repaired(held, annotated(text)) == {}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(annotation({"main": {"GPU-0": 4}}), id="another card"),
        pytest.param(annotation({"main": {"GPU-1": 3}}), id="another amount"),
        pytest.param(annotation({"main": {"GPU-1": 4}}, cards={"GPU-1": 9}), id="another total"),
        pytest.param(annotation({"other": {"GPU-1": 4}}), id="another container"),
        pytest.param(annotation({"main": {"GPU-1": 4}}, node="gpu-2"), id="another node"),
        pytest.param(annotation({"main": {"GPU-1": 4}}, unit="512Mi"), id="another unit"),
        pytest.param(annotation({"main": {"GPU-1": 4}}, unit="huh"), id="no unit"),
        pytest.param("not ours", id="not an allocation"),
        pytest.param(annotation({"main": {"GPU-1": 4}}, uid="uid-b"), id="a copy of another pod's"),
        pytest.param(None, id="none"),
    ],
)
def test_the_annotation_is_made_to_say_what_the_kubelet_has_assigned(text: str | None) -> None:
    made = repaired(assigned(a={"main": FOUR_ON_1}), annotated(text))["a"]
    assert (made.node, made.unit, made.containers, made.cards) == (
        NODE,
        "1Gi",
        {"main": {"GPU-1": 4}},
        {"GPU-1": 4},
    )


def test_two_swapped_pods_are_both_repaired_and_keep_what_else_was_written() -> None:
    first = pod("first", container(units=4), annotation=annotation({"main": {"GPU-0": 4}}))
    second = pod("second", container(units=4), annotation=annotation({"main": {"GPU-1": 4}}))
    made = repaired(assigned(first={"main": FOUR_ON_1}, second={"main": FOUR}), first, second)
    assert {name: held.cards for name, held in made.items()} == {
        "first": {"GPU-1": 4},
        "second": {"GPU-0": 4},
    }
    assert made["first"].at == "2026-11-21T10:00:00Z"


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param({"cpu": "2", "memory": "8Gi"}, ("4", "16Gi"), id="whole"),
        pytest.param({"cpu": "250m", "memory": "512Mi"}, ("500m", "1Gi"), id="parts"),
        pytest.param({"cpu": "0.5", "memory": "100M"}, ("1", "200M"), id="decimal"),
        pytest.param({"cpu": "lots", "memory": "many"}, (str(2**64 - 2),) * 2, id="unreadable"),
        pytest.param({}, ("0", "0"), id="none"),
    ],
)
def test_a_pod_bound_by_somebody_else_gets_its_annotation_afterwards(
    requests: dict[str, str], expected: tuple[str, str]
) -> None:
    resources = {"limits": {"gpushare.io/memory": "2"}, "requests": requests}
    bare = pod("a", *({"name": name, "resources": resources} for name in ("x", "y")))
    made = repaired(assigned(a={"x": [0, 1], "y": [2, 3]}), bare)["a"]
    assert (made.at, made.cards) == ("2026-11-21T12:00:00Z", {"GPU-0": 4})
    assert (made.cpu, made.memory) == expected


@pytest.mark.parametrize(
    ("text", "preferred", "expected"),
    [
        pytest.param(annotation({"main": {"GPU-1": 3}}), {}, "", id="the annotated card"),
        pytest.param(None, {}, "", id="nothing is annotated"),
        pytest.param(annotation({"main": {"GPU-0": 4}}, node="gpu-2"), {}, "", id="of another node"),
        pytest.param(
            annotation({"main": {"GPU-0": 4}}),
            {},
            "card GPU-1 in place of GPU-0: kept by the kubelet",
            id="the plugin did not choose it",
        ),
        pytest.param(
            annotation({"main": {"GPU-0": 4}}),
            {"uid-a": PreferredCard(("GPU-1",), reason=NO_ROOM)},
            "card GPU-1 in place of GPU-0: annotated card has no room",
            id="the plugin chose it",
        ),
    ],
)
def test_a_pod_with_another_card_than_annotated_is_told_why(
    text: str | None, preferred: PreferredCards, expected: str
) -> None:
    assignments = node_assignments(assigned(a={"main": FOUR_ON_1}), preferred)
    repairs = plan_repairs(assignments, [annotated(text)], GPUSHARE, now=NOW)
    assert [repair.other_card for repair in repairs] == [expected]
    assert [event.note for event in other_card_events(repairs)] == ([expected] if expected else [])
