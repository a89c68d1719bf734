"""On which card foreign units lie: by what the container was told, what was known, or annotations."""

from array import array
from dataclasses import replace
from typing import NoReturn

import pytest
from tests.samples.plugin import ANNOTATION, annotation, by_name, container, name_of, pod_json

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.quantity import MIB
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry, StoredUnits, read_answer
from gpushare_plugin.decide.held.foreign_cards import locate
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, read_pod
from gpushare_plugin.decide.units.foreign_units import ForeignUnits, sort_ids

NAME = "aliyun.com/gpu-mem"
IDS = {
    NAME: ["GPU-9-_-0", "GPU-8-_-1"],
    "volcano.sh/gpu-memory": ["7-0", "6-1"],
    "enflame.com/gcu-memory": ["GCU-U53000090104-_-4", "GCU-U53000090105-_-4"],
}


@pytest.mark.parametrize(
    ("name", "variables", "device_nodes", "card", "size"),
    [
        pytest.param(
            NAME,
            {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_DEV": "16"},
            (),
            "1",
            1024 * MIB,
            id="aliyun, GiB",
        ),
        pytest.param(
            NAME,
            {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_DEV": "16276"},
            (),
            "1",
            MIB,
            id="aliyun, MiB",
        ),
        pytest.param(NAME, {"ALIYUN_COM_GPU_MEM_IDX": "-1"}, (), "-1", 0, id="aliyun, none"),
        pytest.param(NAME, {"ALIYUN_COM_GPU_MEM_DEV": "0"}, (), "", 0, id="nothing told"),
        pytest.param(
            "volcano.sh/gpu-memory",
            {"NVIDIA_VISIBLE_DEVICES": "1", "VOLCANO_GPU_ALLOCATED": "2048"},
            (),
            "1",
            1024 * MIB,
            id="volcano, with a factor",
        ),
        pytest.param("enflame.com/gcu-memory", {}, ("/dev/gcuctrl", "/dev/gcu3"), "3", 0, id="enflame"),
    ],
)
def test_what_the_container_was_told(
    name: str, variables: dict[str, str], device_nodes: tuple[str, ...], card: str, size: int
) -> None:
    own, foreign = sort_ids(name, IDS[name])
    entry = read_answer(StoredUnits("uid-a", "main", name, own, foreign), variables, device_nodes)
    assert [(units.card, units.size, units.count) for units in entry.foreign] == [(card, size, 2)]
    assert (entry.cards, list(entry.numbers)) == ((), [])


def units(card: str = "") -> ForeignUnits:
    return ForeignUnits(NAME, {"GPU-9-_-": array("I", [0, 1])}, card)


def listed(card: str = "") -> AssignedDevices:
    assignment = PodAssignment(name_of("a"), {"main": array("I")}, "uid-a", foreign={"main": (units(card),)})
    return AssignedDevices({assignment.name: assignment})


def told(card: str) -> AssignedDevices:
    entry = read_answer(
        StoredUnits("uid-a", "main", NAME, array("I"), (units(),)), {"ALIYUN_COM_GPU_MEM_IDX": card}
    )
    return AssignedDevices(listed().pods, {"uid-a": {"main": entry}})


def annotated(index: str | None = None, ours: str | None = None) -> Pod:
    text = annotation({"main": {ours: 2}}) if ours else None
    item = pod_json("a", container(units=2, resource=NAME), annotation=text)
    if index is not None:
        theirs = {"ALIYUN_COM_GPU_MEM_IDX": index, "ALIYUN_COM_GPU_MEM_POD": "2"}
        item["metadata"].setdefault("annotations", {}).update(theirs)
    return read_pod(item, ANNOTATION, RESOURCES)


@pytest.mark.parametrize(
    ("now", "before", "pod", "card"),
    [
        pytest.param(told("1"), listed("0"), annotated("2", "GPU-3"), "1", id="told"),
        pytest.param(listed(), listed("0"), annotated("2", "GPU-3"), "0", id="known before"),
        pytest.param(listed(), AssignedDevices(), annotated("2", "GPU-3"), "GPU-3", id="our annotation"),
        pytest.param(listed(), AssignedDevices(), annotated("2"), "2", id="theirs"),
        pytest.param(listed(), AssignedDevices(), annotated("huh"), "", id="one that makes no sense"),
        pytest.param(listed(), AssignedDevices(), annotated(), "", id="nobody tells"),
    ],
)
def test_the_card_of_foreign_units(
    now: AssignedDevices, before: AssignedDevices, pod: Pod, card: str
) -> None:
    located = locate(now, before, by_name(pod), {NAME})
    (found,) = located.pods[name_of("a")].foreign["main"]
    assert found.card == card
    assert located.foreign_names == {NAME}


@pytest.mark.parametrize("static", ["", "uid-of-the-file"], ids=["of a pod", "of a static pod"])
def test_who_says_to_be_the_mirror_of_another_pod_does_not_move_its_units(static: str) -> None:
    """Anybody may annotate that."""
    owner = replace(annotated("2"), static_uid=static)
    forged = replace(annotated("1"), name=name_of("z"), uid="uid-z", static_uid=owner.kubelet_uid)
    (entry,) = told("").stored["uid-a"].values()
    mute = replace(entry, foreign=(units(),))
    known = replace(listed().pods[name_of("a")], uid=owner.kubelet_uid)
    now = AssignedDevices({known.name: known}, {owner.kubelet_uid: {"main": mute}})
    located = locate(now, AssignedDevices(), by_name(owner, forged), {NAME})
    (found,) = located.pods[name_of("a")].foreign["main"]
    assert found.card == "2"


def test_those_of_a_pod_that_the_api_server_forgot_stay_on_their_card() -> None:
    located = locate(listed(), listed("1"), {}, {NAME})
    (found,) = located.pods[name_of("a")].foreign["main"]
    assert found.card == "1"


def test_those_of_other_resources_are_left_out() -> None:
    located = locate(told("1"), AssignedDevices(), by_name(annotated("1")), {"gpushare.io/memory"})
    assert not located.pods[name_of("a")].foreign
    assert not located.stored


def test_entries_of_listed_pods_are_not_read_for_foreign_units() -> None:
    """At each admission nearly all pods in the checkpoint are listed."""

    class Unread(dict[str, CheckpointEntry]):
        def values(self) -> NoReturn:
            raise AssertionError("read")

    listed = {name_of("a"): PodAssignment(name_of("a"), {}, uid="uid-a")}
    assert not any(AssignedDevices(listed, {"uid-a": Unread()}).foreign())
