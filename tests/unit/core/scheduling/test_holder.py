"""The units that a pod holds by its metadata."""

import json

import pytest
from tests.samples.extender import ANNOTATION, GI, annotation, pod_json

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.scheduling.objects.holder import CardUnits, Holder, PodUpdate, read_pod, unix_seconds


def read(**annotations: str) -> PodUpdate:
    raw = json.dumps(pod_json("a", node="n1", annotations=annotations)).encode()
    return read_pod(raw)


def test_an_annotated_pod_holds_what_its_annotation_says() -> None:
    assert read(**{ANNOTATION: annotation(c0=4, c1=2)}).holder == Holder(
        uid="uid-a",
        namespace="default",
        name="a",
        node="n1",
        cards=(CardUnits("n1-0", 4), CardUnits("n1-1", 2)),
        unit_meaning=(ResourceClass.MEMORY, GI),
    )


def test_the_annotation_names_the_node_whatever_else_the_pod_says() -> None:
    held = read(**{ANNOTATION: annotation(node="n7", c0=4)}).holder
    assert held is not None
    assert held.node == "n7"


def test_the_pod_as_a_whole_may_hold_less_than_its_containers_together() -> None:
    containers = {"i": {"G": 8}, "m": {"G": 6}}
    lent = Allocation(node="n1", uid="uid-a", at="", unit="1Gi", containers=containers, cards={"G": 8})
    held = read(**{ANNOTATION: encode_allocation(lent)}).holder
    assert held is not None
    assert held.cards == (CardUnits("G", 8),)


def test_a_pod_without_our_annotation_holds_nothing() -> None:
    assert read(other="x") == PodUpdate("uid-a")


def test_no_annotations_at_all() -> None:
    raw = b'{"metadata":{"uid":"u","annotations":null}}'
    assert read_pod(raw) == PodUpdate("u")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("GPU-0", id="not JSON"),
        pytest.param(annotation(c0=-4), id="negative"),
        pytest.param(annotation("other", c0=4), id="a copy of another pod's"),
        pytest.param('{"x":' + "[" * 50_000, id="nested without end"),
    ],
)
def test_an_unreadable_annotation_counts_as_nothing_and_names_the_pod(text: str) -> None:
    update = read(**{ANNOTATION: text})
    assert update.holder is None
    assert "default/a" in update.message


def test_an_unreadable_unit_leaves_the_units_as_they_are() -> None:
    held = read(**{ANNOTATION: annotation(unit="much", c0=4)}).holder
    assert held is not None
    assert (held.unit_meaning, held.units_of("n1-0")) == (None, 4)


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({ANNOTATION: annotation(c0=4)}, id="ours"),
        pytest.param(
            {"volcano.sh/gpu-index": "0", "volcano.sh/predicate-time": "1"}, id="of a replaced system"
        ),
    ],
)
def test_a_time_that_is_not_set_keeps_no_pod_from_being_counted(annotations: dict[str, str]) -> None:
    """One such pod would keep the whole list from being read, and all others with it."""
    written = pod_json(annotations=annotations)
    without = read_pod(json.dumps(written).encode())
    written["metadata"]["creationTimestamp"] = None
    assert read_pod(json.dumps(written).encode()) == without
    assert without.holder or without.legacy


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        pytest.param("1970-01-02T00:00:00Z", 86400, id="as the API server writes it"),
        pytest.param("", 0, id="nothing"),
        pytest.param("yesterday", 0, id="no time"),
        pytest.param("1970-01-02T00:00:00", 0, id="of no zone"),
        pytest.param("0001-01-01T00:00:00+23:59", 0, id="before the first year"),
        pytest.param("9999-12-31T23:59:59-23:59", 0, id="after the last year"),
    ],
)
def test_when_a_pod_was_created(written: str, seconds: int) -> None:
    assert unix_seconds(written) == seconds
