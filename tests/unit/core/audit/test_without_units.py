"""A pod that runs without what it asks for is named, and nobody else."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.samples.audit import MIXED_WORLD, NODE, World, memory_pod

from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.audit.differences import node_differences
from gpushare_core.audit.records import (
    ContainerKey,
    NodeRecords,
    PodKey,
    PodRecord,
    SeenCards,
    StoredContainer,
)
from gpushare_core.dialects.aliyun import ALIYUN
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest

BLIND = PodKey("default", "blind", "uid-blind")
MEMORY = World("Memory", (16,), (memory_pod("a", 0, 0, 4),)).records()


def asking(**units: int) -> PodRequest:
    return PodRequest(
        (ResourceRequest("gpushare.io/memory", ResourceClass.MEMORY, sum(units.values()), units),)
    )


def with_pod(records: NodeRecords = MEMORY, **changes: object) -> NodeRecords:
    """It was bound before its kubelet knew the resource: only the API server, and its process, tell of it."""
    pod = PodRecord(key=BLIND, node=NODE, kubelet_uid=BLIND.uid, phase="Running", request=asking(main=3))
    pod = replace(pod, **changes)  # type: ignore[arg-type]
    environments = {**(records.environments or {}), ContainerKey(BLIND, "main"): None}
    return replace(records, pods={**(records.pods or {}), BLIND.uid: pod}, environments=environments)


def found(records: NodeRecords) -> list[Difference]:
    return node_differences(records)


def test_a_pod_that_its_kubelet_started_without_units() -> None:
    (each,) = found(with_pod())
    assert (each.kind, each.pod, each.uid) == (DifferenceKind.WITHOUT_UNITS, "default/blind", BLIND.uid)
    assert each.container == "main"
    assert "asks for 3 of gpushare.io/memory, and the kubelet holds none" in each.sentence
    assert "delete the pod" in each.sentence
    assert not each.kind.at_once


def test_where_the_kubelet_is_not_read_annotation_and_status_tell() -> None:
    """So ``kubectl gpushare audit`` finds it from anywhere."""
    (each,) = found(replace(with_pod(), resources=None, checkpoint=None, environments=None))
    assert each.kind is DifferenceKind.WITHOUT_UNITS
    assert "neither the pod's annotation nor the GPUShareNode has any" in each.sentence


def test_a_class_that_the_node_does_not_offer() -> None:
    request = PodRequest((ResourceRequest("gpushare.io/slice", ResourceClass.SLICE, 1, {"main": 1}),))
    (each,) = found(with_pod(request=request))
    assert "1 of gpushare.io/slice" in each.sentence


def test_a_container_that_waits_for_its_next_start() -> None:
    """The plugin sees no processes, and all auditors are to say the same."""
    assert [difference.kind for difference in found(replace(with_pod(), environments={}))][
        -1
    ] is DifferenceKind.WITHOUT_UNITS


def test_one_of_two_containers() -> None:
    records = World("Memory", (16,), (memory_pod("a", 0, 0, 4),)).records()
    pod = replace((records.pods or {})["uid-a"], request=asking(main=4, side=2))
    key = ContainerKey(pod.key, "side")
    records = replace(records, pods={"uid-a": pod}, environments={**(records.environments or {}), key: None})
    assert [(difference.kind, difference.container) for difference in found(records)] == [
        (DifferenceKind.WITHOUT_UNITS, "side")
    ]


def test_an_annotation_that_a_pod_does_not_ask_for_is_no_book() -> None:
    forged = (MEMORY.pods or {})["uid-a"].annotations
    kinds = {difference.kind for difference in found(with_pod(annotations=forged))}
    assert kinds == {DifferenceKind.WITHOUT_UNITS}


OF_ALIYUN = PodRequest((ResourceRequest(ALIYUN.memory_resource, ResourceClass.MEMORY, 3, {"main": 3}),))
OF_INIT = replace(asking(main=3), init_containers=frozenset({"main"}))


NOT_NAMED: list[tuple[str, Callable[[], NodeRecords]]] = [
    ("it is being admitted", lambda: with_pod(phase="Pending")),
    ("it has succeeded", lambda: with_pod(phase="Succeeded")),
    ("it has failed", lambda: with_pod(phase="Failed")),
    ("it is being deleted", lambda: with_pod(deleting=True)),
    ("its spec was not read", lambda: with_pod(request=None)),
    ("it asks for nothing", lambda: with_pod(request=PodRequest())),
    ("another plugin's affair", lambda: with_pod(request=OF_ALIYUN)),
    ("only an init container asked", lambda: with_pod(request=OF_INIT)),
    (
        "the node's dialect is not known yet",
        lambda: replace(with_pod(), share_node=replace(MEMORY.share_node, dialect="")),  # type: ignore[type-var]
    ),
    ("there is no GPUShareNode", lambda: replace(with_pod(), share_node=None)),
    ("pods were not read", lambda: replace(with_pod(), pods=None)),
]


@pytest.mark.parametrize("records", [pytest.param(records, id=name) for name, records in NOT_NAMED])
def test_who_is_not_named(records: Callable[[], NodeRecords]) -> None:
    assert DifferenceKind.WITHOUT_UNITS not in {difference.kind for difference in found(records())}


@pytest.mark.parametrize("book", ["annotation", "status", "environment"])
def test_where_a_book_has_something_others_say_what_is_wrong(book: str) -> None:
    """One difference, not two, for one pod."""
    records = World("Memory", (16,), (memory_pod("a", 0, 0, 4),)).records()
    pod = (records.pods or {})["uid-a"]
    blind = pod if book == "annotation" else replace(pod, annotations={})
    share_node = records.share_node
    assert share_node
    if book != "status":
        (card,) = share_node.cards
        share_node = replace(share_node, cards=(replace(card, allocated=0, holders=()),), units_allocated=0)
    key = ContainerKey(pod.key, "main")
    seen = SeenCards(cards=("GPU-0",), units=4) if book == "environment" else None
    records = replace(
        records,
        share_node=share_node,
        pods={"uid-a": blind},
        resources=[],
        checkpoint={},
        environments={key: seen},
        ledger=None,
    )
    kinds = {difference.kind for difference in found(records)}
    assert kinds
    assert DifferenceKind.WITHOUT_UNITS not in kinds


def test_a_kubelet_that_was_restarted_and_lists_nobody_yet() -> None:
    """Its checkpoint has what it held before, under the UID of a static pod's file."""
    records = with_pod(kubelet_uid="uid-of-file")
    key = ContainerKey(PodKey("", "", "uid-of-file"), "main")
    records = replace(
        records, resources=[], checkpoint={**(records.checkpoint or {}), key: StoredContainer()}
    )
    assert DifferenceKind.WITHOUT_UNITS not in {difference.kind for difference in found(records)}


def test_in_mode_mixed() -> None:
    assert DifferenceKind.WITHOUT_UNITS in {
        difference.kind for difference in found(with_pod(MIXED_WORLD.records()))
    }
