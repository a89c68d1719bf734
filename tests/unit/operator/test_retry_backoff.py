"""What has no lasting effect is repeated ever more rarely."""

from dataclasses import replace
from datetime import timedelta

from tests.samples.operator import NOW

from gpushare_operator.actions import (
    Action,
    ApplyDaemonSet,
    ApplyShareNode,
    CapacityLeft,
    ClearCapacity,
    DeleteJob,
    LabelNode,
    SetCounts,
    SetFinalizers,
)
from gpushare_operator.retry_backoff import CONTESTED_FROM, RetryBackoff

APPLY = ApplyDaemonSet("a", {"spec": {"x": 1}})
CLEAR = ClearCapacity("gpu-2", "uid", ("gpushare.io/memory",), CapacityLeft.BY_KUBELET)


def attempts(action: Action, seconds: float, *, error: str = "") -> tuple[int, RetryBackoff]:
    """How often it is done when it is asked for ten times a second."""
    retry_backoff, number = RetryBackoff(), 0
    for tenth in range(int(seconds * 10)):
        now = NOW + timedelta(seconds=tenth / 10)
        if retry_backoff.due([action], now).actions:
            retry_backoff.note("default", action, now, error=error)
            number += 1
    return number, retry_backoff


def test_a_fight_costs_eight_attempts_in_the_first_minute_and_twelve_an_hour_later() -> None:
    assert attempts(APPLY, 60)[0] == 8
    assert attempts(APPLY, 3600)[0] - attempts(APPLY, 1800)[0] == 6


def test_one_who_makes_the_object_anew_each_time_is_fought_no_faster() -> None:
    """Each time it has another uid, and the same is asked of it."""
    retry_backoff, number = RetryBackoff(), 0
    for tenth in range(600):
        now, action = NOW + timedelta(seconds=tenth / 10), ApplyShareNode("gpu-1", {}, f"uid-{tenth}")
        if retry_backoff.due([action], now).actions:
            retry_backoff.note("default", action, now)
            number += 1
    assert number == 8
    assert retry_backoff.contested("default")


def test_a_server_that_refuses_is_asked_once_a_minute() -> None:
    assert attempts(APPLY, 3600, error="503")[0] - attempts(APPLY, 1800, error="503")[0] == 30


def test_a_kubelet_that_still_remembers_a_resource_is_waited_for_and_not_fought() -> None:
    assert attempts(CLEAR, 310)[0] == 1
    number, retry_backoff = attempts(CLEAR, 3600)
    assert number == 12
    assert retry_backoff.contested("default") == []


def test_a_node_that_is_left_again_is_cleared_at_once() -> None:
    _, retry_backoff = attempts(CLEAR, 10)
    left_again = replace(CLEAR, left=CapacityLeft.BY_PLUGIN)
    assert retry_backoff.due([left_again], NOW + timedelta(seconds=10)).actions == [left_again]


def test_of_many_actions_the_first_that_do_not_wait_are_done() -> None:
    _, retry_backoff = attempts(APPLY, 60)
    others = [DeleteJob(name, "uid") for name in "bcd"]
    due = retry_backoff.due([APPLY, *others], NOW + timedelta(seconds=60), most=2)
    assert due.actions == others[:2]
    assert due.is_cut
    assert not retry_backoff.due([APPLY, *others[:2]], NOW + timedelta(seconds=60), most=2).is_cut


def test_what_is_refused_does_not_keep_others_from_their_turn() -> None:
    """The first of a plan were tried again each time that the queue came back, and those after them never."""
    plan: list[Action] = [DeleteJob(name, "uid") for name in "abcdef"]
    retry_backoff, tried = RetryBackoff(), []
    for minute in range(6):
        now = NOW + timedelta(minutes=minute)
        due = retry_backoff.due(plan, now, most=2)
        tried.append("".join(action.name for action in due.actions if isinstance(action, DeleteJob)))
        for action in due.actions:
            retry_backoff.note("default", action, now, error="403")
    assert tried == ["ab", "cd", "ef", "ab", "cd", "ef"]


