"""What is remembered of pods is what would be decided of them anew."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.plugin import (
    NODE,
    annotation,
    assigned,
    by_name,
    card,
    container,
    layout,
    name_of,
    pod,
    sidecar,
    stored,
)

from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.held.allocations import (
    PodAllocations,
    allocations_of,
    every_allocation,
    with_orphans,
)
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices, NodeAssignments, PodSnapshot
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.decide.held.preferred_cards import PreferredCard
from gpushare_plugin.decide.memo import Memo
from gpushare_plugin.decide.report.annotation_repairs import RepairPlanner, plan_repairs

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
NAMES = ("a", "b", "c")
LAYOUTS = (layout(), layout(card(1), card(0)), layout(unit="512Mi"))


class Known(NamedTuple):
    """What is known of one name: as the API server, PodResources, the checkpoint and we have it."""

    asked: int
    """How its pod is made; 0: there is none."""
    annotated: int
    running: bool
    listed: tuple[int, ...] | None
    uid: int
    """Whose the listed units are."""
    kept: tuple[int, ...]
    """Units by the checkpoint."""
    init_kept: bool
    lost: bool
    preferred: bool


UNITS = st.sampled_from([(), (0, 1), (2, 3), (16, 17), (0, 1, 2, 3), (0, 16)])
KNOWN = st.builds(
    Known,
    asked=st.integers(0, 5),
    annotated=st.integers(0, 4),
    running=st.booleans(),
    listed=st.sampled_from([None, (), (0, 1), (2, 3), (16, 17), (0, 1, 2, 3), (0, 16)]),
    uid=st.integers(0, 2),
    kept=UNITS,
    init_kept=st.booleans(),
    lost=st.booleans(),
    preferred=st.booleans(),
)


class State(NamedTuple):
    """All that is known of a node, and what IDs mean there."""

    pods: tuple[Known, Known, Known]
    layout: int
    dialect: str


STATES = st.builds(
    State, st.tuples(KNOWN, KNOWN, KNOWN), st.integers(0, 2), st.sampled_from(["gpushare.io", "aliyun.com"])
)
FIELDS = [*(f"pods.{at}.{name}" for at in range(3) for name in Known._fields), "layout", "dialect"]


def with_field(state: State, field: str, other: State) -> State:
    """``state`` with one thing as it is in ``other``."""
    if "." not in field:
        return state._replace(**{field: getattr(other, field)})
    _, at, name = field.split(".")
    pods = [*state.pods]
    pods[int(at)] = pods[int(at)]._replace(**{name: getattr(other.pods[int(at)], name)})
    return state._replace(pods=(pods[0], pods[1], pods[2]))


def histories(first: State, last: State, order: Sequence[str]) -> list[State]:
    """From ``first`` to ``last`` and back, one thing after the other."""
    states = [first]
    for other in (last, first):
        for field in order:
            states.append(with_field(states[-1], field, other))
    return states


def annotated(known: Known) -> str | None:
    cards = {"GPU-0": 2} if known.annotated < 3 else {"GPU-1": 2}
    node = NODE if known.annotated != 2 else "another"
    return annotation({"main": cards}, node=node) if known.annotated else None


def pod_of(name: str, known: Known) -> Pod:
    inits = {3: (container("init", 2),), 4: (sidecar("side", 2),), 5: (container("init", 2),)}.get(
        known.asked, ()
    )
    units = {2: 4, 5: 0}.get(known.asked, 2)
    made = pod(name, container("main", units), inits=inits, annotation=annotated(known))
    return replace(made, running=known.running, started=known.running)


def allocation_of(name: str) -> PodAllocation:
    shares = {"main": {"GPU-0": 2}}
    classes = {"GPU-0": ResourceClass.MEMORY}
    return PodAllocation(pod(name, container("main", 2)), shares, {"GPU-0": 2}, classes=classes)


def listed_of(name: str, known: Known) -> PodAssignment:
    (found,) = assigned(**{name: {"main": [*(known.listed or ())]}}).pods.values()
    return found.with_uid(("", f"uid-{name}", "uid-a")[known.uid])


def assignments_of(state: State) -> NodeAssignments:
    meaning = LAYOUTS[state.layout]
    known = dict(zip(NAMES, state.pods, strict=True))
    listed = {
        name_of(name): listed_of(name, of_name)
        for name, of_name in known.items()
        if of_name.listed is not None
    }
    kept = {
        name: {"main": [*of_name.kept]} | ({"init": [0, 1]} if of_name.init_kept else {})
        for name, of_name in known.items()
        if len({meaning.card_of(number) for number in of_name.kept}) == 1
    }
    lost = {name_of(name): allocation_of(name) for name, of_name in known.items() if of_name.lost}
    devices = AssignedDevices(
        pods=listed,
        stored=stored(meaning, **kept),
        lost={name: of_name for name, of_name in lost.items() if name in listed},
    )
    card_of = {
        f"uid-{name}": PreferredCard(("GPU-1",)) for name, of_name in known.items() if of_name.preferred
    }
    return NodeAssignments(node=NODE, assigned=devices, layout=meaning, preferred=card_of)


def asked(
    memo: Memo[PodAllocations], pods: Sequence[Pod], assignments: NodeAssignments
) -> list[PodAllocations]:
    snapshots = {pod.name: assignments.of_pod(pod) for pod in pods}
    return memo.values(snapshots, lambda known: allocations_of(known.pod, assignments))


@given(STATES, STATES, st.permutations(FIELDS))
def test_what_is_remembered_is_what_would_be_decided_anew(
    first: State, last: State, order: list[str]
) -> None:
    planner, remembered = RepairPlanner(), Memo[PodAllocations]()
    for state in histories(first, last, order):
        assignments, dialect = assignments_of(state), DIALECTS[state.dialect]
        pods = by_name(*(pod_of(n, known) for n, known in zip(NAMES, state.pods, strict=True) if known.asked))
        planned = planner.plan(assignments, pods.values(), dialect, now=NOW)
        assert planned == plan_repairs(assignments, pods.values(), dialect, now=NOW)
        of_pods = asked(remembered, [*pods.values()], assignments)
        found = with_orphans(of_pods, assignments, pods)
        assert found == every_allocation(assignments, pods)


def test_a_pod_of_which_nothing_has_changed_is_not_decided_again() -> None:
    memo, decided = Memo[str](), list[str]()

    def decide(known: PodSnapshot) -> str:
        decided.append(known.pod.name.name)
        return known.pod.uid

    first, second = pod("a", container("main", 2)), pod("b", container("main", 2))
    for pods, assignments in (
        ([first], assignments_of_units(a=[0, 1])),
        ([first, second], assignments_of_units(a=[0, 1], b=[2, 3])),
        ([first, second], assignments_of_units(a=[0, 1], b=[3, 4])),
    ):
        memo.values({one.name: assignments.of_pod(one) for one in pods}, decide)
    assert decided == ["a", "b", "b"]


def test_a_card_that_was_preferred_since_counts_for_an_init_container() -> None:
    starting = pod("a", container("main"), inits=(container("init", 2),))
    before = assignments_of_units(a=[])
    after = replace(before, preferred={starting.uid: PreferredCard(("GPU-1",))})
    answers, found = Memo[PodAllocations](), list[PodAllocations]()
    for known in (before, after):
        found += asked(answers, [starting], known)
    assert found == [allocations_of(starting, before), allocations_of(starting, after)]
    assert found[0].admitted is None
    assert found[1].admitted is not None
    assert found[1].admitted.cards == {"GPU-1": 2}


@pytest.mark.parametrize(
    ("changes", "static_uid"),
    [
        pytest.param({"classes": {"GPU-0": ResourceClass.SLICE}}, "", id="another class"),
        pytest.param({"recorded": True}, "static", id="the mirror may be another one"),
    ],
)
def test_what_a_pod_had_counts_anew_with_all_that_is_known_of_it(
    changes: dict[str, Any], static_uid: str
) -> None:
    running = replace(pod("a", container("main", 2)), running=True, static_uid=static_uid)
    had = allocation_of("a")
    had = replace(had, pod=replace(had.pod, uid="another", static_uid="")) if static_uid else had
    answers = Memo[PodAllocations]()
    for known in (had, replace(had, **changes)):
        devices = replace(assigned(a={"main": []}), lost={name_of("a"): known})
        assignments = NodeAssignments(node=NODE, assigned=devices, layout=layout(), preferred={})
        (found,) = asked(answers, [running], assignments)
        assert found.lost == allocations_of(running, assignments).lost


def assignments_of_units(**pods: list[int]) -> NodeAssignments:
    devices = assigned(**{name: {"main": numbers} for name, numbers in pods.items()})
    return NodeAssignments(node=NODE, assigned=devices, layout=layout(), preferred={})
