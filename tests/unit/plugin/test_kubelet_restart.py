"""A pod that a kubelet does not list has ended, or was not shown yet since the kubelet's start."""

from dataclasses import replace

import pytest
from tests.samples.plugin import assigned, by_name, container, layout, name_of, pod, share_node, stored

from gpushare_plugin.decide.admit.pod_being_admitted import candidates_by_list
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.kubelet_restart import (
    SETTLED_AFTER,
    PodsListedSinceRestart,
    unshown_holders,
    unshown_starters,
    with_unshown,
)
from gpushare_plugin.decide.held.pods import Pod, Pods

A, B = (pod(name, container(units=4)) for name in "ab")
BEFORE = assigned(a={"main": [0, 1, 2, 3]}, b={"main": [4, 5, 6, 7]})
NOBODY = AssignedDevices(kubelet="2")


def started(one: Pod) -> Pod:
    return replace(one, started=True)


def static(one: Pod) -> Pod:
    return replace(one, static_uid="hash")


def listed(*names: str, kubelet: str = "2") -> AssignedDevices:
    nothing: dict[str, list[int]] = {"main": []}
    return replace(assigned(**dict.fromkeys(names, nothing)), kubelet=kubelet)


def after(*answers: AssignedDevices, pods: Pods, seconds: float = 1.0) -> PodsListedSinceRestart:
    """By what a second kubelet answered, one answer in each of so many seconds."""
    shown = PodsListedSinceRestart(kubelet="1", complete=True, names=frozenset(BEFORE.pods))
    for at, answer in enumerate(answers):
        shown = shown.after(answer, BEFORE, pods, now=100.0 + at * seconds)
    return shown


@pytest.mark.parametrize(
    ("answers", "pods", "complete"),
    [
        pytest.param([NOBODY], [A], False, id="nobody yet"),
        pytest.param([NOBODY, listed("a")], [A], True, id="the only one"),
        pytest.param([NOBODY, listed("a")], [A, B], False, id="one of two"),
        pytest.param([listed("a"), listed("b")], [A, B], True, id="one after the other has come and gone"),
        pytest.param(
            [listed("a")], [A, pod("new", container(units=4))], True, id="new ones are not expected"
        ),
        pytest.param([listed("a")], [A, started(pod("c"))], False, id="of another plugin's time"),
        pytest.param([listed("a")], [static(A)], False, id="static pods come before the others"),
        pytest.param([NOBODY], [], False, id="an empty node"),
    ],
)
def test_a_list_is_complete_when_all_pods_have_been_in_it(
    answers: list[AssignedDevices],
    pods: list[Pod],
    complete: bool,  # noqa: FBT001
) -> None:
    assert after(*answers, pods=by_name(*pods)).complete is complete


@pytest.mark.parametrize(
    ("pods", "complete"),
    [
        pytest.param([], True, id="an empty node"),
        pytest.param([static(A)], True, id="static pods alone"),
        pytest.param([A, B], True, id="one of the API server's is never listed"),
        pytest.param([B], False, id="none of the API server's was ever listed"),
    ],
)
def test_what_never_comes_is_not_waited_for(pods: list[Pod], complete: bool) -> None:  # noqa: FBT001
    answers = [listed("a"), listed("a")]
    assert after(*answers, pods=by_name(*pods), seconds=SETTLED_AFTER).complete is complete


def test_a_kubelet_that_was_cut_off_for_long_has_not_heard_of_all_with_the_first() -> None:
    shown = after(NOBODY, listed("a"), pods=by_name(A, B), seconds=3 * SETTLED_AFTER)
    assert not shown.complete
    assert shown.after(listed("a"), BEFORE, by_name(A, B), now=100.0 + 4 * SETTLED_AFTER).complete


def test_nothing_is_settled_while_the_api_servers_pods_are_not_known() -> None:
    shown = PodsListedSinceRestart().after(NOBODY, BEFORE, None, now=0.0)
    shown = shown.after(NOBODY, BEFORE, None, now=SETTLED_AFTER)
    assert not shown.after(NOBODY, BEFORE, {}, now=SETTLED_AFTER + 1).complete


def test_who_may_be_shown_has_what_he_had() -> None:
    pods = by_name(A)
    shown = after(NOBODY, pods=pods)
    known = with_unshown(NOBODY, BEFORE, shown, pods, stored={})
    assert known.pods == BEFORE.pods, "b was deleted by force: the kubelet has not heard of that"
    assert known.unshown == BEFORE.pods.keys()
    shown = after(NOBODY, listed("a"), pods=pods)
    known = with_unshown(listed("a"), BEFORE, shown, pods, stored={})
    assert known.pods == listed("a").pods
    assert known.unshown == frozenset()


