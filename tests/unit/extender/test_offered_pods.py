"""A pod that was offered only the best nodes is known when it comes again, and not for ever."""

from gpushare_extender.decide.waiting.offered_pods import (
    ATTEMPT_SECONDS,
    REMEMBERED_SECONDS,
    VOLUME_SECONDS,
    OfferedPods,
)


def test_a_pod_that_comes_again_is_known_at_every_attempt_until_it_is_bound() -> None:
    pods = OfferedPods()
    assert not pods.is_retry("a", now=0.0)
    pods.offered_some("a", offered=16, now=0.0)
    assert pods.is_retry("a", now=1.0)
    assert pods.is_retry("a", now=2.0)
    assert not pods.is_retry("b", now=2.0)
    pods.settled("a")
    assert not pods.is_retry("a", now=3.0)
    assert len(pods) == 0


def test_every_attempt_is_remembered_for_as_long_as_the_next_may_take() -> None:
    pods = OfferedPods()
    pods.offered_some("a", offered=16, now=0.0)
    assert pods.is_retry("a", now=REMEMBERED_SECONDS)
    assert pods.is_retry("a", now=2 * REMEMBERED_SECONDS)
    assert not pods.is_retry("a", now=3 * REMEMBERED_SECONDS + 1)


def test_those_that_never_come_again_are_forgotten() -> None:
    pods = OfferedPods()
    for number in range(10):
        pods.offered_some(f"old{number}", offered=16, now=0.0)
    pods.offered_some("new", offered=16, now=REMEMBERED_SECONDS + 1)
    assert len(pods) == 1


def test_no_more_are_remembered_than_the_most_and_the_last_tried_stay() -> None:
    pods = OfferedPods(most=3)
    for number in range(3):
        pods.offered_some(f"p{number}", offered=16, now=0.0)
    assert pods.is_retry("p0", now=1.0)
    pods.offered_some("p3", offered=16, now=2.0)
    assert len(pods) == 3
    assert pods.is_retry("p0", now=3.0)
    assert not pods.is_retry("p1", now=3.0)


def test_a_pod_without_a_uid_is_not_remembered() -> None:
    pods = OfferedPods()
    pods.offered_some("", offered=16, now=0.0)
    assert len(pods) == 0


def test_a_volume_may_keep_a_pod_waiting_for_as_long_as_kube_scheduler_lets_it() -> None:
    """It gives a volume 600 s (``bindTimeoutSeconds``), and only then tries the pod again."""
    pods = OfferedPods()
    pods.offered_some("a", offered=16, now=0.0)
    assert pods.is_retry("a", now=600.0 + 300.0)


def test_that_nodes_were_left_out_counts_for_that_attempt_alone() -> None:
    pods = OfferedPods()
    pods.offered_some("a", offered=16, now=0.0)
    assert pods.has_others("a", now=0.5)
    assert not pods.has_others("a", now=0.5), "whoever was told waits for the next attempt"
    pods.offered_some("a", offered=16, now=2.0)
    assert not pods.has_others("a", now=2.0 + ATTEMPT_SECONDS + 0.1), "by then it is another attempt"
    pods.offered_some("a", offered=16, now=5.0)
    assert pods.is_retry("a", now=5.1)
    assert not pods.has_others("a", now=5.2), "it was offered all"
    assert not pods.has_others("b", now=5.2)


def test_who_was_refused_all_that_it_was_offered_is_told_once() -> None:
    pods = OfferedPods()
    for uid in ("refused", "preempting", "scored", "again", "bound"):
        pods.offered_some(uid, offered=16, now=0.0)
    assert pods.has_others("preempting", now=0.1)
    pods.proceeded("scored")
    assert pods.is_retry("again", now=0.5)
    pods.settled("bound")
    now = ATTEMPT_SECONDS + 0.1
    assert pods.take_refused(now=now) == ["refused", "preempting"]
    assert pods.take_refused(now=now) == []
    assert pods.is_retry("refused", now=now), "it is known still"


def test_a_pod_with_which_kube_scheduler_may_go_on_yet_is_not_taken_for_refused() -> None:
    pods = OfferedPods()
    pods.offered_some("a", offered=16, now=0.0)
    assert pods.take_refused(now=ATTEMPT_SECONDS / 2) == []


def test_five_thousand_pods_that_others_refuse_are_all_known_when_they_come_again() -> None:
    """Who is forgotten is offered the same nodes again, for its UID says which."""
    pods = OfferedPods()
    uids = [f"waits-{number}" for number in range(5000)]
    for uid in uids:
        pods.offered_some(uid, offered=16, now=0.0)
    assert all(pods.is_retry(uid, now=60.0) for uid in uids)


def test_one_offered_a_single_node_may_wait_for_its_volume_before_it_is_bound() -> None:
    """kube-scheduler asks for no scores of one node. Taken for refused it would have all that wait tried."""
    pods = OfferedPods()
    pods.offered_some("a", offered=1, now=0.0)
    assert pods.take_refused(now=VOLUME_SECONDS - 1.0) == []
    assert pods.take_refused(now=VOLUME_SECONDS + 1.0) == ["a"]
    pods.offered_some("b", offered=1, now=0.0)
    assert pods.has_others("b", now=0.5), "it needs no other pod's place"
