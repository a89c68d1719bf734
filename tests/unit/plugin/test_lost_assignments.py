"""What a kubelet has lost: known by what was listed before, or recorded, no longer than it is true."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.samples.plugin import (
    annotation,
    assigned,
    by_name,
    container,
    layout,
    name_of,
    node_assignments,
    pod,
    share_node,
    stored,
)

from gpushare_core.allocation_annotation import sum_shares
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.held.allocations import every_allocation, lost_units
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.kubelet_restart import PodsListedSinceRestart
from gpushare_plugin.decide.held.lost_assignments import (
    has_known_cards,
    lost_assignments,
    recorded_holdings,
    running_beside,
    shares_to_get_again,
    still_remembered,
)
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.decide.offer.unit_change import held_units
from gpushare_plugin.decide.report.annotation_repairs import plan_repairs

NOW = datetime(2026, 11, 22, tzinfo=UTC)
POD = pod("a", container(units=4))
STATIC = replace(POD, static_uid="hash")
PAIR = pod("a", container(units=4), container("side", 2))
NOT_SHOWN, SHOWN = (
    PodsListedSinceRestart(),
    PodsListedSinceRestart(names=frozenset({name_of("a")}), complete=True),
)
CARD = {"index": 0, "uuid": "GPU-0", "memory": "16Gi", "units": 16}


def known(one: Pod, **containers: int) -> PodAllocation:
    shares = {name: {"GPU-0": units} for name, units in containers.items()}
    return PodAllocation(one, shares, {"GPU-0": sum(containers.values())})


def left(
    before: PodAllocation, listed: AssignedDevices, *pods: Pod, shown: PodsListedSinceRestart = SHOWN
) -> dict[str, int]:
    """Container -> units that are remembered still."""
    remembered = still_remembered({before.pod.name: before}, listed, shown, by_name(*pods))
    found = remembered.get(before.pod.name)
    return {name: sum(shares.values()) for name, shares in found.containers.items()} if found else {}


LISTED = assigned(a={"main": []})


def test_what_is_listed_without_its_units_is_lost() -> None:
    assert left(known(POD, main=4), LISTED, POD) == {"main": 4}
    assert lost_assignments({POD.name: known(POD, main=4)}, LISTED) == {POD.name: known(POD, main=4)}


def test_what_was_lost_is_so_still_while_the_next_kubelet_has_not_shown_its_pod() -> None:
    unshown = replace(LISTED, unshown=frozenset({POD.name}))
    assert lost_assignments({POD.name: known(POD, main=4)}, unshown) == {POD.name: known(POD, main=4)}


def test_what_a_pod_had_that_is_not_shown_yet_counts_once() -> None:
    unshown = replace(assigned(**{POD.name.name: {"main": [0, 1, 2, 3]}}), unshown=frozenset({POD.name}))
    assert not lost_assignments({POD.name: known(POD, main=4)}, unshown)


def test_what_one_container_lacks_of_a_pod_that_is_not_shown_yet_is_counted_without_its_mirror() -> None:
    """The other one was started anew before the next kubelet was started."""
    before = {PAIR.name: known(PAIR, main=4, side=2)}
    unshown = replace(assigned(a={"main": [0, 1, 2, 3], "side": []}), unshown=frozenset({PAIR.name}))
    found = lost_assignments(before, unshown)
    assert found == {PAIR.name: known(PAIR, side=2)}
    assignments = node_assignments(replace(unshown, lost=found))
    assert [allocation.cards for allocation in every_allocation(assignments, {})] == [{"GPU-0": 6}]
    assert lost_units(assignments, {}) == {"GPU-0": 2}


def test_what_is_listed_with_them_is_not() -> None:
    assert left(known(POD, main=4), assigned(a={"main": [0, 1, 2, 3]}), POD) == {}


def test_a_container_that_was_started_anew_is_not() -> None:
    listed = assigned(a={"main": [], "side": [4, 5]})
    before = known(PAIR, main=4, side=2)
    assert left(before, listed, PAIR) == {"main": 4}
    remembered = still_remembered({PAIR.name: before}, listed, SHOWN, by_name(PAIR))
    assert remembered[PAIR.name].cards == {"GPU-0": 4}


def test_what_the_checkpoint_has_is_not() -> None:
    one = replace(LISTED.pods[POD.name], uid="uid-a")
    listed = replace(LISTED, pods={POD.name: one}, stored=stored(layout(), a={"main": [0, 1, 2, 3]}))
    assert left(known(POD, main=4), listed, POD) == {}


def test_an_init_container_alone_is_not() -> None:
    staged = pod("a", container(), inits=(container("first", 4),))
    assert left(known(staged, first=4), LISTED, staged) == {}


@pytest.mark.parametrize(
    ("shown", "pods", "expected"),
    [
        pytest.param(NOT_SHOWN, [POD], {"main": 4}, id="not shown yet"),
        pytest.param(NOT_SHOWN, [], {"main": 4}, id="nor known to the API server"),
        pytest.param(SHOWN, [POD], {}, id="shown before"),
        pytest.param(PodsListedSinceRestart(complete=True), [], {}, id="ended while the kubelet was away"),
    ],
)
def test_a_pod_that_is_not_listed(
    shown: PodsListedSinceRestart, pods: list[Pod], expected: dict[str, int]
) -> None:
    assert left(known(POD, main=4), AssignedDevices(), *pods, shown=shown) == expected


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param(STATIC, replace(STATIC, uid="other mirror"), {"main": 4}, id="a mirror made anew"),
        pytest.param(STATIC, replace(STATIC, static_uid="other"), {}, id="a file written anew"),
        pytest.param(POD, replace(POD, uid="other", started=True), {}, id="a pod of its name"),
        pytest.param(POD, replace(POD, uid="other"), {"main": 4}, id="one that its kubelet may not know yet"),
        pytest.param(POD, replace(pod("a", container()), uid="other"), {}, id="one that asks for nothing"),
        pytest.param(replace(POD, uid="hash"), STATIC, {"main": 4}, id="a mirror made at last"),
    ],
)
def test_which_pod_it_is(before: Pod, now: Pod, expected: dict[str, int]) -> None:
    assert left(known(before, main=4), LISTED, now) == expected


def test_it_counts_once_whether_the_api_server_knows_the_pod_or_not() -> None:
    listed = replace(LISTED, lost={POD.name: known(STATIC, main=4)})
    mirror = replace(STATIC, uid="other mirror")
    (counted,) = every_allocation(node_assignments(listed), by_name(mirror))
    assert (counted.pod, counted.cards, counted.orphaned) == (mirror, {"GPU-0": 4}, False)
    (counted,) = every_allocation(node_assignments(listed), {})
    assert (counted.pod.uid, counted.cards, counted.orphaned) == ("hash", {"GPU-0": 4}, True)
    assert lost_units(node_assignments(listed), by_name(mirror)) == {"GPU-0": 4}


def test_it_is_nobodys_but_the_next_pods_of_its_name_while_that_may_not_be_known_to_the_kubelet() -> None:
    listed = replace(LISTED, lost={POD.name: known(replace(POD, uid="former"), main=4)})
    assignments = node_assignments(listed)
    (counted,) = every_allocation(assignments, by_name(POD))
    assert (counted.pod.uid, counted.cards, counted.orphaned) == ("former", {"GPU-0": 4}, True)
    assert lost_units(assignments, by_name(POD)) == {"GPU-0": 4}
    assert lost_units(assignments, by_name(POD), candidates={POD.uid: {}}) == {"GPU-0": 0}


def test_what_one_container_lacks_stays_also_while_another_one_has_restarted_under_the_next_pods_name() -> (
    None
):
    former = replace(PAIR, uid="former")
    one = replace(assigned(a={"main": [], "side": [4, 5]}).pods[PAIR.name], uid="former")
    listed = AssignedDevices(pods={PAIR.name: one})
    assert left(known(former, main=4, side=2), listed, PAIR) == {"main": 4}
    assert (
        left(known(former, main=4, side=2), replace(listed, pods={PAIR.name: one.with_uid("uid-a")}), PAIR)
        == {}
    )


def test_it_counts_beside_what_the_kubelet_has_of_other_containers() -> None:
    listed = replace(assigned(a={"main": [], "side": [4, 5]}), lost={PAIR.name: known(PAIR, main=4)})
    (counted,) = every_allocation(node_assignments(listed), by_name(PAIR))
    assert counted.containers == {"main": {"GPU-0": 4}, "side": {"GPU-0": 2}}
    assert counted.cards == {"GPU-0": 6}


APART = PodAllocation(PAIR, {"main": {"GPU-1": 4}, "side": {"GPU-0": 2}}, {"GPU-1": 4, "GPU-0": 2})
"""A card was sick when one of its containers restarted."""


def test_what_another_container_of_the_pod_runs_with_is_not_there_for_the_one_that_is_meant() -> None:
    listed = replace(assigned(a={"main": [], "side": []}), lost={PAIR.name: APART})
    beside = running_beside(PAIR, listed, 2)
    assert beside == {"main": {"GPU-1": 4}}
    found = lost_units(node_assignments(listed), by_name(PAIR), candidates={PAIR.uid: sum_shares(beside)})
    assert found == {"GPU-1": 4, "GPU-0": 0}


@pytest.mark.parametrize(
    ("units", "beside"),
    [
        pytest.param(4, {"side": {"GPU-0": 2}}, id="one that runs"),
        pytest.param(3, {}, id="the init container that lends"),
        pytest.param(5, {"main": {"GPU-0": 4}, "side": {"GPU-0": 2}}, id="nobody that is known"),
    ],
)
def test_who_runs_beside_the_container_that_asks(units: int, beside: dict[str, dict[str, int]]) -> None:
    one = replace(PAIR, request=INITIATED.request, running=True)
    listed = replace(assigned(a={"main": [], "side": []}), lost={one.name: known(one, main=4, side=2)})
    assert running_beside(one, listed, units) == beside


@pytest.mark.parametrize(
    ("resource", "own", "beside"),
    [
        pytest.param(GPUSHARE.memory_resource, {"GPU-0": 2}, {"side": {"GPU-1": 2}}, id="memory"),
        pytest.param(GPUSHARE.slice_resource, {"GPU-1": 2}, {"main": {"GPU-0": 2}}, id="slices"),
    ],
)
def test_who_asks_for_as_many_of_another_resource_is_another_container(
    resource: str, own: dict[str, int], beside: dict[str, dict[str, int]]
) -> None:
    both = replace(pod("a", container(units=2), container("side", 2, GPUSHARE.slice_resource)), running=True)
    had = {"main": {"GPU-0": 2}, "side": {"GPU-1": 2}}
    lost = {both.name: PodAllocation(both, had, {"GPU-0": 2, "GPU-1": 2})}
    listed = replace(assigned(a={"main": [], "side": []}), lost=lost)
    assert has_known_cards(both, listed, 2, resource=resource)
    assert shares_to_get_again(both, listed, 2, resource=resource) == own
    assert running_beside(both, listed, 2, resource=resource) == beside
    assert not has_known_cards(both, listed, 2)


INITIATED = pod("a", container(units=4), container("side", 2), inits=(container("first", 3),))
STAGED = pod("a", container(units=2), inits=(container("first", 3),))
LENT = PodAllocation(STAGED, {"first": {"GPU-0": 3}, "main": {"GPU-0": 2}}, {"GPU-0": 3})


@pytest.mark.parametrize(
    ("numbers", "cards", "beyond"),
    [
        pytest.param([], {"GPU-0": 3}, {"GPU-0": 3}, id="not asked for yet"),
        pytest.param([0, 1, 2], {"GPU-0": 3}, {"GPU-0": 0}, id="the card that it had"),
        pytest.param([16, 17, 18], {"GPU-0": 2, "GPU-1": 3}, {"GPU-0": 2}, id="another card"),
    ],
)
@pytest.mark.parametrize("known", [True, False], ids=["known", "an orphan"])
def test_an_init_container_that_a_kubelet_admits_once_more_lends_its_units_to_those_that_run(
    numbers: list[int], cards: dict[str, int], beyond: dict[str, int], *, known: bool
) -> None:
    """The kubelet takes those for running alone that run: of an init container it asks again."""
    one = replace(LISTED.pods[STAGED.name], uid=STAGED.uid)
    listed = replace(
        LISTED, pods={STAGED.name: one}, stored=stored(layout(), a={"first": numbers} if numbers else {})
    )
    pods = by_name(STAGED) if known else {}
    remembered = still_remembered({STAGED.name: LENT}, listed, SHOWN, by_name(STAGED))
    assignments = node_assignments(replace(listed, lost=lost_assignments(remembered, listed)))
    (counted,) = every_allocation(assignments, pods)
    assert counted.cards == cards
    assert lost_units(assignments, pods) == beyond


def test_units_do_not_change_their_size_under_it() -> None:
    listed = replace(LISTED, lost={POD.name: known(STATIC, main=4)})
    assert [held_unit.admitted for held_unit in held_units(by_name(STATIC), listed)] == [True]
    assert [held_unit.admitted for held_unit in held_units({}, listed)] == [True]


def status(*shares: tuple[str, str, int], lock: str = "") -> Json:
    """``shares``: UID, container, units of pod ``a``."""
    pods = [
        {"namespace": "default", "name": "a", "uid": uid, "container": name, "units": units}
        for uid, name, units in shares
    ]
    return {"cards": [{**CARD, "lock": lock, "pods": pods}]}


@pytest.mark.parametrize(
    ("uid", "pods", "expected"),
    [
        pytest.param("uid-a", [POD], {"GPU-0": 4}, id="a pod"),
        pytest.param("uid-a", [STATIC], {"GPU-0": 4}, id="a static pod"),
        pytest.param("hash", [STATIC], {"GPU-0": 4}, id="one that had no mirror"),
        pytest.param("former mirror", [STATIC], {"GPU-0": 4}, id="one whose mirror was made anew"),
        pytest.param("other", [POD], None, id="a former pod of its name"),
        pytest.param("hash", [], {"GPU-0": 4}, id="one that has no mirror"),
    ],
)
def test_what_the_record_tells(uid: str, pods: list[Pod], expected: dict[str, int] | None) -> None:
    recorded = share_node(status=status((uid, "main", 4))).status
    found = recorded_holdings(recorded, by_name(*pods)).get(POD.name)
    assert (found.cards if found else None) == expected


def test_the_record_tells_of_classes_and_of_what_init_containers_lend() -> None:
    staged = pod("a", container(units=2), inits=(container("first", 4),))
    recorded = share_node(status=status(("uid-a", "first", 4), ("uid-a", "main", 2), lock="Memory")).status
    remembered = recorded_holdings(recorded, by_name(staged))
    found = still_remembered(remembered, LISTED, SHOWN, by_name(staged))[staged.name]
    assert found.cards == {"GPU-0": 2}
    assert found.classes == {"GPU-0": ResourceClass.MEMORY}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(container(units=4), {"main": 4}, id="as much"),
        pytest.param(container(), {}, id="nothing"),
        pytest.param(container(units=2), {}, id="less"),
        pytest.param(container("other", 4), {}, id="in another container"),
    ],
)
@pytest.mark.parametrize("early", [False, True], ids=["the mirror is there", "it comes later"])
def test_the_record_of_a_static_pod_whose_mirror_is_another_one(
    asked: Json, expected: dict[str, int], *, early: bool
) -> None:
    now = replace(pod("a", asked), uid="mirror-2", static_uid="hash-2")
    recorded = share_node(status=status(("mirror-1", "main", 4))).status
    found = recorded_holdings(recorded, {} if early else by_name(now))[now.name]
    assert left(found, LISTED) == {"main": 4}
    assert left(found, LISTED, now) == expected
    assert left(found, LISTED, replace(now, static_uid="")) == {}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"main": [0, 1, 2, 3]}, 6, id="a container that was started anew"),
        pytest.param({"first": [*range(8)], "main": [0, 1, 2, 3]}, 8, id="and an init container that lends"),
    ],
)
def test_the_record_counts_for_the_pod_of_the_checkpoint_while_a_static_pod_has_no_mirror(
    given: dict[str, list[int]], expected: int
) -> None:
    """The mirror was deleted, and the plugin restarted, when the kubelet had forgotten one container."""
    recorded = share_node(status=status(("former mirror", "main", 4), ("former mirror", "side", 2))).status
    one = replace(assigned(a={"main": given["main"], "side": []}).pods[PAIR.name], uid="uid-a")
    listed = AssignedDevices({PAIR.name: one}, stored(layout(), a=given))
    remembered = still_remembered(recorded_holdings(recorded, {}), listed, SHOWN, {})
    assignments = node_assignments(replace(listed, lost=lost_assignments(remembered, listed)))
    (counted,) = every_allocation(assignments, {})
    assert (counted.pod.uid, counted.cards, counted.orphaned) == ("uid-a", {"GPU-0": expected}, True)
    assert counted.containers.keys() == given.keys() | {"side"}


def test_the_record_counts_units_that_were_lent_once_though_no_spec_was_read_yet() -> None:
    staged = pod("a", container(units=2), inits=(container("first", 4),))
    recorded = share_node(status=status(("uid-a", "first", 4), ("uid-a", "main", 2))).status
    remembered = recorded_holdings(recorded, by_name(replace(staged, asked=None, request=None)))
    found = still_remembered(remembered, LISTED, SHOWN, by_name(staged))[staged.name]
    assert found.cards == {"GPU-0": 2}


def test_it_counts_once_where_the_pod_does_not_ask_for_it_any_more() -> None:
    """Units of a dialect that the node has no more: what the pod asks for else is complete."""
    mine = pod("a", container(units=2), container("other"))
    listed = assigned(a={"main": [4, 5], "other": []})
    listed = replace(listed, lost={mine.name: known(mine, other=4)})
    (counted,) = every_allocation(node_assignments(listed), by_name(mine))
    assert counted.cards == {"GPU-0": 6}
    assert len(plan_repairs(node_assignments(listed), [mine], GPUSHARE, now=NOW)) == 1


def running(one: Pod) -> Pod:
    return replace(one, running=True, started=True)


def test_what_was_listed_in_the_middle_of_an_admission_is_not_all() -> None:
    """The kubelet gave the other container its units a moment later, and lost both."""
    annotated = pod(
        "a",
        container(units=4),
        container("side", 2),
        annotation=annotation({"main": {"GPU-0": 4}, "side": {"GPU-0": 2}}),
    )
    listed = assigned(a={"main": [], "side": []})
    listed = replace(listed, lost={annotated.name: known(annotated, main=4)})
    assignments = node_assignments(listed)
    (counted,) = every_allocation(assignments, by_name(running(annotated)))
    assert counted.cards == {"GPU-0": 6}
    assert lost_units(assignments, by_name(running(annotated))) == {"GPU-0": 6}
    assert plan_repairs(assignments, [annotated], GPUSHARE, now=NOW) == []
