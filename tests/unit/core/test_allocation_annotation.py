"""What is written to a pod is what is read from it, and nothing else is taken for it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.allocation_annotation import (
    Allocation,
    MalformedAllocationError,
    decode_allocation,
    encode_allocation,
    sum_shares,
)
from gpushare_core.placement.requests import ResourceClass

SHARES = st.dictionaries(st.text(max_size=8), st.integers(0, 2**31), max_size=3)
ALLOCATIONS = st.builds(
    Allocation,
    node=st.text(max_size=8),
    uid=st.text(max_size=8),
    at=st.just("2026-11-21T10:00:00Z"),
    unit=st.sampled_from(["1Gi", "256Mi", ""]),
    containers=st.dictionaries(st.text(max_size=8), SHARES, max_size=4),
    cards=SHARES,
    resource=st.sampled_from(ResourceClass),
    cpu=st.just("500m"),
    memory=st.just("1Gi"),
)


def allocation(**changes: object) -> Allocation:
    given_ = {
        "node": "gpu-1",
        "uid": "u",
        "at": "",
        "unit": "1Gi",
        "containers": {"main": {"GPU-0": 4}},
        **changes,
    }
    return Allocation(**given_)  # type: ignore[arg-type]


def text(**changes: object) -> str:
    whole = {"node": "n", "uid": "u", "at": "", "unit": "1Gi", "containers": {"main": {"GPU-0": 4}}}
    return json.dumps({**whole, **changes}, separators=(",", ":"))


@given(ALLOCATIONS)
def test_what_is_written_is_read_again(written: Allocation) -> None:
    assert decode_allocation(encode_allocation(written), uid=written.uid) == written


def test_an_annotation_from_before_there_were_classes_is_of_memory() -> None:
    assert decode_allocation(text(), uid="u").resource is ResourceClass.MEMORY


def test_it_is_written_compactly_in_a_fixed_order() -> None:
    assert encode_allocation(
        allocation(at="2026-11-21T10:00:00Z", cards={"GPU-0": 4}, cpu="2", memory="8Gi")
    ) == (
        '{"node":"gpu-1","uid":"u","at":"2026-11-21T10:00:00Z","unit":"1Gi","containers":{"main":{"GPU-0":4}},'
        '"resource":"memory","cards":{"GPU-0":4},"cpu":"2","memory":"8Gi"}'
    )


@pytest.mark.parametrize(
    "annotation",
    [
        pytest.param("", id="empty"),
        pytest.param("null", id="null"),
        pytest.param("GPU-0", id="not JSON"),
        pytest.param("[]", id="not an object"),
        pytest.param("{}", id="nothing in it"),
        pytest.param('{"node":"n"}', id="no containers"),
        pytest.param(text(containers={"main": {"GPU-0": "4"}}), id="units as text"),
        pytest.param(text(containers={"main": {"GPU-0": 4.5}}), id="half units"),
        pytest.param(text(containers={"main": {"GPU-0": True}}), id="true for units"),
        pytest.param(text(containers={"main": {"GPU-0": -4}}), id="negative units"),
        pytest.param(text(cards={"GPU-0": -4}), id="negative units of a card"),
        pytest.param(text(containers={"main": ["GPU-0"]}), id="a list of cards"),
        pytest.param(text(node=None), id="no node"),
        pytest.param(text(uid=None), id="no UID"),
        pytest.param(text().replace('"uid":"u",', ""), id="not even a place for the UID"),
        pytest.param(" " + text(), id="a space before it"),
        pytest.param(text().replace('"uid":"u",', "")[:-1] + ',"uid":"u"}', id="the UID at the end"),
        pytest.param('{"later":' + "[" * 100_000, id="nested without end"),
        pytest.param("\ud800", id="half a character"),
        pytest.param(text() + "x", id="something after it"),
        pytest.param(text()[:-1] + ',"node":"other"}', id="two nodes"),
        pytest.param(text()[:-1] + ',"nod\\u0065":"other"}', id="two nodes, one of them disguised"),
        pytest.param(text(uid="other")[:-1] + ',"uid":"u"}', id="two UIDs"),
    ],
)
def test_what_none_of_ours_wrote_is_refused(annotation: str) -> None:
    with pytest.raises(MalformedAllocationError, match="not an allocation"):
        decode_allocation(annotation, uid="u")


@given(st.text())
def test_any_text_is_read_or_refused(annotation: str) -> None:
    with pytest.raises(MalformedAllocationError):
        decode_allocation(annotation, uid="u")


def test_fields_of_a_newer_version_are_passed_over() -> None:
    assert decode_allocation(text(slices=2), uid="u").node == "n"


def test_another_pod_s_is_none_of_this_one() -> None:
    with pytest.raises(MalformedAllocationError, match="the allocation of another pod, with UID u"):
        decode_allocation(text(), uid="v")


@pytest.mark.parametrize(
    ("containers", "cards", "held"),
    [
        pytest.param({"a": {"G": 4}, "b": {"G": 2}}, {}, {"G": 6}, id="containers add up"),
        pytest.param(
            {"init": {"G": 8}, "a": {"G": 6}}, {"G": 8}, {"G": 8}, id="an init container lends its units"
        ),
        pytest.param({"a": {"G": 1, "H": 2}}, {}, {"G": 1, "H": 2}, id="several cards"),
        pytest.param({}, {}, {}, id="nothing"),
    ],
)
def test_a_pod_holds(
    containers: dict[str, dict[str, int]], cards: dict[str, int], held: dict[str, int]
) -> None:
    assert allocation(containers=containers, cards=cards).held() == held


@given(st.dictionaries(st.text(max_size=3), SHARES, max_size=4))
def test_sums_lose_nothing(containers: dict[str, dict[str, int]]) -> None:
    every = sum(units for shares in containers.values() for units in shares.values())
    assert sum(sum_shares(containers).values()) == every
