"""When a refused pod is looked at."""

from tests.samples.extender import pod_request, reference

from gpushare_core.scheduling.fit.candidates import SAMPLE
from gpushare_extender.decide.preemption.queue import (
    ENOUGH_ATTEMPTS,
    GONE_SECONDS,
    MAX_PODS,
    SCHEDULER_SECONDS,
    STALE_SECONDS,
    TURN_SECONDS,
    EvictionRate,
    PreemptionQueue,
    Preemptor,
)


def preemptor(name: str = "p", priority: int = 10, *nodes: str) -> Preemptor:
    return Preemptor(reference(name), pod_request(8), priority, nodes or ("n1",))


def due(queue: PreemptionQueue, now: float) -> list[str]:
    return [waiting.pod.name for waiting in queue.due(now=now)]


def test_kube_scheduler_goes_first() -> None:
    queue = PreemptionQueue()
    queue.refused(preemptor(), now=0.0)
    assert due(queue, SCHEDULER_SECONDS / 2) == []
    assert due(queue, SCHEDULER_SECONDS) == ["p"]


def test_the_most_important_one_is_first() -> None:
    queue = PreemptionQueue()
    for name, priority in (("a", 1), ("b", 3), ("c", 2)):
        queue.refused(preemptor(name, priority), now=0.0)
    assert due(queue, 1.0) == ["b", "c", "a"]


def test_one_that_fits_is_left_alone() -> None:
    queue = PreemptionQueue()
    queue.refused(preemptor(), now=0.0)
    queue.settled("uid-p")
    assert due(queue, 1.0) == []


def test_one_that_was_looked_at_waits_even_if_it_is_refused_again() -> None:
    queue = PreemptionQueue()
    queue.refused(preemptor(), now=0.0)
    (known,) = queue.due(now=1.0)
    queue.looked_at(known, again=20.0)
    queue.refused(preemptor(), now=2.0)
    assert due(queue, 10.0) == []
    assert due(queue, 20.0) == ["p"]


def test_one_for_which_kube_scheduler_was_woken_is_looked_at_at_once() -> None:
    queue = PreemptionQueue()
    queue.refused(preemptor(), now=0.0)
    (known,) = queue.due(now=1.0)
    queue.looked_at(known, again=200.0)
    known.is_activated = True
    queue.refused(preemptor(), now=2.0)
    assert due(queue, 2.0 + SCHEDULER_SECONDS) == ["p"]


def test_the_nodes_are_those_of_the_last_refusal() -> None:
    queue = PreemptionQueue()
    queue.refused(preemptor("p", 10, "n1", "n2"), now=0.0)
    queue.refused(preemptor("p", 10, "n4"), now=0.0)
    (known,) = queue.due(now=1.0)
    assert known.nodes == ("n4",)


def test_fewer_than_a_sample_are_all_nodes() -> None:
    assert not Preemptor(reference(), pod_request(8), 10, ("n1",), SAMPLE - 1).may_be_sampled
    assert Preemptor(reference(), pod_request(8), 10, ("n1",), SAMPLE).may_be_sampled


def test_what_was_fit_long_ago_may_not_be_any_more() -> None:
    queue = PreemptionQueue()
    queue.refused(preemptor(), now=0.0)
    (known,) = queue.due(now=1.0)
    assert not known.is_stale(now=STALE_SECONDS)
    assert known.is_stale(now=STALE_SECONDS + 1)
    queue.refused(preemptor(), now=STALE_SECONDS)
    assert not known.is_stale(now=STALE_SECONDS + 1)


def refuse_all(queue: PreemptionQueue, others: int, *, now: float) -> None:
    """One round of kube-scheduler, which tries the most important pod first."""
    queue.refused(preemptor("important", 100), now=now)
    for number in range(others):
        queue.refused(preemptor(f"other-{number}", 0), now=now)


def look(queue: PreemptionQueue, *, now: float) -> None:
    for waiting in queue.due(now=now):
        queue.looked_at(waiting, again=now)


def attempts(queue: PreemptionQueue) -> dict[str, int]:
    return {waiting.pod.name: waiting.attempts for waiting in queue.due(now=1e9)}


def test_the_most_important_pod_is_not_forgotten_for_thousands_of_others() -> None:
    """Who was forgotten begins anew, and is never looked at often enough for anything to be evicted."""
    queue = PreemptionQueue()
    for number in range(4):
        refuse_all(queue, MAX_PODS + 100, now=10.0 * number)
        look(queue, now=10.0 * number + 1.0)
    assert attempts(queue)["important"] == 4
    assert len(attempts(queue)) == MAX_PODS