def test_who_was_shown_and_is_not_any_more_has_nothing() -> None:
    pods = by_name(A, B)
    shown = after(listed("a"), NOBODY, pods=pods)
    assert with_unshown(NOBODY, BEFORE, shown, pods, stored={}).pods.keys() == {name_of("b")}


def test_a_pod_that_has_the_name_of_another_one_is_not_that() -> None:
    before = AssignedDevices(
        {name: replace(assignment, uid="earlier") for name, assignment in BEFORE.pods.items()}
    )
    shown = replace(after(NOBODY, pods={}), complete=True)
    assert with_unshown(NOBODY, before, shown, by_name(A, B), stored={}).pods == {}


def test_the_checkpoint_tells_of_those_alone_who_may_be_shown() -> None:
    entries = stored(layout(), a={"main": [0, 1]}, gone={"main": [2]})
    shown = PodsListedSinceRestart().after(NOBODY, AssignedDevices(), by_name(A), now=0.0)
    known = with_unshown(NOBODY, AssignedDevices(), shown, by_name(A), stored=entries)
    assert known.stored.keys() == {"uid-a"}
    assert known.pods == {}


def test_entries_stay_when_the_checkpoint_is_lost() -> None:
    before = replace(
        BEFORE,
        pods={name: replace(assignment, uid=f"uid-{name.name}") for name, assignment in BEFORE.pods.items()},
        stored=stored(layout(), a={"main": [0, 1, 2, 3]}),
    )
    shown = after(NOBODY, pods=by_name(A))
    assert with_unshown(NOBODY, before, shown, by_name(A), stored={}).stored == before.stored


@pytest.mark.parametrize("uids", [("", "uid-a"), ("uid-a", "")], ids=["found now", "known from before"])
def test_a_pod_that_only_says_to_be_the_mirror_of_a_listed_one_keeps_nothing_of_it(
    uids: tuple[str, str],
) -> None:
    """What the kubelet has lost of that one would look as if it had it still."""
    forged, units = replace(pod("forged"), static_uid="uid-a"), stored(layout(), a={"main": [0, 1, 2, 3]})
    a, b = (
        devices.pods[name_of("a")].with_uid(uid)
        for devices, uid in zip((BEFORE, listed("a")), uids, strict=True)
    )
    pods, before = by_name(A, B, forged), AssignedDevices({name_of("a"): a}, stored=units)
    answer = replace(listed("a"), pods={name_of("a"): b})
    shown = after(NOBODY, answer, pods=pods)
    assert shown.may_still_be_listed(forged.name, known=False)
    assert with_unshown(answer, before, shown, pods, stored={}).stored == {}


def test_the_kubelet_admits_nobody_whom_it_does_not_list() -> None:
    known = replace(listed("a", "b"), unshown=frozenset({name_of("b")}))
    assert candidates_by_list(known, by_name(A, B), {}, 4) == [A]


def status_of(uid: str) -> dict[str, object]:
    share = {"namespace": "default", "name": "a", "uid": uid, "container": "main", "units": 4}
    card = {"index": 0, "uuid": "GPU-0", "model": "", "memory": "16Gi", "units": 16, "allocatedUnits": 4}
    return {"memoryUnit": "1Gi", "cards": [{**card, "pods": [share]}]}


def test_holders_of_the_record_are_waited_for_until_the_list_is_complete() -> None:
    status, nothing = share_node(status=status_of("uid-a")).status, AssignedDevices()
    unshown, name = PodsListedSinceRestart(kubelet="1"), {name_of("a")}
    assert unshown_holders(status, nothing, unshown, by_name(A)) == name
    assert unshown_holders(status, nothing, unshown, {}) == name
    assert unshown_holders(status, BEFORE, unshown, by_name(A)) == frozenset()
    complete = replace(unshown, complete=True)
    assert unshown_holders(status, nothing, complete, by_name(A)) == name
    assert unshown_holders(status, nothing, complete, {}) == frozenset()
    other = share_node(status=status_of("earlier")).status
    assert unshown_holders(other, nothing, complete, by_name(A)) == frozenset()
    assert (
        unshown_holders(status, nothing, replace(complete, names=frozenset(name)), by_name(A)) == frozenset()
    )


def test_pods_that_started_and_ask_may_hold_units() -> None:
    pods = by_name(started(A), B, started(pod("c", container())))
    assert unshown_starters(AssignedDevices(), PodsListedSinceRestart(), pods) == [name_of("a")]
    assert unshown_starters(BEFORE, PodsListedSinceRestart(), pods) == []
