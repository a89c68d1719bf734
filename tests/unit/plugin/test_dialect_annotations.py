"""What a dialect says of a pod that has its units: once; put right when it turns out another card."""

from array import array
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.samples.plugin import (
    ANNOTATION,
    annotation,
    assigned,
    card,
    container,
    name_of,
    node_assignments,
    pod_json,
)

from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_core.placement.modes.table import NODE_MODES
from gpushare_core.placement.units import UnitFields, parse_node_unit
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, read_pod
from gpushare_plugin.decide.report.annotation_repairs import plan_repairs
from gpushare_plugin.decide.units.foreign_units import ForeignUnits
from gpushare_plugin.decide.units.layout import lay_out

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
AT = str(int(NOW.timestamp()) * 10**9)
BOUND_AT = "1700000000000000000"

ALIYUN = {
    "ALIYUN_COM_GPU_MEM_IDX": "1",
    "ALIYUN_COM_GPU_MEM_POD": "4",
    "ALIYUN_COM_GPU_MEM_DEV": "16",
    "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
    "ALIYUN_COM_GPU_MEM_ASSUME_TIME": BOUND_AT,
}
VOLCANO = {"volcano.sh/gpu-index": "1", "volcano.sh/predicate-time": BOUND_AT}
ENFLAME = {
    "enflame.com/gcu-device-id": "1",
    "enflame.com/gcu-device-memory": "16",
    "enflame.com/gcu-device-memory-request": "4",
    "enflame.com/gcu-device-assigned": "false",
    "enflame.com/gcu-device-assign-time": BOUND_AT,
}
ON_1 = assigned(a={"main": [16, 17, 18, 19]})
ON_0 = assigned(a={"main": [0, 1, 2, 3]})


def bound(dialect: str, annotations: dict[str, str], card: str | None = "GPU-1") -> Pod:
    """A pod of 4 units; ``card`` is what our own annotation names."""
    text = annotation({"main": {card: 4}}) if card else None
    item = pod_json("a", container(units=4, resource=DIALECTS[dialect].memory_resource), annotation=text)
    item["metadata"].setdefault("annotations", {}).update(annotations)
    return read_pod(item, ANNOTATION, RESOURCES)


def repaired(dialect: str, pod: Pod, held: AssignedDevices = ON_1) -> dict[str, str]:
    """What is set of the dialect; whether ours is set, too, is in test_annotation_repairs."""
    plan = plan_repairs(node_assignments(held), [pod], DIALECTS[dialect], now=NOW)
    return {key: value for repair in plan for key, value in repair.annotations.items() if key != ANNOTATION}


@pytest.mark.parametrize(
    ("dialect", "annotations", "expected"),
    [
        pytest.param(
            "aliyun.com",
            ALIYUN,
            {"ALIYUN_COM_GPU_MEM_ASSIGNED": "true", "ALIYUN_COM_GPU_MEM_ASSUME_TIME": AT},
            id="aliyun",
        ),
        pytest.param("volcano.sh", VOLCANO, {"volcano.sh/gpu-assigned": "true"}, id="volcano"),
        pytest.param(
            "enflame.com",
            ENFLAME,
            {"enflame.com/gcu-device-assigned": "true", "enflame.com/gcu-device-assign-time": AT},
            id="enflame",
        ),
        pytest.param("tuya.com", {}, {}, id="tuya"),
        pytest.param("gpushare.io", {}, {}, id="ours"),
    ],
)
def test_that_a_pod_has_its_units_is_said_once(
    dialect: str, annotations: dict[str, str], expected: dict[str, str]
) -> None:
    assert repaired(dialect, bound(dialect, annotations)) == expected
    assert repaired(dialect, bound(dialect, {**annotations, **expected})) == {}


@pytest.mark.parametrize(
    ("dialect", "annotations", "expected"),
    [
        pytest.param(
            "aliyun.com",
            {**ALIYUN, "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"},
            {"ALIYUN_COM_GPU_MEM_IDX": "0"},
            id="aliyun",
        ),
        pytest.param(
            "volcano.sh",
            {**VOLCANO, "volcano.sh/gpu-assigned": "true"},
            {"volcano.sh/gpu-index": "0"},
            id="volcano",
        ),
        pytest.param(
            "enflame.com",
            {**ENFLAME, "enflame.com/gcu-device-assigned": "true"},
            {"enflame.com/gcu-device-id": "0"},
            id="enflame",
        ),
    ],
)
def test_the_index_follows_the_card_and_no_time_changes(
    dialect: str, annotations: dict[str, str], expected: dict[str, str]
) -> None:
    assert repaired(dialect, bound(dialect, annotations), ON_0) == expected
    assert repaired(dialect, bound(dialect, annotations, "GPU-0"), ON_0) == expected


@pytest.mark.parametrize(
    ("dialect", "annotations"),
    [("aliyun.com", ALIYUN), ("volcano.sh", VOLCANO), ("enflame.com", ENFLAME)],
)
def test_a_pod_that_nobody_annotated_gets_all_of_it(dialect: str, annotations: dict[str, str]) -> None:
    set_anew = repaired(dialect, bound(dialect, {}, None))
    assert set_anew.keys() >= annotations.keys()
    assert repaired(dialect, bound(dialect, set_anew, "GPU-1")) == {}