def test_what_is_tried_again_keeps_its_place_in_the_plan() -> None:
    """Numbers of cards go before labels, whichever of them was refused."""
    first, second = DeleteJob("a", "uid"), DeleteJob("b", "uid")
    retry_backoff = RetryBackoff()
    retry_backoff.note("default", first, NOW, error="403")
    assert retry_backoff.due([first, second], NOW, most=2).actions == [first, second]


def test_what_waits_says_until_when_and_why_it_was_refused() -> None:
    """As long as it is asked for."""
    _, retry_backoff = attempts(APPLY, 60, error="503")
    due = retry_backoff.due([APPLY, DeleteJob("b", "uid")], NOW + timedelta(seconds=60))
    assert due.actions == [DeleteJob("b", "uid")]
    assert retry_backoff.errors("default") == ["503"]
    assert retry_backoff.errors("other") == []
    retry_backoff.settle("other", [])
    retry_backoff.settle("default", [APPLY])
    assert retry_backoff.errors("default") == ["503"]
    retry_backoff.settle("default", [])
    assert retry_backoff.errors("default") == []
    assert due.retry_after is not None
    assert 0 < due.retry_after <= 60


def test_a_number_that_a_kubelet_undoes_waits_for_it_and_a_lasting_fight_is_reported() -> None:
    shown = SetCounts("gpu-1", "uid", {"aliyun.com/gpu-count": 4})
    retry_backoff, now = RetryBackoff(), NOW
    retry_backoff.note("default", shown, now)
    assert retry_backoff.due([shown], now + timedelta(seconds=300)).actions == []
    for _ in range(4):
        now += timedelta(seconds=311)
        assert retry_backoff.due([shown], now).actions == [shown]
        retry_backoff.note("default", shown, now)
    assert retry_backoff.contested("default") == [
        "show aliyun.com/gpu-count 4 in the status of node gpu-1 has no lasting effect: somebody undoes it"
    ]


def test_other_fields_of_the_object_is_done_at_once() -> None:
    _, retry_backoff = attempts(APPLY, 60)
    other = ApplyDaemonSet("a", {"spec": {"x": 2}})
    assert retry_backoff.due([other], NOW + timedelta(seconds=60)).actions == [other]


def test_labels_of_a_node_that_are_wanted_for_different_reasons_are_counted_apart() -> None:
    retry_backoff = RetryBackoff()
    mark, labels = LabelNode("cp", "uid", {"a": "1"}), LabelNode("cp", "uid", {"b": "1"})
    for _ in range(9):
        retry_backoff.note("*", mark, NOW)
        retry_backoff.note("default", labels, NOW)
    assert retry_backoff.due([mark, labels], NOW).actions == []


def test_finalizers_are_the_same_action_whatever_the_version() -> None:
    retry_backoff = RetryBackoff()
    for version in range(9):
        retry_backoff.note("default", SetFinalizers("default", str(version), ("a",)), NOW)
    assert retry_backoff.due([SetFinalizers("default", "10", ("a",))], NOW).actions == []


def test_people_are_told_after_some_attempts_and_of_their_policy_only() -> None:
    _, retry_backoff = attempts(APPLY, 1)
    assert retry_backoff.contested("default") == []
    _, retry_backoff = attempts(APPLY, 60)
    retry_backoff.note(
        "default", APPLY, NOW + timedelta(seconds=60), conflicting_manager="kyverno changes spec.x"
    )
    assert retry_backoff.contested("default") == [
        "apply DaemonSet a has no lasting effect: kyverno changes spec.x"
    ]
    assert retry_backoff.contested("other") == []


def test_a_fight_that_ended_is_forgotten() -> None:
    _, retry_backoff = attempts(APPLY, 60)
    assert retry_backoff.due([], NOW + timedelta(seconds=400)).actions == []
    assert retry_backoff.contested("default") == []


