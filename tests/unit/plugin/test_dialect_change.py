"""Other names take effect when no pod holds units by the former ones."""

from array import array

import pytest
from tests.samples.plugin import ANNOTATION, annotation, by_name, container, name_of, pod_json, share_node

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, read_pod
from gpushare_plugin.decide.offer.dialect_change import dialect_in_force, recorded_dialect
from gpushare_plugin.decide.units.foreign_units import ForeignUnits

OURS, ALIYUN, VOLCANO = DIALECTS["gpushare.io"], DIALECTS["aliyun.com"], DIALECTS["volcano.sh"]


def holding(*names: str) -> AssignedDevices:
    """One pod for each name, with a unit of ours."""
    pods = [
        PodAssignment(
            name_of(f"p{at}"), {"main": array("I", [at])}, f"uid-p{at}", names_of={"main": frozenset([name])}
        )
        for at, name in enumerate(names)
    ]
    return AssignedDevices({pod.name: pod for pod in pods})


def of_another_plugin(name: str) -> AssignedDevices:
    units = ForeignUnits(name, {"GPU-0-_-": array("I", [0])}, "0")
    assignment = PodAssignment(name_of("old"), {"main": array("I")}, "uid-old", foreign={"main": (units,)})
    return AssignedDevices({assignment.name: assignment})


def stored(name: str) -> AssignedDevices:
    """By the checkpoint alone."""
    entry = CheckpointEntry(uid="uid-a", container="main", numbers=array("I", [0]), name=name)
    return AssignedDevices(stored={"uid-a": {"main": entry}})


def promised(name: str) -> Pod:
    item = pod_json("a", container(units=4, resource=name), annotation=annotation())
    return read_pod(item, ANNOTATION, RESOURCES)


@pytest.mark.parametrize(
    ("desired", "served", "held", "expected"),
    [
        pytest.param(ALIYUN, None, holding(), (ALIYUN, ()), id="a first start"),
        pytest.param(ALIYUN, OURS, holding(), (ALIYUN, ()), id="nobody holds anything"),
        pytest.param(
            ALIYUN,
            OURS,
            holding("gpushare.io/memory"),
            (OURS, ("default/p0",)),
            id="a pod does",
        ),
        pytest.param(ALIYUN, OURS, holding("gpushare.io/slice"), (ALIYUN, ()), id="by a name of both"),
        pytest.param(
            ALIYUN,
            OURS,
            holding("gpushare.io/slice", "gpushare.io/memory"),
            (OURS, ("default/p1",)),
            id="one of two",
        ),
        pytest.param(
            OURS,
            None,
            holding("aliyun.com/gpu-mem", "aliyun.com/gpu-mem"),
            (ALIYUN, ("default/p0", "default/p1")),
            id="nothing is recorded, the kubelet knows",
        ),
        pytest.param(
            OURS,
            None,
            holding("aliyun.com/gpu-mem", "gpushare.io/memory"),
            (OURS, ()),
            id="as many by the names that are asked for",
        ),
        pytest.param(
            OURS,
            ALIYUN,
            stored("aliyun.com/gpu-mem"),
            (ALIYUN, ("the pod with the UID uid-a",)),
            id="checkpoint",
        ),
        pytest.param(
            OURS,
            None,
            of_another_plugin("aliyun.com/gpu-mem"),
            (OURS, ()),
            id="another plugin's units alone choose no names",
        ),
        pytest.param(
            OURS,
            ALIYUN,
            of_another_plugin("aliyun.com/gpu-mem"),
            (ALIYUN, ("default/old",)),
            id="and keep those that they go by",
        ),
        pytest.param(
            VOLCANO,
            ALIYUN,
            holding("aliyun.com/gpu-mem"),
            (ALIYUN, ("default/p0",)),
            id="two of others",
        ),
    ],
)
def test_the_dialect_in_force(
    desired: Dialect, served: Dialect | None, held: AssignedDevices, expected: tuple[Dialect, tuple[str, ...]]
) -> None:
    assert dialect_in_force(desired, served, {}, held) == expected


def test_a_pod_that_was_promised_units_counts_although_it_has_none_yet() -> None:
    """The kubelet will ask for them by the name that it asks by."""
    pods = by_name(promised("gpushare.io/memory"))
    assert dialect_in_force(ALIYUN, OURS, pods, AssignedDevices()) == (OURS, ("default/a",))
    pods = by_name(promised("aliyun.com/gpu-mem"))
    assert dialect_in_force(ALIYUN, OURS, pods, AssignedDevices()) == (ALIYUN, ())


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param({"memoryUnit": "1Gi"}, OURS, id="by an earlier version"),
        pytest.param({"memoryUnit": "1Gi", "dialect": "volcano.sh"}, VOLCANO, id="one of ours"),
        pytest.param({"memoryUnit": "1Gi", "dialect": "later.example"}, None, id="by a later version"),
    ],
)
def test_what_was_recorded(status: dict[str, str], expected: Dialect | None) -> None:
    assert recorded_dialect(share_node(status=status).status) is expected