def test_what_the_replaced_system_wrote_of_its_own_units_stays() -> None:
    """Its index and amounts are what it reads after a switch back."""
    units = ForeignUnits("aliyun.com/gpu-mem", {"GPU-0-_-": array("I", range(4))}, "GPU-1")
    assignment = PodAssignment(name_of("a"), {"main": array("I")}, "uid-a", foreign={"main": (units,)})
    held = AssignedDevices({assignment.name: assignment})
    old = {**ALIYUN, "ALIYUN_COM_GPU_MEM_DEV": "16276", "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}
    assert repaired("aliyun.com", bound("aliyun.com", old), held) == {}


@pytest.mark.parametrize("dialect", ["aliyun.com", "volcano.sh", "enflame.com"])
def test_a_pod_with_units_of_two_cards_gets_no_index_that_would_be_wrong(dialect: str) -> None:
    """As after the kubelet forgot a container, which came back elsewhere."""
    item = pod_json("a", *(container(name, 2, DIALECTS[dialect].memory_resource) for name in ("x", "y")))
    pod = read_pod(item, ANNOTATION, RESOURCES)
    held = assigned(a={"x": [0, 1], "y": [16, 17]})
    assert not repaired(dialect, pod, held).keys() & {*ALIYUN, *VOLCANO, *ENFLAME} - {
        "ALIYUN_COM_GPU_MEM_ASSIGNED",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME",
        "enflame.com/gcu-device-assigned",
        "enflame.com/gcu-device-assign-time",
    }


MIXED = lay_out([card(0), card(1)], NODE_MODES["Mixed"].unit(UnitFields("1Gi", 2)), reserved=0)
"""GPU-0: 0 to 15 are memory, 16 and 17 slices, 18 is the card. GPU-1: the same from 19 on."""


def repaired_in_mixed(dialect: str, pod: Pod, held: AssignedDevices) -> dict[str, str]:
    assignments = replace(node_assignments(held), layout=MIXED)
    (plan,) = plan_repairs(assignments, [pod], DIALECTS[dialect], now=NOW)
    return {key: value for key, value in plan.annotations.items() if key != ANNOTATION}


@pytest.mark.parametrize(("dialect", "annotations"), [("aliyun.com", ALIYUN), ("enflame.com", ENFLAME)])
def test_a_card_that_is_open_to_several_classes_is_as_large_as_its_memory(
    dialect: str, annotations: dict[str, str]
) -> None:
    held = assigned(a={"main": [19, 20, 21, 22]})
    said = repaired_in_mixed(dialect, bound(dialect, annotations), held)
    assert said.keys() == {*DIALECTS[dialect].codec.assignment_keys}


@pytest.mark.parametrize(
    ("dialect", "index", "beside", "number"),
    [
        ("aliyun.com", "ALIYUN_COM_GPU_MEM_IDX", "gpushare.io/slice", 16),
        ("enflame.com", "enflame.com/gcu-device-id", "gpushare.io/card", 18),
        ("volcano.sh", "volcano.sh/gpu-index", "volcano.sh/gpu-number", 18),
    ],
)
def test_what_a_pod_has_beside_memory_does_not_hide_which_card_the_memory_is_of(
    dialect: str, index: str, beside: str, number: int
) -> None:
    memory = container("main", 4, DIALECTS[dialect].memory_resource)
    item = pod_json("a", memory, container("side", 1, beside))
    item["metadata"]["annotations"] = {index: "0"}
    held = assigned(a={"main": [19, 20, 21, 22], "side": [number]})
    assert repaired_in_mixed(dialect, read_pod(item, ANNOTATION, RESOURCES), held)[index] == "1"


def test_annotations_of_other_dialects_are_left_alone() -> None:
    pod = bound("volcano.sh", {**VOLCANO, "volcano.sh/gpu-assigned": "true", **ALIYUN})
    assert repaired("volcano.sh", pod) == {}
    assert repaired("gpushare.io", replace(pod, annotations=ALIYUN)) == {}


MIXED = lay_out([card(0), card(1)], parse_node_unit("1Gi, 1/2 card, 1 card"), reserved=0)
"""Card 1 has memory in 19 to 34 and slices in 35 and 36."""


def repaired_mixed(dialect: str, pod: Pod, held: AssignedDevices) -> dict[str, str]:
    plan = plan_repairs(replace(node_assignments(held), layout=MIXED), [pod], DIALECTS[dialect], now=NOW)
    return {key: value for repair in plan for key, value in repair.annotations.items() if key != ANNOTATION}


@pytest.mark.parametrize(("dialect", "annotations"), [("aliyun.com", ALIYUN), ("enflame.com", ENFLAME)])
def test_in_mode_mixed_a_card_has_as_many_units_as_it_has_memory(
    dialect: str, annotations: dict[str, str]
) -> None:
    set_anew = repaired_mixed(dialect, bound(dialect, annotations), assigned(a={"main": [19, 20, 21, 22]}))
    assert "19" not in set_anew.values()


def test_the_index_of_a_pod_of_two_classes_follows_its_memory() -> None:
    names = DIALECTS["aliyun.com"].memory_resource, DIALECTS["aliyun.com"].slice_resource
    asked = container("main", 4, names[0]), container("side", 1, names[1])
    item = pod_json("a", *asked)
    item["metadata"]["annotations"] = ALIYUN
    held = assigned(a={"main": [0, 1, 2, 3], "side": [35]})
    set_anew = repaired_mixed("aliyun.com", read_pod(item, ANNOTATION, RESOURCES), held)
    assert set_anew["ALIYUN_COM_GPU_MEM_IDX"] == "0"
    assert set_anew["ALIYUN_COM_GPU_MEM_ASSIGNED"] == "true"