def test_what_was_asked_again_keeps_nothing_else_from_being_forgotten() -> None:
    """Only what was asked longest ago is looked at: of a roll-out thousands of entries are younger."""
    _, retry_backoff = attempts(APPLY, 1)
    other = LabelNode("gpu-1", "uid", {"gpushare.io/mode": "Memory"})
    for _ in range(CONTESTED_FROM - 1):
        retry_backoff.note("default", other, NOW + timedelta(seconds=1))
    assert retry_backoff.is_contested(other)
    retry_backoff.note("default", APPLY, NOW + timedelta(seconds=300))
    retry_backoff.due([], NOW + timedelta(seconds=301))
    assert not retry_backoff.is_contested(other)


def test_a_policy_that_comes_and_goes_fights_nobody() -> None:
    """Labels are set together and taken away in two steps."""
    there = LabelNode("gpu-1", "uid", {"gpushare.io/policy": "default", "gpushare.io/mode": "Memory"})
    gone = [
        LabelNode("gpu-1", "uid", {"gpushare.io/mode": None}),
        LabelNode("gpu-1", "uid", {"gpushare.io/policy": None}),
    ]
    retry_backoff = RetryBackoff()
    for turn in range(8):
        now = NOW + timedelta(seconds=10 * turn)
        for action in (there, *gone):
            assert retry_backoff.due([action], now).actions
            retry_backoff.note("default", action, now)
    assert retry_backoff.contested("default") == []


def test_a_label_that_somebody_else_sets_again_is_a_fight_whatever_becomes_of_other_labels() -> None:
    remove = LabelNode("gpu-1", "uid", {"gpushare.io/policy": None})
    other = LabelNode("gpu-1", "uid", {"gpushare.io/mode": "Memory"})
    retry_backoff = RetryBackoff()
    for turn in range(8):
        for action in (remove, other):
            retry_backoff.note("default", action, NOW + timedelta(seconds=turn))
    assert len(retry_backoff.contested("default")) == 2


def test_two_desired_values_that_alternate_without_end_are_slowed_down_and_reported() -> None:
    """Another manager changes the label as soon as it is ours, and we take off what the manager wrote."""
    ours = LabelNode("gpu-1", "uid", {"gpushare.io/policy": "default"})
    off = LabelNode("gpu-1", "uid", {"gpushare.io/policy": None})
    retry_backoff, number = RetryBackoff(), 0
    for tenth in range(600):
        now, action = NOW + timedelta(seconds=tenth / 10), (ours, off)[number % 2]
        due = retry_backoff.due([action], now)
        if due.actions:
            retry_backoff.note("default", action, now)
            number += 1
        else:
            assert 0 < (due.retry_after or 0) <= 3
    assert number <= 32
    assert retry_backoff.contested("default")
    assert retry_backoff.is_contested(ours)
    assert retry_backoff.due([ours], now + timedelta(seconds=60)).actions == [ours]
    assert retry_backoff.contested("default") == []


def test_a_clock_that_is_set_back_lets_nothing_wait_until_it_is_there_again() -> None:
    """It waited for the whole hour."""
    _, retry_backoff = attempts(APPLY, 60)
    back = NOW - timedelta(hours=1)
    due = retry_backoff.due([APPLY], back)
    assert due.retry_after is not None
    assert due.retry_after <= 60
    assert retry_backoff.due([APPLY], back + timedelta(seconds=due.retry_after)).actions == [APPLY]


def test_what_is_not_asked_for_any_more_is_refused_no_longer() -> None:
    retry_backoff = RetryBackoff()
    retry_backoff.note("default", APPLY, NOW, error="503")
    retry_backoff.note("other", replace(APPLY, name="b"), NOW, error="504")
    retry_backoff.settle("default", [])
    assert retry_backoff.errors("default", "other") == ["504"]
