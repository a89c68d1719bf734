"""Pods that fit a node that kube-scheduler has not looked at are refused in other words each time."""

from itertools import cycle

import pytest
from tests.samples.extender import pod_request, reference, share_node

from gpushare_core.scheduling.fit.candidates import SAMPLE
from gpushare_core.scheduling.fit.filter import FilterResult, filter_nodes
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.decide.waiting.sampled_pods import (
    A_SECOND,
    AT_ONCE,
    ATTEMPT_SECONDS,
    REMEMBERED_SECONDS,
    SAME_NODES,
    SPARED_SECONDS,
    SampledPods,
)

FULL = [f"full-{index:03}" for index in range(300)]
SAMPLES = (FULL[:150], FULL[150:])
"""What kube-scheduler offers one attempt after the other."""
ROOM = "room"
ASKED = pod_request(12)


@pytest.fixture
def ledger() -> Ledger:
    """300 nodes without room for 12 units, and one with."""
    ledger = Ledger()
    ledger.replace_share_nodes([*(share_node(name, 8) for name in FULL), share_node(ROOM, 16)])
    return ledger


def told(
    pods: SampledPods, ledger: Ledger, names: list[str], *, uid: str = "p", now: float = 0.0
) -> FilterResult:
    result = filter_nodes(ledger, names, uid=uid, request=ASKED)
    assert not result.passing
    return pods.searched(result, ledger=ledger, uid=uid, request=ASKED, names=names, now=now)


def messages(result: FilterResult) -> set[str]:
    return {*result.failed.values(), *result.unresolvable.values()}


def is_tried_again(
    pods: SampledPods, ledger: Ledger, names: list[str], *, uid: str = "p", now: float = 0.0
) -> bool:
    """Returns whether the refusal says that others are looked for."""
    plain = messages(filter_nodes(ledger, names, uid=uid, request=ASKED))
    return messages(told(pods, ledger, names, uid=uid, now=now)) != plain


def test_each_refusal_says_something_else_while_another_node_has_room(ledger: Ledger) -> None:
    pods = SampledPods()
    said = [messages(told(pods, ledger, FULL[:150])) for _ in range(3)]
    assert all(len(sentence) == 1 for sentence in said)
    assert len(set.union(*said)) == 3


def test_it_ends_when_all_nodes_were_gone_round_twice(ledger: Ledger) -> None:
    """Something else than chance keeps the pod from the node, such as its node selector."""
    pods, samples = SampledPods(), cycle(SAMPLES)
    said = [messages(told(pods, ledger, next(samples))) for _ in range(8)]
    assert len(set.union(*said[:6])) == 6
    assert said[6] == said[7] == messages(filter_nodes(ledger, FULL[:150], uid="p", request=ASKED))


def test_it_begins_anew_with_the_attempt_after_five_minutes(ledger: Ledger) -> None:
    pods, samples = SampledPods(), cycle(SAMPLES)
    for _ in range(8):
        told(pods, ledger, next(samples))
    again = [messages(told(pods, ledger, next(samples), now=REMEMBERED_SECONDS + 1.0)) for _ in range(2)]
    assert again[0] != again[1]


def test_it_ends_soon_where_kube_scheduler_offers_the_same_nodes_each_time(ledger: Ledger) -> None:
    """It looks at all that the pod's node selector lets it, and the room is elsewhere."""
    pods = SampledPods()
    again = [is_tried_again(pods, ledger, FULL[:150]) for _ in range(SAME_NODES + 2)]
    assert again == [*([True] * SAME_NODES), False, False]
    later = REMEMBERED_SECONDS + 1.0
    assert not is_tried_again(pods, ledger, FULL[:150], now=later)
    assert is_tried_again(pods, ledger, FULL[150:], now=later)


