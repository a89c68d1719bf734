"""What a pod has follows from its units, also where PodResources do not show them."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.samples.plugin import (
    annotation,
    assigned,
    by_name,
    card,
    container,
    layout,
    name_of,
    node_assignments,
    pod,
    sidecar,
    stored,
)

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import CardPart
from gpushare_plugin.decide.admit.unadmitted_pods import units_bound_not_admitted
from gpushare_plugin.decide.held.allocations import (
    every_allocation,
    lost_allocations,
    lost_units,
    pod_allocation,
)
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pod_assignment import ListedDevices, PodAssignment
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.decide.held.preferred_cards import PreferredCard, PreferredCards
from gpushare_plugin.decide.report.annotation_repairs import plan_repairs
from gpushare_plugin.decide.units.layout import lay_out

SLICE = GPUSHARE.slice_resource

Expected = tuple[dict[str, dict[str, int]], dict[str, int]] | None
"""Container -> card -> units, and card -> units."""

INIT = pod("a", container(units=2), inits=(container("first", 4),))
SIDE = pod("a", container(units=2), inits=(sidecar("proxy", 1),))
ONLY_INIT = pod("a", container(), inits=(container("first", 4),))
ONLY_INIT_ANNOTATED = pod(
    "a", container(), inits=(container("first", 4),), annotation=annotation({"first": {"GPU-1": 4}})
)
PREFERRED = {"uid-a": PreferredCard(("GPU-0",))}


@pytest.mark.parametrize(
    ("one", "held", "preferred", "expected"),
    [
        pytest.param(
            INIT,
            assigned(a={"main": [16, 17]}),
            {},
            ({"first": {"GPU-1": 4}, "main": {"GPU-1": 2}}, {"GPU-1": 4}),
            id="an init container lends two units and keeps two",
        ),
        pytest.param(
            SIDE,
            assigned(a={"proxy": [0], "main": [1, 2]}),
            {},
            ({"proxy": {"GPU-0": 1}, "main": {"GPU-0": 2}}, {"GPU-0": 3}),
            id="a sidecar adds up",
        ),
        pytest.param(
            ONLY_INIT,
            assigned(a={"main": []}),
            PREFERRED,
            ({"first": {"GPU-0": 4}}, {"GPU-0": 4}),
            id="preferred",
        ),
        pytest.param(
            ONLY_INIT_ANNOTATED,
            assigned(a={"main": []}),
            {},
            ({"first": {"GPU-1": 4}}, {"GPU-1": 4}),
            id="annotated",
        ),
        pytest.param(ONLY_INIT, assigned(a={"main": []}), {}, None, id="init only, nobody knows where"),
        pytest.param(INIT, assigned(a={"main": []}), {}, None, id="main is not admitted yet"),
        pytest.param(pod("a", container()), assigned(a={"main": []}), {}, None, id="asks for nothing"),
        pytest.param(
            pod("a", container("x", 1), container("y", 1)),
            assigned(a={"x": [0], "y": [16]}),
            {},
            ({"x": {"GPU-0": 1}, "y": {"GPU-1": 1}}, {"GPU-0": 1, "GPU-1": 1}),
            id="torn apart: shown as it is",
        ),
    ],
)
def test_what_a_pod_holds_includes_what_podresources_do_not_show(
    one: Pod, held: AssignedDevices, preferred: PreferredCards, expected: Expected
) -> None:
    allocation = pod_allocation(one, node_assignments(held, preferred))
    assert allocation == allocation_of(one, expected, ResourceClass.MEMORY)


def allocation_of(one: Pod, expected: Expected, resource: ResourceClass) -> PodAllocation | None:
    return PodAllocation(one, *expected, classes=dict.fromkeys(expected[1], resource)) if expected else None


HALVES = lay_out([card(0), card(1), card(2)], CardPart(ResourceClass.SLICE, 2), reserved=0)
"""GPU-0 has units 0 and 1, GPU-1 has 2 and 3, GPU-2 has 4 and 5."""
SLICED = pod("a", container("main", 1, SLICE), inits=(container("first", 2, SLICE),))


@pytest.mark.parametrize(
    ("held", "preferred", "expected"),
    [
        pytest.param(
            {"main": [2]},
            {"uid-a": PreferredCard(("GPU-2", "GPU-1"), 1)},
            ({"first": {"GPU-1": 1, "GPU-2": 1}, "main": {"GPU-1": 1}}, {"GPU-1": 1, "GPU-2": 1}),
            id="the card that is seen and the one that was preferred",
        ),
        pytest.param(
            {"main": [2]},
            {},
            ({"first": {"GPU-1": 1}, "main": {"GPU-1": 1}}, {"GPU-1": 1}),
            id="nobody knows the other card: what is seen counts",
        ),
        pytest.param({"main": []}, {}, None, id="not admitted yet"),
    ],
)
def test_of_slices_each_is_on_a_card_of_its_own(
    held: dict[str, list[int]], preferred: PreferredCards, expected: Expected
) -> None:
    assignments = replace(node_assignments(assigned(a=held), preferred), layout=HALVES)
    allocation = pod_allocation(SLICED, assignments)
    assert allocation == allocation_of(SLICED, expected, ResourceClass.SLICE)


BOTH = pod("a", container("main", 1, SLICE), container("other", 4))
"""No mode serves both. A kubelet that never heard of one of the two resources admits such a pod, for it takes
that for one that the cluster counts: ``removeMissingExtendedResources`` of its predicates."""


@pytest.mark.parametrize("in_checkpoint", [True, False])
def test_what_the_kubelet_gave_counts_whatever_the_pod_asks(*, in_checkpoint: bool) -> None:
    listed = assigned(a={"main": [2], "other": []})
    assignments = {name: replace(assignment, uid="uid-a") for name, assignment in listed.pods.items()}
    held = AssignedDevices(assignments, stored(HALVES, a={"main": [2]}) if in_checkpoint else {})
    allocation = pod_allocation(BOTH, replace(node_assignments(held), layout=HALVES))
    # By the checkpoint the class is known; the layout of one class does not say it.
    classes = {"GPU-1": ResourceClass.SLICE} if in_checkpoint else {}
    assert allocation == PodAllocation(BOTH, {"main": {"GPU-1": 1}}, {"GPU-1": 1}, classes=classes)
    nothing = replace(node_assignments(assigned(a={"main": [], "other": []})), layout=HALVES)
    assert pod_allocation(BOTH, nothing) is None


def test_promises_are_what_was_annotated_and_not_admitted_yet() -> None:
    pods = [
        pod("a", container(units=4), annotation=annotation()),
        pod("b", container(units=4), annotation=annotation()),
        pod("c", container(units=2), annotation=annotation({"main": {"GPU-1": 2}})),
        pod("d", container(units=2)),
        pod("copy-of-b", container(units=4), annotation=annotation(uid="uid-b")),
    ]
    assert units_bound_not_admitted(pods, assigned(a={"main": [0, 1, 2, 3]})) == {"GPU-0": 4, "GPU-1": 2}


def test_units_that_are_not_of_ours_are_left_out() -> None:
    assignment = PodAssignment.of_devices(
        name_of("a"), {"main": {GPUSHARE.memory_resource: ListedDevices(others=["AAB", "GPU-0-_-3"])}}
    )
    assert list(assignment.containers["main"]) == [1]


def test_a_running_pod_without_units_has_what_is_annotated() -> None:
    text = annotation({"main": {"GPU-1": 4}})
    running = replace(pod("a", container(units=4), annotation=text), running=True)
    listed = node_assignments(assigned(a={"main": []}))
    (lost,) = lost_allocations(listed, [running])
    assert (lost.containers, lost.cards) == ({"main": {"GPU-1": 4}}, {"GPU-1": 4})
    assert lost_units(listed, by_name(running)) == {"GPU-1": 4}
    assert units_bound_not_admitted([running], listed.assigned) == {}
    assert lost_allocations(node_assignments(assigned(a={"main": [0, 1, 2, 3]})), [running]) == []
    assert lost_allocations(listed, [replace(running, running=False)]) == []
    elsewhere = replace(running, annotation=annotation({"main": {"GPU-1": 4}}, node="gpu-2", uid="uid-a"))
    assert lost_allocations(listed, [elsewhere]) == []


def test_an_annotation_that_contradicts_itself_counts_by_its_containers() -> None:
    text = annotation({"main": {"GPU-1": 4}}, cards={"GPU-0": 4})
    running = replace(pod("a", container(units=4), annotation=text), running=True)
    assert lost_units(node_assignments(assigned(a={"main": []})), by_name(running)) == {"GPU-1": 4}


def test_units_that_podresources_never_show_are_not_lost() -> None:
    """Of ordinary init containers nothing is listed, and the kubelet keeps their units."""
    running = replace(ONLY_INIT_ANNOTATED, running=True)
    listed = node_assignments(assigned(a={"main": []}))
    assert lost_units(listed, by_name(running)) == {}
    assert lost_allocations(listed, [running]) == []
    assert units_bound_not_admitted([running], listed.assigned) == {"GPU-1": 4}


@pytest.mark.parametrize(
    ("running", "units"), [pytest.param(True, 2, id="it has ended"), pytest.param(False, 4, id="it may run")]
)
def test_an_init_container_that_the_checkpoint_lacks_counts_while_it_may_run(
    *, running: bool, units: int
) -> None:
    """A kubelet that has lost its checkpoint asks anew for the container that restarts, and for no other."""
    main = {"main": [16, 17]}
    listed = node_assignments(AssignedDevices(assigned(a=main).pods, stored(layout(), a=main)))
    held = pod_allocation(replace(INIT, running=running), listed)
    assert held is not None
    assert held.cards == {"GPU-1": units}


def test_units_of_a_container_are_lost_although_another_one_was_given_its_own_again() -> None:
    """A kubelet without checkpoint asks anew for a container that restarts, and for no other one."""
    text = annotation({"x": {"GPU-1": 4}, "y": {"GPU-1": 2}})
    running = replace(pod("a", container("x", 4), container("y", 2), annotation=text), running=True)
    listed = node_assignments(assigned(a={"x": [16, 17, 18, 19], "y": []}))
    (lost,) = lost_allocations(listed, [running])
    assert lost.cards == {"GPU-1": 6}
    assert lost_units(listed, by_name(running)) == {"GPU-1": 2}


CARD = GPUSHARE.card_resource


def test_a_container_that_was_never_promised_units_has_lost_none() -> None:
    """A node that offers memory alone admits a pod, bound past the scheduler, that asks for cards besides."""
    both = pod(
        "a", container("x", 4), container("y", 2, resource=CARD), annotation=annotation({"x": {"GPU-0": 4}})
    )
    running = replace(both, running=True)
    listed = node_assignments(assigned(a={"x": [0, 1, 2, 3], "y": []}))
    (counted,) = every_allocation(listed, {running.name: running})
    assert counted.cards == {"GPU-0": 4}
    assert lost_allocations(listed, [running]) == []


@pytest.mark.parametrize("in_checkpoint", [True, False])
def test_what_the_kubelet_shows_of_a_pod_counts_before_its_spec_was_read(*, in_checkpoint: bool) -> None:
    unread = Pod(name=name_of("a"), uid="uid-a")
    units = {"main": [16, 17, 18]}
    held = AssignedDevices(assigned(a=units).pods, stored(layout(), a=units) if in_checkpoint else {})
    listed = node_assignments(held)
    (counted,) = every_allocation(listed, {unread.name: unread})
    assert (counted.pod, counted.cards, counted.orphaned) == (unread, {"GPU-1": 3}, False)
    # What it asks for besides is not known: nothing is annotated yet.
    assert plan_repairs(listed, [unread], GPUSHARE, now=datetime(2026, 1, 1, tzinfo=UTC)) == []
    nothing = node_assignments(assigned(a={"main": []}))
    assert every_allocation(nothing, {unread.name: unread}) == []


def test_what_the_kubelet_shows_of_a_pod_counts_before_it_is_admitted_completely() -> None:
    """As when another container of it is being admitted, or has been lost and is annotated nowhere."""
    half = pod("a", container("x", 4), container("y", 2))
    listed = node_assignments(assigned(a={"x": [0, 1, 2, 3], "y": []}))
    for one in half, replace(half, running=True):
        (counted,) = every_allocation(listed, {one.name: one})
        assert (counted.cards, counted.orphaned) == ({"GPU-0": 4}, False)
        assert plan_repairs(listed, [one], GPUSHARE, now=datetime(2026, 1, 1, tzinfo=UTC)) == []


def test_a_pod_that_the_kubelet_has_half_lost_is_counted_once() -> None:
    """Of a pod whose request cannot be served here it is known by the units what it has, and what is gone."""
    text = annotation({"x": {"GPU-0": 4}, "y": {"GPU-1": 2}})
    both = pod("a", container("x", 4), container("y", 2), container("z", 1, resource=CARD), annotation=text)
    running = replace(both, running=True)
    listed = node_assignments(assigned(a={"x": [0, 1, 2, 3], "y": [], "z": []}))
    (counted,) = every_allocation(listed, {running.name: running})
    assert counted.cards == {"GPU-0": 4, "GPU-1": 2}
    # The annotation alone still tells of the units that are gone: it is not cut down to the others.
    assert plan_repairs(listed, [running], GPUSHARE, now=datetime(2026, 1, 1, tzinfo=UTC)) == []
