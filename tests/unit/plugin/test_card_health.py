"""Which cards are sick, and by which proof they return."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from tests.samples.plugin import card
from tests.samples.sick_cards import HUNG, LOST, ODD, QUIET, RESET, Ward

from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import CardFault
from gpushare_plugin.decide.health.card_health import HealthRecord, clearance, judged, seconds_until_due
from gpushare_plugin.devices.card import CardEvent, LeftOutCard, Reading


@pytest.fixture
def ward() -> Ward:
    return Ward()


def test_a_card_of_which_nothing_is_known_is_healthy(ward: Ward) -> None:
    assert ward.look()
    assert not ward.health.faults


def test_an_xid_makes_it_sick_until_the_quiet_time_is_over(ward: Ward) -> None:
    assert not ward.look(79)
    assert (ward.fault.reason, ward.fault.uuid, ward.fault.since) == (
        "Xid79",
        "GPU-1",
        "2026-11-22T10:00:10Z",
    )
    assert ward.until_healthy() == QUIET
    assert ward.fault.cleared_by == "QuietTime"


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 68, 109])
def test_xids_of_applications_are_ignored(ward: Ward, xid: int) -> None:
    assert ward.look(xid)


def test_which_xids_are_ignored_is_for_the_policy_to_say() -> None:
    ward = Ward(rules={"ignoredXids": [79]})
    assert ward.look(79)
    assert not ward.look(13)


def test_another_event_begins_the_quiet_time_anew_and_not_the_fault(ward: Ward) -> None:
    ward.look(79)
    since = ward.fault.since
    assert not ward.look(48, after=QUIET - 10)
    assert ward.until_healthy() == QUIET
    assert ward.fault.since == since
    assert ward.fault.reason == "Xid48"


def test_an_event_of_no_card_may_be_of_any(ward: Ward) -> None:
    reading = Reading(cards=(card(1),), events=(CardEvent("", 79),))
    assert not ward.see(reading)


def test_a_storm_of_events_changes_the_status_every_ten_seconds_at_most(ward: Ward) -> None:
    ward.look(79)
    written = set()
    for _ in range(100):
        ward.look(79, after=0.5)
        written.add(ward.fault.last_seen)
    assert len(written) <= 6
    assert ward.until_healthy() >= QUIET - 10


def test_a_storm_of_several_kinds_changes_the_status_every_ten_seconds_at_most(ward: Ward) -> None:
    ward.look(119)
    ward.look(after=20)
    written = set()
    for _ in range(50):
        ward.look(119, 120, after=1)
        written.add(ward.fault.last_seen)
    assert len(written) <= 6
    assert ward.until_healthy() >= QUIET - 10


def test_of_events_that_come_together_the_last_is_told(ward: Ward) -> None:
    ward.look(48, 63)
    ward.look(154, after=1)
    assert ward.fault.reason == "Xid154"


@pytest.mark.parametrize("repair", [RESET, Problem("RowRemappingFailed", "replace it")])
def test_a_repair_that_is_due_keeps_it_however_long_it_is_quiet(ward: Ward, repair: Problem) -> None:
    ward.look(79)
    for _ in range(3):
        assert not ward.look(after=10 * QUIET, repair=repair)
    assert ward.fault.reason == repair.reason
    assert "the driver reports" in ward_reason(ward, repair=repair)
    assert ward.until_healthy() == QUIET + 10


def ward_reason(ward: Ward, **of_second: Any) -> str:
    reading = Reading(cards=(replace(card(1), **of_second),))
    return judged(reading, ward.health).cards[0].reason


def test_a_card_that_answers_with_errors_is_back_soon_after_they_end(ward: Ward) -> None:
    assert not ward.look(**LOST)
    assert ward_reason(ward) == "it is lost"
    assert not ward.look(after=3600, **LOST)
    assert ward.until_healthy() == 20
    assert ward.fault.reason == "CardError"


def test_errors_after_an_xid_do_not_make_the_quiet_time_shorter(ward: Ward) -> None:
    ward.look(79)
    ward.look(**LOST)
    assert ward.until_healthy() == QUIET + 10


def test_an_xid_while_it_answers_with_errors_needs_the_quiet_time_of_an_xid(ward: Ward) -> None:
    ward.look(**LOST)
    ward.look(79, after=2, **LOST)  # the driver logs it a moment after the answers have become errors
    assert ward.until_healthy() == QUIET + 10


def test_an_xid_soon_after_errors_needs_the_quiet_time_of_an_xid(ward: Ward) -> None:
    ward.look(**LOST)
    ward.look(after=1)
    ward.look(after=15, **LOST)
    ward.look(48, after=1)
    assert ward.fault.reason == "Xid48"
    assert ward.until_healthy() == QUIET


def test_an_xid_while_it_is_gone_needs_the_quiet_time_of_an_xid() -> None:
    ward = Ward(held=("GPU-1",))
    ward.see(Reading(cards=(card(0),)))
    ward.see(Reading(cards=(card(0),), events=(CardEvent("GPU-1", 79),)), after=2)
    assert ward.until_healthy() == QUIET + 10


def test_a_storm_of_xids_while_it_answers_with_errors_changes_the_status_every_ten_seconds_at_most(
    ward: Ward,
) -> None:
    written = set()
    for _ in range(100):
        ward.look(79, 119, after=0.5, **LOST)
        written.add(msgspec.json.encode(ward.fault))
    assert len(written) <= 6


def test_an_xid_of_a_card_that_is_not_found_counts_when_it_is_back(ward: Ward) -> None:
    ward.see(Reading(cards=(card(0),), events=(CardEvent("GPU-1", 79),)))
    assert ward.until_healthy() == QUIET + 10


def test_an_xid_of_a_card_that_people_have_taken_out_is_no_fault(ward: Ward) -> None:
    out = LeftOutCard(index=1, uuid="GPU-1", reason="MIG")
    ward.see(Reading(cards=(card(0),), left_out=(out,), events=(CardEvent("GPU-1", 79),)))
    assert not ward.health.faults


def test_the_quiet_time_after_an_xid_begins_when_the_driver_answers(ward: Ward) -> None:
    ward.see(Reading(cards=(card(1),), events=(CardEvent("GPU-1", 79),), problem=HUNG))
    assert not ward.look(after=2 * QUIET)
    assert ward.until_healthy() == QUIET


def test_an_event_when_it_was_about_to_return_is_no_relapse(ward: Ward) -> None:
    ward.look(79)
    ward.look(79, after=QUIET)
    assert ward.fault.relapses == 0
    assert ward.until_healthy() == QUIET


def test_a_storm_after_the_policy_asks_for_a_longer_quiet_time_has_that(ward: Ward) -> None:
    ward.look(79)
    ward.rules = {"quietSeconds": 2 * QUIET}
    ward.look(79, after=5)
    assert ward.until_healthy() == 2 * QUIET


def test_an_odd_answer_alone_is_nothing(ward: Ward) -> None:
    for _ in range(50):
        assert ward.look(after=0.5, **ODD)
        assert ward.look(after=0.5)
    assert not ward.health.faults


def test_an_odd_answer_that_stays_is_a_fault(ward: Ward) -> None:
    assert ward.look(**ODD)
    assert seconds_until_due(ward.health, now=ward.now) == 1
    assert not ward.look(after=1, **ODD)
    assert ward.look(after=0.1) is False
    assert ward.until_healthy(step=1) == 10


def test_a_card_that_flaps_changes_the_list_ever_more_rarely(ward: Ward) -> None:
    changes, before = 0, True
    answers: list[dict[str, Any]] = [LOST, {}]
    for _ in range(3600):
        for answer in answers:
            healthy = ward.look(after=0.5, **answer)
            changes, before = changes + (healthy != before), healthy
    assert changes == 1
    gaps = []
    for _ in range(5):
        gaps.append(ward.until_healthy())
        ward.look(**LOST)
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 8 * gaps[0] - 80


def test_relapses_double_the_quiet_time_up_to_a_day_and_a_day_of_health_ends_that(ward: Ward) -> None:
    took = []
    for _ in range(10):
        ward.look(79)
        took.append(ward.until_healthy())
    assert took[:4] == [QUIET, 2 * QUIET, 4 * QUIET, 8 * QUIET]
    assert took[-1] == 86400
    ward.look(after=86_400)
    assert not ward.health.faults
    ward.look(79)
    assert ward.until_healthy() == QUIET


def test_a_restart_changes_nothing(ward: Ward) -> None:
    ward.look(79)
    ward.look(after=QUIET / 2)
    ward.restart()
    assert not ward.look(after=0)
    assert ward.until_healthy() == QUIET / 2
    ward.restart()
    ward.look(79)
    assert ward.fault.relapses == 1


def test_an_administrator_has_it_back_at_once(ward: Ward) -> None:
    ward.look(79)
    ward.annotation = f"GPU-0@2026-11-22T10:00:10Z {clearance(ward.fault)}"
    assert ward_reason(ward).endswith(f"clear-fault to {clearance(ward.fault)} to have it back at once")
    assert ward.look()
    assert ward.fault.cleared_by == "Administrator"


def test_the_same_word_clears_no_later_event(ward: Ward) -> None:
    ward.look(79)
    word = clearance(ward.fault)
    ward.look(79, after=15)
    ward.annotation = word
    assert not ward.look()
    ward.annotation = clearance(ward.fault)
    assert ward.look()
    assert not ward.look(79, after=15)
    assert not ward.look()
    assert ward.fault.relapses == 1


@pytest.mark.parametrize(
    "word", ["GPU-1", "1", "GPU-1@", "GPU-1@now", "@", "all", "GPU-1@2026-11-22T10:00:11Z"]
)
def test_what_names_no_fault_clears_none(word: str) -> None:
    ward = Ward(annotation=word)
    ward.look(79)
    assert not ward.look()


def test_an_administrator_may_accept_a_repair_that_is_due(ward: Ward) -> None:
    ward.look(repair=RESET)
    ward.annotation = clearance(ward.fault)
    for _ in range(3):
        assert ward.look(after=QUIET, repair=RESET)
    assert ward.look()
    assert not ward.look(repair=RESET, after=60)  # it was done, and is due anew


def test_no_word_brings_back_a_card_that_does_not_answer(ward: Ward) -> None:
    ward.look(**LOST)
    ward.annotation = clearance(ward.fault)
    assert not ward.look(**LOST)


def test_a_word_for_a_card_that_does_not_answer_begins_no_new_fault(ward: Ward) -> None:
    ward.look(**LOST)
    before = ward.fault
    ward.annotation = clearance(before)
    ward.look(**LOST)
    assert ward.fault == before


def test_after_an_administrator_s_word_the_same_event_counts_at_once(ward: Ward) -> None:
    ward.look(79)
    ward.annotation = clearance(ward.fault)
    assert ward.look(after=1)
    assert not ward.look(79, after=1)


def test_a_question_without_an_answer_proves_nothing(ward: Ward) -> None:
    assert ward.look(unproven=True)
    ward.look(79)
    assert not ward.look(after=2 * QUIET, unproven=True)
    assert ward.look()


def test_what_stands_says_what_it_asks_for_now(ward: Ward) -> None:
    ward.look(repair=RESET)
    before = ward.fault
    ward.look(repair=Problem(RESET.reason, "reboot the node"))
    assert ward.fault == msgspec.structs.replace(before, message="reboot the node")


def test_a_fault_that_stands_is_never_forgotten(ward: Ward) -> None:
    ward.look(repair=RESET)
    before = ward.fault
    for _ in range(3):
        assert not ward.look(after=86_400, repair=RESET)
    assert ward.fault == before


def test_a_driver_that_does_not_answer_proves_nothing(ward: Ward) -> None:
    ward.look(79)
    problem = Reading(cards=(replace(card(1), **LOST),), problem=HUNG)
    assert not ward.see(problem, after=2 * QUIET)
    assert not ward.fault.cleared
    assert not ward.look()
    assert ward.until_healthy() == QUIET


def test_a_driver_that_does_not_answer_changes_a_fault_once(ward: Ward) -> None:
    ward.look(79)
    problem = Reading(cards=(replace(card(1), **LOST),), problem=HUNG)
    written = []
    for _ in range(5):
        ward.see(problem)
        written.append(ward.fault)
    assert written == [written[0]] * 5


def test_a_driver_that_does_not_answer_makes_no_card_sick(ward: Ward) -> None:
    ward.see(Reading(cards=(replace(card(1), **LOST),), problem=HUNG))
    assert not ward.health.faults


def test_a_card_that_is_gone_is_sick_where_pods_have_units_of_it() -> None:
    ward = Ward(held=("GPU-1",))
    ward.see(Reading(cards=(card(0),)))
    assert ward.fault.reason == "CardGone"
    assert ward.until_healthy() == 20


def test_a_card_that_is_gone_with_nobody_on_it_is_no_fault(ward: Ward) -> None:
    ward.look()
    ward.see(Reading(cards=(card(0),)))
    assert not ward.health.faults


def test_a_sick_card_is_not_quiet_while_it_is_gone(ward: Ward) -> None:
    ward.look(79)
    for _ in range(3):
        ward.see(Reading(cards=(card(0),)), after=3600)
    assert ward.until_healthy() == QUIET + 10


def test_a_sick_card_that_is_gone_is_forgotten_after_a_day(ward: Ward) -> None:
    ward.look(79)
    ward.see(Reading(cards=(card(0),)))
    ward.see(Reading(cards=(card(0),)), after=86_000)
    assert ward.health.faults
    ward.see(Reading(cards=(card(0),)), after=400)
    assert not ward.health.faults


def test_a_card_that_is_gone_for_a_moment_is_not_forgotten_however_old_its_fault_is(ward: Ward) -> None:
    ward.look(repair=RESET)
    ward.look(after=90_000, repair=RESET)
    ward.see(Reading(cards=(card(0),)))  # while it is reset
    assert ward.until_healthy() == QUIET + 10


def test_a_card_that_is_gone_is_not_forgotten_while_the_driver_does_not_answer(ward: Ward) -> None:
    ward.look(79)
    ward.see(Reading(cards=(card(0),)))
    for _ in range(3):
        ward.see(Reading(cards=(card(0),), problem=HUNG), after=86_400)
    assert ward.until_healthy() == QUIET + 10


def test_a_card_that_is_gone_is_not_forgotten_for_a_restart_of_the_plugin(ward: Ward) -> None:
    ward.look(79)
    ward.restart()
    ward.see(Reading(cards=(card(0),)), after=90_000)
    assert ward.until_healthy() == QUIET + 10


def test_a_card_that_is_left_out_and_held_is_not_gone() -> None:
    ward = Ward(held=("GPU-1",))
    ward.see(Reading(cards=(card(0),), left_out=(LeftOutCard(index=1, uuid="GPU-1", reason="MIG"),)))
    assert not ward.health.faults


def test_a_card_that_is_left_out_because_it_fails_is_sick_where_pods_have_units_of_it() -> None:
    ward = Ward(held=("GPU-1",))
    out = LeftOutCard(index=1, uuid="GPU-1", reason="it is lost", healthy=False)
    ward.see(Reading(cards=(card(0),), left_out=(out,)))
    assert (ward.fault.reason, ward.fault.message) == ("CardError", "it is lost")
    assert ward.until_healthy() == 20


def test_a_card_that_stays_gone_under_its_pods_is_one_fault_however_long() -> None:
    ward = Ward(held=("GPU-1",))
    ward.see(Reading(cards=(card(0),)))
    before = ward.fault
    for _ in range(4):
        ward.see(Reading(cards=(card(0),)), after=50_000)
        assert ward.fault == before


def test_a_card_that_waits_for_its_first_answer_is_closed_and_has_no_fault(ward: Ward) -> None:
    waiting: dict[str, Any] = {"healthy": False, "unproven": True, "reason": "not answered yet"}
    assert not ward.look(**waiting)
    assert not ward.health.faults
    assert ward_reason(ward, **waiting) == "not answered yet"
    assert ward.look()
    ward.look(79)
    assert not ward.look(after=2 * QUIET, **waiting)


def test_a_clock_that_was_wrong_delays_by_the_quiet_time_at_most(ward: Ward) -> None:
    ward.look(79)
    ward.now -= timedelta(days=400)
    assert ward.until_healthy() <= QUIET + 10


def test_an_event_after_the_clock_was_set_back_counts(ward: Ward) -> None:
    ward.look(79)
    ward.now -= timedelta(days=400)
    ward.look()
    ward.look(79, after=QUIET / 2)
    assert ward.until_healthy() == QUIET


def test_an_event_counts_where_it_cannot_be_read_when_the_one_before_it_was() -> None:
    fault = CardFault(uuid="GPU-1", reason="Xid79", since="?", last_seen="?", quiet_seconds=QUIET)
    ward = Ward(health=HealthRecord({"GPU-1": fault}))
    ward.look()
    ward.look(79, after=QUIET / 2)
    assert ward.until_healthy() == QUIET


def test_times_that_cannot_be_read_keep_the_card_sick_for_the_quiet_time() -> None:
    fault = CardFault(
        uuid="GPU-1", reason="Xid79", since="?", last_seen="?", quiet_since="?", quiet_seconds=60
    )
    ward = Ward(health=HealthRecord({"GPU-1": fault}))
    assert not ward.look()
    assert ward.until_healthy() == 60