def test_equals_make_way_once_they_were_looked_at_often_enough() -> None:
    queue = PreemptionQueue(most=2)
    for name in ("a", "b", "c"):
        queue.refused(preemptor(name), now=0.0)
    assert attempts(queue) == {"a": 0, "b": 0}, "nobody makes way that was not looked at yet"
    for number in range(ENOUGH_ATTEMPTS):
        look(queue, now=float(number + 1))
    queue.refused(preemptor("c"), now=100.0)
    assert attempts(queue) == {"b": ENOUGH_ATTEMPTS, "c": 0}


def test_a_more_important_one_is_taken_in_at_once() -> None:
    queue = PreemptionQueue(most=2)
    for name, priority in (("a", 1), ("b", 1), ("c", 2)):
        queue.refused(preemptor(name, priority), now=0.0)
    assert set(attempts(queue)) == {"a", "c"}


def test_important_ones_that_nothing_helps_make_way_for_others() -> None:
    """As long as a thousand of them waited, nobody was evicted for one that mattered less."""
    queue = PreemptionQueue(most=2)
    for name in ("a", "b"):
        queue.refused(preemptor(name, 100), now=0.0)
    for number in range(ENOUGH_ATTEMPTS):
        assert "c" not in attempts(queue)
        look(queue, now=float(number + 1))
        queue.refused(preemptor("c", 1), now=number + 1.0)
    assert attempts(queue) == {"b": ENOUGH_ATTEMPTS, "c": 0}
    queue.refused(preemptor("a", 100), now=100.0)
    assert attempts(queue) == {"a": 0, "c": 0}, "it is taken in again, for one that was looked at more often"


def test_important_pods_that_are_gone_keep_nobody_out() -> None:
    """A job of more than a thousand pods that was deleted left no place for any that mattered less."""
    queue = PreemptionQueue(most=2)
    for name in ("a", "b"):
        queue.refused(preemptor(name, 100), now=0.0)
    queue.refused(preemptor("b", 100), now=1.0)
    queue.refused(preemptor("c", 1), now=GONE_SECONDS)
    assert set(attempts(queue)) == {"a", "b"}
    queue.refused(preemptor("c", 1), now=GONE_SECONDS + 0.5)
    assert set(attempts(queue)) == {"b", "c"}


class TestEvictionRate:
    def test_no_more_than_so_many_a_minute(self) -> None:
        rate = EvictionRate(most=2)
        for moment in (0.0, 30.0):
            assert rate.allows(1, now=moment)
            rate.sent(now=moment)
        assert not rate.allows(1, now=59.0)
        assert rate.allows(1, now=60.0)

    def test_many_for_one_pod_have_their_turn_before_those_for_lesser_and_equal_ones(self) -> None:
        """A job that needs a whole node waited as long as others had a pod evicted every minute."""
        rate, many, few = EvictionRate(most=2), preemptor("many", 10), preemptor("few", 10)
        assert rate.allows(1, now=0.0, preemptor=few)
        rate.sent(now=0.0)
        for moment in (10.0, 20.0, 30.0, 40.0, 50.0):
            assert not rate.allows(2, now=moment, preemptor=many)
            assert not rate.allows(1, now=moment, preemptor=few)
            assert rate.is_next(many)
        assert rate.allows(2, now=60.0, preemptor=many)
        assert not rate.allows(1, now=61.0, preemptor=few), "kube-scheduler is asked about the pod once more"
        assert rate.allows(2, now=62.0, preemptor=many)
        rate.sent(now=62.0, preemptor=many)
        assert rate.allows(1, now=62.0, preemptor=few)

    def test_more_important_ones_go_first_all_the_same(self) -> None:
        rate = EvictionRate(most=2)
        rate.sent(now=0.0)
        assert not rate.allows(2, now=1.0, preemptor=preemptor("many", 10))
        assert rate.allows(1, now=1.0, preemptor=preemptor("important", 11))

    def test_one_that_does_not_ask_again_keeps_nobody_waiting(self) -> None:
        rate = EvictionRate(most=2)
        rate.sent(now=0.0)
        assert not rate.allows(2, now=1.0, preemptor=preemptor("many", 10))
        assert not rate.allows(1, now=TURN_SECONDS, preemptor=preemptor("few", 10))
        assert rate.allows(1, now=1.0 + TURN_SECONDS, preemptor=preemptor("few", 10))

    def test_many_for_one_pod_go_alone(self) -> None:
        rate = EvictionRate(most=2)
        assert rate.allows(5, now=0.0)
        rate.sent(now=0.0)
        assert not rate.allows(5, now=1.0)
