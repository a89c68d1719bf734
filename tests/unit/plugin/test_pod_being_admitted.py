"""The pod that the kubelet admits is the listed one that lacks units."""

from array import array
from dataclasses import replace

import pytest
from tests.samples.plugin import (
    ANNOTATION,
    annotation,
    assigned,
    by_name,
    container,
    layout,
    name_of,
    pod,
    pod_json,
    sidecar,
    stored,
)

from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.admit.pod_being_admitted import (
    candidates_by_arrival,
    candidates_by_list,
    pods_to_read,
    pods_without_units,
)
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, Pods, read_metadata
from gpushare_plugin.decide.held.preferred_cards import PreferredCard, PreferredCards

EARLY, LATE = "2026-11-21T10:00:00Z", "2026-11-21T10:00:09Z"


def admitted_by_listing(
    listed: AssignedDevices, pods: Pods, preferred: PreferredCards, units: int
) -> Pod | None:
    """The likeliest."""
    return next(iter(candidates_by_list(listed, pods, preferred, units)), None)


def simple(name: str, units: int = 4, at: str = EARLY) -> Pod:
    return pod(name, container(units=units), annotation=annotation({"main": {"GPU-0": units}}, at=at))


PAIR = by_name(simple("a"), simple("b", at=LATE))
TWO = pod("two", container("x", 4), container("y", 2))
INIT = pod("init", container(units=2), inits=(container("first", 4),))
SIDE = pod("side", container(units=2), inits=(sidecar("proxy", 4),))


@pytest.mark.parametrize(
    ("listed", "pods", "units", "expected"),
    [
        pytest.param(assigned(b={"main": []}), PAIR, 4, "b", id="not the oldest promise, but the listed pod"),
        pytest.param(
            assigned(a={"main": [1, 2, 3, 4]}, b={"main": []}), PAIR, 4, "b", id="the one without units"
        ),
        pytest.param(assigned(a={"main": [1, 2, 3, 4]}), PAIR, 4, None, id="all have theirs"),
        pytest.param(assigned(a={"main": []}), PAIR, 3, None, id="another size"),
        pytest.param(assigned(x={"main": []}), PAIR, 4, None, id="nobody knows the pod"),
        pytest.param(
            assigned(two={"x": [0, 1, 2, 3], "y": []}), by_name(TWO), 2, "two", id="second container"
        ),
        pytest.param(assigned(two={"x": [], "y": []}), by_name(TWO), 2, "two", id="containers in any order"),
        pytest.param(
            assigned(init={"main": []}), by_name(INIT), 4, "init", id="init container, never listed"
        ),
        pytest.param(assigned(init={"main": []}), by_name(INIT), 2, "init", id="main after init"),
        pytest.param(
            assigned(init={"main": [0, 1]}), by_name(INIT), 4, None, id="init of a pod that has all"
        ),
        pytest.param(
            replace(assigned(init={"main": []}), stored=stored(layout(), init={"first": [0, 1, 2, 3]})),
            by_name(INIT),
            4,
            None,
            id="the checkpoint shows the init container's units",
        ),
        pytest.param(
            replace(assigned(init={"main": []}), stored=stored(layout(), init={"first": [0, 1, 2, 3]})),
            by_name(INIT),
            2,
            "init",
            id="main after an init container that the checkpoint shows",
        ),
        pytest.param(assigned(side={"proxy": [], "main": []}), by_name(SIDE), 4, "side", id="sidecar"),
        pytest.param(
            assigned(a={"main": []}, b={"main": []}), PAIR, 4, "a", id="two lack: by order of promise"
        ),
    ],
)
def test_a_listing_made_during_the_call_tells_the_pod(
    listed: AssignedDevices, pods: Pods, units: int, expected: str | None
) -> None:
    found = admitted_by_listing(listed, pods, {}, units)
    assert (found.name.name if found else None) == expected


def test_without_a_checkpoint_our_own_answers_tell_that_an_init_container_has_its_units() -> None:
    unseen = pod("a", container(), inits=(container("first", 4),))
    answered = {"uid-a": PreferredCard(("GPU-0",))}
    assert admitted_by_listing(assigned(a={"main": []}), by_name(unseen), {}, 4) == unseen
    assert admitted_by_listing(assigned(a={"main": []}), by_name(unseen), answered, 4) is None


