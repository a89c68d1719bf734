"""How long pods wait, and for which reason."""

from gpushare_core.scheduling.ledger.unfit_reason import Refusal
from gpushare_extender.decide.waiting.waiting_pods import GONE_SECONDS, MAX_PODS, WaitingPods, Waits

NO_ROOM, TOO_SMALL, NOT_SHARED = Refusal.NO_ROOM, Refusal.CARDS_TOO_SMALL, Refusal.NOT_SHARED


def test_the_wait_begins_with_the_first_try_and_has_the_reasons_of_the_last() -> None:
    waiting = WaitingPods()
    waiting.refused("a", [TOO_SMALL], now=0.0)
    waiting.refused("a", [NO_ROOM], now=300.0)
    waiting.refused("b", [NO_ROOM], now=310.0)
    assert waiting.by_reason(now=360.0) == {NO_ROOM: Waits(2, 360.0)}


def test_a_pod_that_fits_waits_no_more() -> None:
    waiting = WaitingPods()
    waiting.refused("a", [NO_ROOM], now=0.0)
    waiting.settled("a")
    assert waiting.by_reason(now=1.0) == {}


def test_one_that_is_not_tried_any_more_is_gone() -> None:
    waiting = WaitingPods()
    waiting.refused("a", [NO_ROOM], now=0.0)
    assert waiting.by_reason(now=GONE_SECONDS) == {}
    waiting.refused("a", [NO_ROOM], now=1000.0)
    assert waiting.by_reason(now=1001.0) == {NO_ROOM: Waits(1, 1.0)}


def test_nodes_that_share_nothing_are_a_reason_only_where_there_is_no_other() -> None:
    waiting = WaitingPods()
    waiting.refused("a", [NOT_SHARED, NO_ROOM], now=0.0)
    waiting.refused("b", [NOT_SHARED], now=0.0)
    assert waiting.by_reason(now=1.0) == {NO_ROOM: Waits(1, 1.0), NOT_SHARED: Waits(1, 1.0)}


def test_pods_in_any_number_take_bounded_memory() -> None:
    waiting = WaitingPods()
    for number in range(MAX_PODS + 5):
        waiting.refused(str(number), [NO_ROOM], now=float(number) / 1000)
    assert waiting.by_reason(now=5.0)[NO_ROOM].pods == MAX_PODS