def test_a_search_has_ended_when_another_attempt_is_of_no_use(ledger: Ledger) -> None:
    pods = SampledPods()
    for _ in range(SAME_NODES):
        told(pods, ledger, FULL[:150])
        assert not pods.has_ended("p")
    told(pods, ledger, FULL[:150])
    assert pods.has_ended("p")
    told(pods, ledger, FULL[150:])
    assert not pods.has_ended("p"), "it was offered others after all"
    assert not pods.has_ended("nobody")


def test_without_an_attempt_left_for_it_a_search_has_not_ended(ledger: Ledger) -> None:
    pods = SampledPods()
    for index in range(AT_ONCE):
        told(pods, ledger, FULL[:150], uid=f"p{index}")
    assert not is_tried_again(pods, ledger, FULL[:150])
    assert not pods.has_ended("p")


def test_the_same_nodes_by_chance_end_nothing_where_it_was_offered_others(ledger: Ledger) -> None:
    pods = SampledPods()
    samples = [FULL[150:], *([FULL[:150]] * (SAME_NODES + 2))]
    assert all(is_tried_again(pods, ledger, names) for names in samples)


def test_it_goes_on_where_kube_scheduler_asks_about_the_nominated_node_first(ledger: Ledger) -> None:
    pods, said = SampledPods(), []
    for names in SAMPLES:
        assert not is_tried_again(pods, ledger, names[:1])
        said.append(messages(told(pods, ledger, names)))
    assert said[0] != said[1]


def test_it_begins_anew_when_another_node_has_room(ledger: Ledger) -> None:
    """And in words that were not used yet: the same ones would change nothing."""
    pods, samples = SampledPods(), cycle(SAMPLES)
    said = [messages(told(pods, ledger, next(samples))) for _ in range(8)]
    ledger.set_share_node(share_node("more", 16))
    assert messages(told(pods, ledger, next(samples))) not in said


def test_what_is_held_for_the_pod_is_room(ledger: Ledger) -> None:
    ledger.hold(reference("p", uid="p"), node=ROOM, request=ASKED, priority=5, until=60.0)
    pods = SampledPods()
    assert is_tried_again(pods, ledger, FULL[:150], uid="p")
    assert not is_tried_again(pods, ledger, FULL[:150], uid="another")


def test_all_pods_together_are_tried_again_only_so_often(ledger: Ledger) -> None:
    """Each attempt keeps kube-scheduler from the other pods."""
    pods = SampledPods()
    for index in range(AT_ONCE):
        assert is_tried_again(pods, ledger, FULL[:150], uid=f"p{index}")
    assert not is_tried_again(pods, ledger, FULL[:150], uid="one more")
    assert is_tried_again(pods, ledger, FULL[:150], uid="later", now=1.0 / A_SECOND)
    assert not is_tried_again(pods, ledger, FULL[:150], uid="as late", now=1.0 / A_SECOND)


def test_one_for_which_a_card_is_held_needs_no_attempt_that_is_left(ledger: Ledger) -> None:
    """Others were evicted for it: in vain, if it is not offered that node before the hold ends."""
    ledger.hold(reference("p", uid="p"), node=ROOM, request=ASKED, priority=5, until=60.0)
    ledger.set_share_node(share_node("more", 16))
    pods = SampledPods()
    for index in range(AT_ONCE):
        assert is_tried_again(pods, ledger, FULL[:150], uid=f"p{index}")
    assert is_tried_again(pods, ledger, FULL[:150])
    assert not is_tried_again(pods, ledger, FULL[:150], uid="as late", now=1.0 / A_SECOND), "it is one fewer"


def test_many_for_which_cards_are_held_keep_others_waiting_for_seconds_alone(ledger: Ledger) -> None:
    """What they take in advance has an end: all others had stood still for minutes."""
    pods, held = SampledPods(), [f"held-{index}" for index in range(3 * AT_ONCE)]
    for name in held:
        ledger.set_share_node(share_node(name, 16))
        ledger.hold(reference(name, uid=name), node=name, request=ASKED, priority=5, until=60.0)
        assert is_tried_again(pods, ledger, FULL[:150], uid=name)
    assert not is_tried_again(pods, ledger, FULL[:150], uid="p", now=AT_ONCE / A_SECOND)
    assert is_tried_again(pods, ledger, FULL[:150], uid="p", now=(AT_ONCE + 1) / A_SECOND)


