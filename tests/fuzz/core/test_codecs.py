"""What core decodes of annotations, quantities, units, Leases and pods' requests."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies import annotations
from tests.fuzz.strategies.odd_json import encoded, mutated, odd_texts
from tests.samples.extender import pod_json

from gpushare_core.allocation_annotation import MalformedAllocationError, decode_allocation
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.legacy import MalformedAnnotationsError
from gpushare_core.dialects.table import DIALECTS, RESOURCES
from gpushare_core.kube.lease import Lease, LeaseObserver, held_lease
from gpushare_core.placement.quantity import MAX_AMOUNT, parse_memory, read_amount, sum_amounts
from gpushare_core.placement.requests import read_request
from gpushare_core.placement.units import parse_node_unit, parse_unit
from gpushare_core.process.clock import utc_now

MOST = 10**60
"""No amount that was read is larger: what follows from it is done in bounded time."""

quantities = (
    odd_texts
    | st.from_regex(
        r"[+-]?[0-9]{0,42}\.?[0-9]{0,42}([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{0,4})?", fullmatch=True
    )
    | st.sampled_from(
        ["1e99", "1E-99", "9" * 40 + "Ei", "0.1", "1.", ".5", "1Gi, 1/2 card, 1 card", "1/2 card"]
    )
)


@fuzzes(read_amount, parse_memory, sum_amounts)
@given(st.lists(quantities, max_size=3))
def test_a_quantity_is_a_bounded_amount_or_refused(texts: list[str]) -> None:
    for text in texts:
        assert 0 <= read_amount(text) <= MAX_AMOUNT
        with contextlib.suppress(ValueError):
            assert 0 <= parse_memory(text) <= MOST
    assert 0 <= read_amount(sum_amounts(texts)) <= MAX_AMOUNT


@fuzzes(parse_unit, parse_node_unit)
@given(quantities)
def test_a_unit_is_positive_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        unit = parse_node_unit(text)
        assert all(size > 0 for _, size in unit.meanings)
        assert parse_node_unit(unit.text).meanings == unit.meanings


@fuzzes(decode_allocation)
@given(annotations.ours, st.sampled_from(["uid-a", "", "uid-b"]))
@example(annotations.OURS.replace('"memory"', '"' + "9" * 5000 + '"'), "uid-a")
@example('{"node":"n","uid":"a","at":"","unit":"","containers":{"m":{"c":' + "9" * 5000 + "}}}", "a")
def test_an_allocation_is_whole_or_refused_with_a_reason(text: str, uid: str) -> None:
    try:
        allocation = decode_allocation(text, uid=uid)
    except MalformedAllocationError as error:
        assert str(error)
        assert len(str(error)) < 1000
    else:
        assert allocation.uid == uid
        assert all(0 <= units < 2**64 for units in allocation.held().values())


@fuzzes(*(dialect.codec.read_legacy for dialect in DIALECTS.values()))
@given(st.sampled_from(sorted(DIALECTS)), annotations.of_dialects, st.integers(0, 2**63))
def test_what_another_system_annotated_is_read_or_refused_with_a_reason(
    dialect: str, found: dict[str, str], total: int
) -> None:
    try:
        legacy = DIALECTS[dialect].codec.read_legacy(found)
    except MalformedAnnotationsError as error:
        assert 0 < len(str(error)) < 1000
    else:
        assert legacy is None or sum(legacy.shares(total).values()) in (0, total)


@fuzzes(
    *(dialect.codec.card_of for dialect in DIALECTS.values()),
    *(dialect.codec.stored_card for dialect in DIALECTS.values()),
    *(dialect.codec.unit_size for dialect in DIALECTS.values()),
)
@given(
    st.sampled_from(sorted(DIALECTS)),
    odd_texts,
    st.dictionaries(
        st.sampled_from(
            [
                "NVIDIA_VISIBLE_DEVICES",
                "VOLCANO_GPU_ALLOCATED",
                "ALIYUN_COM_GPU_MEM_IDX",
                "ALIYUN_COM_GPU_MEM_DEV",
            ]
        ),
        odd_texts | st.sampled_from(["0", "9" * 18, "9" * 5000]),
    ),
    st.lists(odd_texts | st.sampled_from(["/dev/gcu0", "/dev/gcu" + "9" * 5000])),
    st.integers(0, 2**20),
)
def test_what_another_plugin_answered_tells_a_card_or_nothing(
    dialect: str, device: str, variables: dict[str, str], nodes: list[str], devices: int
) -> None:
    codec = DIALECTS[dialect].codec
    codec.card_of(device)
    codec.stored_card(variables, nodes)
    assert codec.unit_size(variables, devices) >= 0


@fuzzes(read_request)
@given(
    st.lists(quantities | st.integers(), min_size=4, max_size=4),
    st.sampled_from(["Always", "Never", None, ""]),
)
def test_a_pod_asks_for_bounded_whole_amounts(amounts: list[Any], policy: str | None) -> None:
    def container(name: str, amount: Any) -> dict[str, Any]:
        limits = {"gpushare.io/memory": amount, "gpushare.io/card": amounts[0], "cpu": amount}
        return {"name": name, "resources": {"limits": limits, "requests": None}, "restartPolicy": policy}

    spec = {
        "initContainers": [container("i", amounts[1])],
        "containers": [container("m", amount) for amount in amounts],
    }
    request = read_request(spec, RESOURCES)
    assert all(0 < resource.total < 10**140 for resource in request.resources)


LEASE = {
    "metadata": {"name": "l", "resourceVersion": "5"},
    "spec": {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 3,
        "acquireTime": "2026-11-21T10:00:00Z",
    },
}


@fuzzes(Lease.state, LeaseObserver.observe)
@given(encoded(mutated(LEASE)))
@example(
    b'{"metadata":{"resourceVersion":"1"},"spec":{"leaseDurationSeconds":'
    + b"9" * 400
    + b',"holderIdentity":"x"}}'
)
@example(b'{"metadata":{"resourceVersion":"1"},"spec":{"leaseTransitions":' + b"9" * 400 + b"}}")
def test_a_lease_that_somebody_else_wrote_is_followed_or_refused(content: bytes) -> None:
    try:
        state = msgspec.json.decode(content, type=Lease).state()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return
    observer = LeaseObserver("me", 15)
    observer.observe(state, now=1.0)
    assert observer.seconds_left(now=2.0) >= 0
    msgspec.json.encode(held_lease(state, name="l", identity="me", seconds=15, now=utc_now()))


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda shape: shape.name)
def test_every_dialect_reads_what_a_pod_without_annotations_has(dialect: Dialect) -> None:
    assert dialect.codec.read_legacy({}) is None
    assert pod_json()["metadata"]["name"] == "a"