@pytest.mark.parametrize(
    ("inits", "answers", "asked_again"),
    [
        pytest.param((container("x", 4), container("y", 4)), 1, [], id="the second reuses the first's"),
        pytest.param((container("x", 4), container("y", 2)), 1, [], id="the second needs less"),
        pytest.param((container("x", 2), container("y", 4)), 1, ["a"], id="the second needs more"),
        pytest.param((container("x", 2), container("y", 4)), 2, [], id="both were asked for"),
        pytest.param((container("x", 4), sidecar("p", 4), container("y", 4)), 2, [], id="a sidecar keeps"),
        pytest.param((container("x", 4), sidecar("p", 4), container("y", 4)), 1, ["a"], id="one is missing"),
    ],
)
def test_a_pod_is_served_when_the_kubelet_has_nothing_more_to_ask(
    inits: tuple[Json, ...], answers: int, asked_again: list[str]
) -> None:
    """It takes for an init container what an earlier one leaves, and asks us for the rest."""
    unseen = pod("a", container(), inits=inits)
    answered = {"uid-a": PreferredCard(("GPU-0",), containers=answers)}
    arrived = candidates_by_arrival(AssignedDevices(), by_name(unseen), answered, 4)
    assert [candidate.name.name for candidate in arrived] == asked_again
    if not any("restartPolicy" in init for init in inits):
        listed = candidates_by_list(assigned(a={"main": []}), by_name(unseen), answered, 4)
        assert [candidate.name.name for candidate in listed] == asked_again


def test_a_running_pod_comes_last_and_a_predecessor_is_another_pod() -> None:
    running = replace(simple("a"), running=True, started=True)
    pods = by_name(running, simple("b", at=LATE))
    assert admitted_by_listing(assigned(a={"main": []}, b={"main": []}), pods, {}, 4) == pods[name_of("b")]
    assert admitted_by_listing(assigned(a={"main": []}), pods, {}, 4) == running
    before = PodAssignment(name_of("b"), {"main": array("I", [0])}, uid="earlier")
    assert admitted_by_listing(AssignedDevices({before.name: before}), pods, {}, 4) is None


def test_a_listed_pod_without_units_is_looked_at_until_it_is_known_to_run() -> None:
    pods = by_name(
        simple("new"), simple("held"), replace(simple("runs"), running=True), pod("plain", container())
    )
    listed = assigned(new={"main": []}, held={"main": [1]}, runs={"main": []}, plain={"main": []})
    assert pods_without_units(listed, pods) == [name_of("new")]


def test_a_deleted_pod_comes_last() -> None:
    pods = by_name(pod("a", container(units=4), deleting=True), pod("b", container(units=4)))
    found = admitted_by_listing(assigned(a={"main": []}, b={"main": []}), pods, {}, 4)
    assert found == pods[name_of("b")]


def test_a_pod_of_which_podresources_tell_nothing_gives_way() -> None:
    unseen = pod("a", container(), inits=(container("first", 4),))
    pods = by_name(unseen, pod("b", container(units=4)))
    found = admitted_by_listing(assigned(a={"main": []}, b={"main": []}), pods, {}, 4)
    assert found == pods[name_of("b")]


def test_while_the_spec_is_not_read_the_annotation_tells_the_size() -> None:
    metadata = read_metadata(pod_json("a", annotation=annotation({"main": {"GPU-1": 3}})), ANNOTATION)
    assert admitted_by_listing(assigned(a={"main": []}), by_name(metadata), {}, 3) == metadata
    assert admitted_by_listing(assigned(a={"main": [1, 2, 3]}), by_name(metadata), {}, 3) is None


@pytest.mark.parametrize(
    ("held", "preferred", "expected"),
    [
        pytest.param(AssignedDevices(), {}, "a", id="the oldest promise"),
        pytest.param(assigned(a={"main": [0]}), {}, "b", id="the oldest that is not assigned anything"),
        pytest.param(
            AssignedDevices(), {"uid-a": PreferredCard(("GPU-0",))}, "b", id="the oldest that was not served"
        ),
        pytest.param(
            AssignedDevices(),
            {"uid-a": PreferredCard(("GPU-0",)), "uid-b": PreferredCard(("GPU-0",))},
            None,
            id="all were served",
        ),
    ],
)
def test_without_a_listing_pods_come_in_the_order_of_their_promises(
    held: AssignedDevices, preferred: PreferredCards, expected: str | None
) -> None:
    found = candidates_by_arrival(held, PAIR, preferred, 4)
    assert next((candidate.name.name for candidate in found), None) == expected


def test_without_a_listing_a_pod_that_was_begun_is_finished_first() -> None:
    nothing = AssignedDevices()
    pods = by_name(simple("a", 2), TWO)  # two was created before a was promised
    assert candidates_by_arrival(nothing, pods, {}, 2)[0] == pods[name_of("two")]
    pods = by_name(simple("a", 2, at="2026-11-21T08:00:00Z"), TWO)
    begun = {"uid-two": PreferredCard(("GPU-0",))}
    assert candidates_by_arrival(nothing, pods, begun, 2)[0] == pods[name_of("two")]


def test_pods_are_looked_up_when_their_spec_is_unknown_or_may_be_another_ones() -> None:
    pods = by_name(
        pod("known", container(units=4)),
        pod("old", container(units=4), deleting=True),
        read_metadata(pod_json("unread"), ANNOTATION),
    )
    holder = PodAssignment(name_of("holder"), {"main": array("I", [0])})
    listed = assigned(known={"main": []}, old={"main": []}, unread={"main": []}, new={"main": []})
    everything = AssignedDevices({**listed.pods, holder.name: holder})
    assert sorted(name.name for name in pods_to_read(everything, pods)) == ["new", "old", "unread"]
