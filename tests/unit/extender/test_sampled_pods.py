"""Pods that fit a node that kube-scheduler has not looked at are refused in other words each time."""

import pytest
from tests.samples.extender import pod_request, share_node

from gpushare_extender.decide.filter import FilterResult, filter_nodes
from gpushare_extender.decide.sampled_pods import REMEMBERED_SECONDS, SampledPods
from gpushare_extender.ledger.ledger import Ledger

FULL = [f"full-{index:03}" for index in range(300)]
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
    return pods.searched(result, ledger=ledger, uid=uid, request=ASKED, offered=len(names), now=now)


def messages(result: FilterResult) -> set[str]:
    return {*result.failed.values(), *result.unresolvable.values()}


def test_each_refusal_says_something_else_while_another_node_has_room(ledger: Ledger) -> None:
    pods = SampledPods()
    said = [messages(told(pods, ledger, FULL[:150])) for _ in range(3)]
    assert all(len(each) == 1 for each in said)
    assert len(set.union(*said)) == 3


def test_it_ends_when_all_nodes_were_gone_round_twice(ledger: Ledger) -> None:
    """Something else than chance keeps the pod from the node, such as its node selector."""
    pods = SampledPods()
    said = [messages(told(pods, ledger, FULL[:150])) for _ in range(8)]
    assert len(set.union(*said[:6])) == 6
    assert said[6] == said[7] == messages(filter_nodes(ledger, FULL[:150], uid="p", request=ASKED))


def test_it_begins_anew_with_the_attempt_after_five_minutes(ledger: Ledger) -> None:
    pods = SampledPods()
    for _ in range(8):
        told(pods, ledger, FULL[:150])
    again = [messages(told(pods, ledger, FULL[:150], now=REMEMBERED_SECONDS + 1.0)) for _ in range(2)]
    assert again[0] != again[1]


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


def test_those_refused_longest_ago_are_forgotten_first(ledger: Ledger) -> None:
    pods = SampledPods(most=2)
    first = messages(told(pods, ledger, FULL[:150], uid="a"))
    for uid in ("b", "c"):
        told(pods, ledger, FULL[:150], uid=uid)
    assert messages(told(pods, ledger, FULL[:150], uid="a")) == first
    assert messages(told(pods, ledger, FULL[:150], uid="c")) != first
