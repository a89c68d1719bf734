"""Which nominations are given up: those from which nothing can come."""

import msgspec
import pytest
from tests.samples.extender import asked, pod_request, reference, reporting, share_node
from tests.samples.preemption import bound, ledger_with

from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_extender.decide.preemption.nomination import given_up_reason, is_doubtful

REASON = "insufficient GPU memory in one card: asked 10, largest free 6"


def nominated(node: str = "n1", *, policy: str = "PreemptLowerPriority", priority: int = 10) -> KubePod:
    return msgspec.convert(
        {
            "metadata": {"uid": "uid-p", "namespace": "default", "name": "p"},
            "spec": {"priority": priority, "preemptionPolicy": policy},
            "status": {"nominatedNodeName": node},
        },
        KubePod,
    )


def two_thirds_each() -> Ledger:
    """n1 has 12 units free, 6 on each of two cards."""
    return ledger_with(16, 16, x={"c0": 10}, y={"c1": 10})


def reason(ledger: Ledger, *ending: str, units: int = 10) -> str:
    return given_up_reason(ledger, nominated(), pod_request(units), ending=[bound(uid) for uid in ending])


class TestDoubtful:
    @pytest.mark.parametrize(
        ("pod", "request_", "doubtful"),
        [
            pytest.param(nominated(), pod_request(10), True, id="it may wait in vain"),
            pytest.param(nominated(""), pod_request(10), False, id="not nominated"),
            pytest.param(nominated("n2"), pod_request(10), False, id="for a node that shares no cards"),
            pytest.param(nominated(), pod_request(0), False, id="asks for nothing of ours"),
            pytest.param(
                nominated(policy="Never"), pod_request(10), False, id="kube-scheduler did not nominate it"
            ),
        ],
    )
    def test_of_a_pod_without_units(self, pod: KubePod, request_: PodRequest, *, doubtful: bool) -> None:
        assert is_doubtful(two_thirds_each(), pod, request_) is doubtful

    def test_not_while_a_card_is_held_for_it(self) -> None:
        ledger = two_thirds_each()
        ledger.hold(reference("p"), node="n1", request=asked(10), priority=10, gone={"x"}, until=1.0)
        assert not is_doubtful(ledger, nominated(), pod_request(10))
        ledger.end_hold("uid-p")
        assert is_doubtful(ledger, nominated(), pod_request(10))

    def test_not_while_it_is_being_bound(self) -> None:
        ledger = two_thirds_each()
        ledger.reserve(reference("p"), node="n1", request=asked(6), priority=10)
        assert not is_doubtful(ledger, nominated(), pod_request(6))

    def test_not_where_the_node_takes_nobody_for_a_while(self) -> None:
        ledger = two_thirds_each()
        ledger.set_share_node(share_node("n1", closed_reason="its plugin starts"))
        assert not is_doubtful(ledger, nominated(), pod_request(10))


class TestGivenUp:
    def test_where_the_sum_would_do_and_no_card_does(self) -> None:
        assert reason(two_thirds_each()) == (
            "the nomination of node n1 is given up, the pods that end there do not free enough: " + REASON
        )

    @pytest.mark.parametrize("ending", ["x", "y"])
    def test_not_where_a_pod_ends_that_frees_a_card(self, ending: str) -> None:
        assert reason(two_thirds_each(), ending) == ""

    def test_where_those_that_end_free_too_little(self) -> None:
        ledger = ledger_with(16, 16, x={"c0": 10}, y={"c1": 10}, z={"c0": 3})
        assert reason(ledger, "z").endswith("largest free 6")

    def test_not_where_units_of_a_pod_that_is_gone_count_still(self) -> None:
        ledger = two_thirds_each()
        ledger.pod_deleted("y", now=0.0)
        assert reason(ledger) == ""

    @pytest.mark.parametrize(
        ("priority", "given_up"), [(9, False), (10, True), (11, True)], ids=["lesser", "equal", "greater"]
    )
    def test_what_is_held_for_others_counts_if_they_are_no_lesser(
        self, priority: int, *, given_up: bool
    ) -> None:
        ledger = ledger_with(16, 16, x={"c0": 10}, y={"c1": 10})
        ledger.hold(reference("q"), node="n1", request=asked(10), priority=priority, gone={"x"}, until=1.0)
        assert bool(reason(ledger, "x")) is given_up


def test_a_victim_that_is_gone_counts_as_ending_until_the_plugin_has_told() -> None:
    ledger = two_thirds_each()
    there = reporting(share_node("n1", 16, 16), 0, x=10)
    ledger.set_share_node(reporting(there, 1, y=10))
    ledger.pod_deleted("y", now=0.0)
    assert not ledger.fits("n1", pod_request(10))
    assert reason(ledger) == ""
    ledger.set_share_node(reporting(there, 1, z=10))
    assert reason(ledger), "the report contradicts: somebody else has the units"
