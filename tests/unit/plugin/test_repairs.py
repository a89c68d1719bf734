"""The kubelet's books are right; annotations that say otherwise are rewritten."""

from datetime import UTC, datetime

import pytest
from tests.samples.plugin import (
    NODE,
    annotation,
    books,
    by_name,
    container,
    layout,
    name_of,
    pod,
    sidecar,
)

from gpushare_core.books.allocation import Allocation, decode_allocation
from gpushare_plugin.decide.admission import Grant, Grants
from gpushare_plugin.decide.holdings import Books, PodUnits, holding, pod_units, promised_units
from gpushare_plugin.decide.pods import Pod
from gpushare_plugin.decide.repairs import Truth, plan_repairs

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
FOUR, FOUR_ON_1 = [0, 1, 2, 3], [16, 17, 18, 19]


def asking(*, told: str | None = None) -> Pod:
    return pod("a", container(units=4), annotation=told)


def repaired(held: Books, *pods: Pod, grants: Grants | None = None) -> dict[str, Allocation]:
    truth = Truth(node=NODE, books=held, layout=layout(), grants=grants or {})
    return {
        repair.name.name: decode_allocation(repair.allocation)
        for repair in plan_repairs(truth, by_name(*pods), now=NOW)
    }


@pytest.mark.parametrize(
    ("told", "held"),
    [
        pytest.param(annotation(), books(a={"main": FOUR}), id="it says the same"),
        pytest.param(
            annotation(unit="1024Mi", cards={"GPU-0": 4}), books(a={"main": FOUR}), id="in other words"
        ),
        pytest.param(annotation({"main": {"GPU-1": 4}}), books(a={"main": []}), id="not admitted yet"),
        pytest.param(annotation({"main": {"GPU-1": 4}}), Books(), id="not seen by the kubelet yet"),
        pytest.param(None, Books(), id="no annotation and no units"),
    ],
)
def test_nothing_is_done_where_there_is_nothing_to_do(told: str | None, held: Books) -> None:
    assert repaired(held, asking(told=told)) == {}


@pytest.mark.parametrize(
    "told",
    [
        pytest.param(annotation({"main": {"GPU-0": 4}}), id="another card"),
        pytest.param(annotation({"main": {"GPU-1": 3}}), id="another amount"),
        pytest.param(annotation({"main": {"GPU-1": 4}}, cards={"GPU-1": 9}), id="another total"),
        pytest.param(annotation({"other": {"GPU-1": 4}}), id="another container"),
        pytest.param(annotation({"main": {"GPU-1": 4}}, node="gpu-2"), id="another node"),
        pytest.param(annotation({"main": {"GPU-1": 4}}, unit="512Mi"), id="another unit"),
        pytest.param(annotation({"main": {"GPU-1": 4}}, unit="huh"), id="no unit"),
        pytest.param("not ours", id="not an allocation"),
        pytest.param(None, id="none"),
    ],
)
def test_the_annotation_is_made_to_say_what_the_books_say(told: str | None) -> None:
    made = repaired(books(a={"main": FOUR_ON_1}), asking(told=told))["a"]
    assert (made.node, made.unit, made.containers, made.cards) == (
        NODE,
        "1Gi",
        {"main": {"GPU-1": 4}},
        {"GPU-1": 4},
    )


def test_two_swapped_pods_are_both_repaired_and_keep_what_else_was_written() -> None:
    first = pod("first", container(units=4), annotation=annotation({"main": {"GPU-0": 4}}))
    second = pod("second", container(units=4), annotation=annotation({"main": {"GPU-1": 4}}))
    made = repaired(books(first={"main": FOUR_ON_1}, second={"main": FOUR}), first, second)
    assert {name: each.cards for name, each in made.items()} == {
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
        pytest.param({"cpu": "lots", "memory": "many"}, ("0", "0"), id="unreadable"),
        pytest.param({}, ("0", "0"), id="none"),
    ],
)
def test_a_pod_bound_by_somebody_else_gets_its_annotation_afterwards(
    requests: dict[str, str], expected: tuple[str, str]
) -> None:
    resources = {"limits": {"gpushare.io/memory": "2"}, "requests": requests}
    bare = pod("a", *({"name": name, "resources": resources} for name in ("x", "y")))
    made = repaired(books(a={"x": [0, 1], "y": [2, 3]}), bare)["a"]
    assert (made.at, made.cards) == ("2026-11-21T12:00:00Z", {"GPU-0": 4})
    assert (made.cpu, made.memory) == expected


INIT = pod("a", container(units=2), inits=(container("first", 4),))
SIDE = pod("a", container(units=2), inits=(sidecar("proxy", 1),))
ONLY_INIT = pod("a", container(), inits=(container("first", 4),))
ONLY_INIT_TOLD = pod(
    "a", container(), inits=(container("first", 4),), annotation=annotation({"first": {"GPU-1": 4}})
)
GRANT = {"uid-a": Grant("GPU-0")}


@pytest.mark.parametrize(
    ("one", "held", "grants", "expected"),
    [
        pytest.param(
            INIT,
            books(a={"main": [16, 17]}),
            {},
            PodUnits({"first": {"GPU-1": 4}, "main": {"GPU-1": 2}}, {"GPU-1": 4}),
            id="an init container lends two units and keeps two",
        ),
        pytest.param(
            SIDE,
            books(a={"proxy": [0], "main": [1, 2]}),
            {},
            PodUnits({"proxy": {"GPU-0": 1}, "main": {"GPU-0": 2}}, {"GPU-0": 3}),
            id="a sidecar adds up",
        ),
        pytest.param(
            ONLY_INIT,
            books(a={"main": []}),
            GRANT,
            PodUnits({"first": {"GPU-0": 4}}, {"GPU-0": 4}),
            id="granted",
        ),
        pytest.param(
            ONLY_INIT_TOLD,
            books(a={"main": []}),
            {},
            PodUnits({"first": {"GPU-1": 4}}, {"GPU-1": 4}),
            id="annotated",
        ),
        pytest.param(ONLY_INIT, books(a={"main": []}), {}, None, id="init only, nobody knows where"),
        pytest.param(INIT, books(a={"main": []}), {}, None, id="main is not admitted yet"),
        pytest.param(pod("a", container()), books(a={"main": []}), {}, None, id="asks for nothing"),
        pytest.param(
            pod("a", container("x", 1), container("y", 1)),
            books(a={"x": [0], "y": [16]}),
            {},
            PodUnits({"x": {"GPU-0": 1}, "y": {"GPU-1": 1}}, {"GPU-0": 1, "GPU-1": 1}),
            id="torn apart: told as it is",
        ),
    ],
)
def test_what_a_pod_holds_includes_what_podresources_do_not_show(
    one: Pod, held: Books, grants: Grants, expected: PodUnits | None
) -> None:
    grant = grants.get(one.uid)
    assert pod_units(one, held.pods[name_of("a")], layout(), grant.card if grant else None) == expected


def test_promises_are_what_was_annotated_and_not_admitted_yet() -> None:
    pods = [
        pod("a", container(units=4), annotation=annotation()),
        pod("b", container(units=4), annotation=annotation()),
        pod("c", container(units=2), annotation=annotation({"main": {"GPU-1": 2}})),
        pod("d", container(units=2)),
    ]
    assert promised_units(pods, books(a={"main": FOUR})) == {"GPU-0": 4, "GPU-1": 2}


def test_units_that_are_not_of_ours_are_counted_and_left_out() -> None:
    held = holding(name_of("a"), {"main": ["AAB", "GPU-0-_-3"]})
    assert (list(held.containers["main"]), held.foreign) == ([1], 1)
