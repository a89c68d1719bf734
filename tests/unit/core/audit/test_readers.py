"""Books out of JSON: what objects and answers say, whoever wrote them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.audit.differences import differences, node_differences
from gpushare_core.audit.readers import (
    cluster_records,
    read_environment,
    read_ledger,
    read_pod,
    read_share_node,
)
from gpushare_core.audit.records import ContainerKey, LedgerShare, PodKey, StatusHolder
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.json_object import Json

GIB = 2**30
A = PodKey("default", "a", "uid-a")
SHARE_NODE: Json = {
    "metadata": {"name": "gpu-1"},
    "spec": {"mode": "Mixed"},
    "status": {
        "memoryUnit": "1Gi, 1/2 card, 1 card",
        "dialect": "volcano.sh",
        "units": {"total": 2, "allocated": 1},
        "cards": [
            {
                "index": 3,
                "uuid": "GPU-3",
                "memory": "16Gi",
                "firstUnit": 19,
                "units": 2,
                "allocatedUnits": 1,
                "health": "Unhealthy",
                "lock": "Slices",
                "offers": {"memory": 16, "slice": 2, "card": 1},
                "pods": [
                    {"namespace": "default", "name": "a", "uid": "uid-a", "container": "main", "units": 1}
                ],
            }
        ],
    },
}


def test_a_share_node() -> None:
    book = read_share_node(SHARE_NODE)
    assert (book.name, book.dialect, book.units_total, book.units_allocated) == ("gpu-1", "volcano.sh", 2, 1)
    assert book.unit
    assert [part.resource for part in book.unit.parts] == [*ResourceClass]
    (card,) = book.cards
    assert (card.uuid, card.index, card.memory, card.first_unit) == ("GPU-3", 3, 16 * GIB, 19)
    assert (card.units, card.allocated, card.lock, card.healthy) == (2, 1, ResourceClass.SLICE, False)
    assert card.offers == {ResourceClass.MEMORY: 16, ResourceClass.SLICE: 2, ResourceClass.CARD: 1}
    assert card.holders == (StatusHolder(key=ContainerKey(A, "main"), units=1),)
    assert node_differences(cluster_records([SHARE_NODE], None).nodes["gpu-1"]) == []


def test_one_without_a_status_says_nothing() -> None:
    book = read_share_node({"metadata": {"name": "gpu-1"}})
    assert (book.unit, book.cards, book.problem) == (None, (), "")


@pytest.mark.parametrize(
    "status",
    [
        {"cards": [{"uuid": "GPU-1", "memory": "much", "units": 1}]},
        {"cards": [{"uuid": "GPU-1", "units": 1}]},
        {"cards": "none"},
        {"memoryUnit": "a card"},
        {"cards": [{"uuid": "GPU-1", "memory": "1Gi", "units": 1, "offers": {"time": 1}}]},
    ],
)
def test_one_that_no_plugin_wrote_says_why_it_cannot_be_read(status: Json) -> None:
    records = cluster_records([{"metadata": {"name": "gpu-1"}, "status": status}], [])
    (found,) = differences(records)
    assert found.kind == "Unreadable"
    assert found.node == "gpu-1"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=10,
)


@given(json_values, json_values)
def test_whatever_a_status_says_the_auditor_answers(status: Any, card: Any) -> None:
    for difference in (status, {"cards": [card]}, {"memoryUnit": status, "units": card}):
        assert (
            differences(cluster_records([{"metadata": {"name": "n"}, "status": difference}], [])) is not None
        )


def test_a_pod() -> None:
    limits = {"gpushare.io/memory": "4"}
    pod = read_pod(
        {
            "metadata": {
                "namespace": "default",
                "name": "a",
                "uid": "uid-a",
                "annotations": {"gpushare.io/allocation": "x", "volcano.sh/gpu-index": "0", "mine": "y"},
            },
            "spec": {
                "nodeName": "gpu-1",
                "containers": [{"name": "main", "resources": {"limits": limits}}],
                "initContainers": [{"name": "init"}],
            },
            "status": {"phase": "Succeeded"},
        }
    )
    assert (pod.key, pod.node, pod.kubelet_uid, pod.ended) == (A, "gpu-1", "uid-a", True)
    assert pod.request
    assert (pod.request.total, pod.request.init_containers) == (4, frozenset({"init"}))
    assert pod.annotations.keys() == {"gpushare.io/allocation", "volcano.sh/gpu-index"}


def test_a_static_pod_has_another_uid_with_the_kubelet() -> None:
    metadata = {"namespace": "default", "name": "a", "uid": "uid-a"}
    metadata["annotations"] = {"kubernetes.io/config.mirror": "of-the-file"}  # type: ignore[assignment]
    pod = read_pod({"metadata": metadata})
    assert (pod.key.uid, pod.kubelet_uid, pod.request) == ("uid-a", "of-the-file", None)


def test_an_environment() -> None:
    seen = read_environment(
        {
            "GPUSHARE_CARD": "GPU-0,GPU-1",
            "GPUSHARE_UNITS": "2",
            "GPUSHARE_UNIT": "1/2 card",
            "NVIDIA_VISIBLE_DEVICES": "all",
            "PATH": "/bin",
        }
    )
    assert seen
    assert (seen.cards, seen.units, seen.unit) == (("GPU-0", "GPU-1"), 2, "1/2 card")
    assert seen.others == {"NVIDIA_VISIBLE_DEVICES": "all"}
    assert read_environment({"PATH": "/bin"}) is None


@pytest.mark.parametrize("units", ["many", "", "-1", "9" * 5000])
def test_an_environment_that_its_author_wrote(units: str) -> None:
    broken = read_environment({"GPUSHARE_CARD": "GPU-0", "GPUSHARE_UNITS": units})
    assert broken
    assert broken.units is None


def test_a_ledger() -> None:
    card = {"index": 0, "uuid": "GPU-0", "units": 16, "allocated": 5, "reserved": 4, "lock": "memory"}
    pod = {"namespace": "default", "name": "a", "uid": "uid-a", "units": 4, "reserved": True}
    answer = {"nodes": [{"name": "gpu-1", "unit": "1Gi", "cards": [{**card, "pods": [pod]}]}]}
    (found,) = read_ledger(answer)["gpu-1"].cards
    assert (found.uuid, found.units, found.allocated, found.lock) == ("GPU-0", 16, 5, ResourceClass.MEMORY)
    assert found.shares == (LedgerShare(pod=A, units=4, reserved=True),)


@pytest.mark.parametrize(
    "answer", [{"nodes": [{"unit": "1Gi"}]}, {"nodes": 3}, {"nodes": [{"name": "n", "unit": "x"}]}]
)
def test_what_no_extender_answers_is_refused(answer: Json) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_ledger(answer)


def test_a_node_that_the_extender_does_not_know_has_an_empty_ledger() -> None:
    found = differences(cluster_records([SHARE_NODE], None, ledger={}))
    assert {difference.kind for difference in found} == {"CapacityDiffers"}