def test_thousands_that_search_in_vain_leave_the_attempts_to_others(ledger: Ledger) -> None:
    """Of more than are remembered each began anew, and all of them together took all attempts for ever."""
    pods, names = SampledPods(), FULL[:SAMPLE]
    plain = filter_nodes(ledger, names, uid="p", request=ASKED)
    for number in range(SAME_NODES + 2):
        again = [
            pods.searched(
                plain, ledger=ledger, uid=f"p{index}", request=ASKED, names=names, now=30.0 * number
            )
            for index in range(5000)
        ]
    assert all(sentence is plain for sentence in again)


def test_attempts_that_find_room_do_not_count(ledger: Ledger) -> None:
    pods = SampledPods()
    for index in range(AT_ONCE + 1):
        assert is_tried_again(pods, ledger, FULL[:150], uid=f"p{index}")
        pods.settled(f"p{index}")


def test_a_pod_that_is_tried_again_needs_no_victims_at_this_attempt(ledger: Ledger) -> None:
    pods = SampledPods()
    assert not pods.is_to_try_again("p", now=0.0)
    assert is_tried_again(pods, ledger, FULL[:150], now=5.0)
    assert pods.is_to_try_again("p", now=5.0)
    assert not pods.is_to_try_again("p", now=5.1 + ATTEMPT_SECONDS)
    while is_tried_again(pods, ledger, FULL[:150], now=6.0):
        pass
    assert not pods.is_to_try_again("p", now=6.0)


def test_a_pod_does_not_spare_others_for_ever(ledger: Ledger) -> None:
    """Wherever it may not go nodes have room again and again."""
    pods, samples = SampledPods(), cycle(SAMPLES)
    for second in range(60):
        ledger.set_share_node(share_node(f"more-{second}", 16))
        assert is_tried_again(pods, ledger, next(samples), now=float(second))
        assert pods.is_to_try_again("p", now=float(second)) is (second <= SPARED_SECONDS)


@pytest.mark.parametrize(
    "offered",
    [
        pytest.param(FULL[:99], id="fewer nodes than kube-scheduler looks for: it has looked at all"),
        pytest.param(FULL[:10], id="a few nodes"),
    ],
)
def test_where_every_node_was_looked_at_the_refusal_stays_the_same(
    ledger: Ledger, offered: list[str]
) -> None:
    pods = SampledPods()
    assert messages(told(pods, ledger, offered)) == messages(told(pods, ledger, offered))


def test_a_pod_that_fits_nowhere_is_refused_in_the_same_words(ledger: Ledger) -> None:
    ledger.replace_share_nodes([share_node(name, 8) for name in FULL])
    pods = SampledPods()
    assert messages(told(pods, ledger, FULL[:150])) == messages(told(pods, ledger, FULL[:150]))


def test_a_pod_that_has_found_room_is_forgotten(ledger: Ledger) -> None:
    pods = SampledPods()
    first = messages(told(pods, ledger, FULL[:150]))
    told(pods, ledger, FULL[:150])
    pods.settled("p")
    assert messages(told(pods, ledger, FULL[:150])) == first


def test_who_was_forgotten_is_refused_in_other_words_than_before(ledger: Ledger) -> None:
    """Else nothing in the pod changes, and the attempt that it took from all is lost."""
    pods, said = SampledPods(most=2), dict[str, list[set[str]]]()
    for samples in (FULL[:150], FULL[150:], FULL[:150]):
        for uid in ("a", "b", "c"):
            said.setdefault(uid, []).append(messages(told(pods, ledger, samples, uid=uid)))
    for value in said.values():
        assert value[0] != value[1] != value[2]
