"""Which nodes pass, and what the event says of those that do not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.extender import RESOURCE, asked, pod_request, pod_update, share_node

from gpushare_core.dialects.annotation_room import MAX_BYTES, worst_size
from gpushare_core.placement.modes.table import MODES
from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.scheduling.fit.filter import FilterResult, filter_nodes
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.unfit_reason import Refusal


@pytest.fixture
def ledger() -> Ledger:
    """n1 is empty, n2 has 4 free on its emptiest card, n3 has one sick card, n4 is closed."""
    ledger = Ledger()
    ledger.replace_share_nodes(
        [
            share_node("n1"),
            share_node("n2"),
            share_node("n3", 16, 8, sick=(0,)),
            share_node("n4", closed_reason="no healthy GPU card"),
        ]
    )
    ledger.set_pod(pod_update("a", node="n2", c0=12))
    ledger.set_pod(pod_update("b", node="n2", c1=14))
    return ledger


SLICES = MODES["Slices"]
ALL = ["n1", "n2", "n3", "n4", "n5"]


def test_a_pod_that_asks_for_nothing_passes_everywhere(ledger: Ledger) -> None:
    assert filter_nodes(ledger, ALL, uid="p", request=pod_request(0)) == FilterResult(ALL)


def test_nodes_with_room_on_one_card_pass_in_the_order_offered(ledger: Ledger) -> None:
    assert filter_nodes(ledger, ["n2", "n1"], uid="p", request=pod_request(4)) == FilterResult(["n2", "n1"])


def test_every_node_that_fails_says_why(ledger: Ledger) -> None:
    result = filter_nodes(ledger, ALL, uid="p", request=pod_request(12))
    assert result.passing == ["n1"]
    assert result.failed == {"n2": "insufficient GPU memory in one card: asked 12, largest free 4"}
    assert result.unresolvable == {
        "n3": "insufficient GPU memory in one card: asked 12, largest free 8, biggest card 8"
        "; 1 unhealthy or cordoned card does not count",
        "n4": "no healthy GPU card",
        "n5": "node(s) that share no GPU cards",
    }


def test_nodes_with_too_little_say_the_same_whatever_each_of_them_has(ledger: Ledger) -> None:
    """kube-scheduler writes each message into the pod, with the number of nodes that say so."""
    ledger.set_pod(pod_update("c", node="n1", c0=10, c1=5))
    result = filter_nodes(ledger, ["n1", "n2"], uid="p", request=pod_request(14))
    reason = "insufficient GPU memory in one card: asked 14, largest free 11"
    assert result.failed == {"n1": reason, "n2": reason}


def test_a_pod_of_more_units_than_its_kubelet_can_report_passes_nowhere() -> None:
    """Though a card has that many: it would be Pending for ever, and nobody could delete it."""
    ledger = Ledger()
    ledger.replace_share_nodes([share_node("n1", 81_920, unit="1Mi")])
    assert filter_nodes(ledger, ["n1"], uid="p", request=pod_request(65_536)).passing == ["n1"]
    refused = filter_nodes(ledger, ["n1"], uid="p", request=pod_request(65_537))
    assert (refused.passing, refused.failed, refused.kinds) == ([], {}, {Refusal.TOO_MANY_UNITS})
    assert refused.is_for_good
    (reason,) = {*refused.unresolvable.values()}
    assert "asks for 65537 units, but a pod may have at most 65536" in reason
    assert "memoryUnit" in reason


def test_a_pod_beside_whose_annotations_ours_would_not_fit_passes_nowhere(ledger: Ledger) -> None:
    """And evicting others would be of no use: kube-scheduler is told so."""
    request = pod_request(4)
    most = MAX_BYTES - worst_size(request)
    assert filter_nodes(ledger, ALL, uid="p", request=request, annotations_size=most).passing == [
        "n1",
        "n2",
        "n3",
    ]
    refused = filter_nodes(ledger, ALL, uid="p", request=request, annotations_size=most + 1)
    assert (refused.passing, refused.failed, [*refused.unresolvable]) == ([], {}, ALL)
    assert (refused.kinds, refused.is_for_good) == ({Refusal.ANNOTATIONS_FULL}, True)
    (reason,) = {*refused.unresolvable.values()}
    assert f"the pod has {most + 1} bytes of annotations" in reason


def test_a_pod_that_holds_units_passes_there_whatever_its_annotations_are_by_now(ledger: Ledger) -> None:
    result = filter_nodes(ledger, ["n1", "n2"], uid="a", request=pod_request(12), annotations_size=MAX_BYTES)
    assert result.passing == ["n2"]


@pytest.mark.parametrize(
    ("count", "reasons"),
    [
        pytest.param(3, {f"not registered: no card: GPU-{index}" for index in range(3)}, id="few: in full"),
        pytest.param(300, {"not registered"}, id="many: what they have in common"),
    ],
)
def test_closed_nodes_make_no_sentence_as_long_as_the_cluster_is_large(
    ledger: Ledger, count: int, reasons: set[str]
) -> None:
    names = [f"closed-{index}" for index in range(count)]
    for index, name in enumerate(names):
        reason = f"not registered: no card: GPU-{index}"
        ledger.set_share_node(share_node(name, closed_reason=reason))
    result = filter_nodes(ledger, names, uid="p", request=pod_request(1))
    assert {*result.unresolvable.values()} == reasons
    assert [*result.unresolvable] == names


def test_more_than_any_card_holds_fails_although_the_node_has_it(ledger: Ledger) -> None:
    result = filter_nodes(ledger, ["n1"], uid="p", request=pod_request(20))
    assert result.unresolvable == {
        "n1": "insufficient GPU memory in one card: asked 20, largest free 16, biggest card 16"
    }


def test_a_pod_that_holds_units_passes_only_where_it_holds_them(ledger: Ledger) -> None:
    result = filter_nodes(ledger, ["n1", "n2"], uid="a", request=pod_request(12))
    assert (result.passing, list(result.unresolvable)) == (["n2"], ["n1"])
    assert "node(s) other than n2" in result.unresolvable["n1"]


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        pytest.param(
            PodRequest((asked(1, ResourceClass.SLICE),)),
            "node(s) that serve gpushare.io/memory, and the pod asks for gpushare.io/slice",
            id="a class that the node does not serve",
        ),
        pytest.param(
            PodRequest((asked(4), asked(1, ResourceClass.CARD, container="whole"))),
            "the pod asks for gpushare.io/memory and gpushare.io/card together: only mode Mixed allows that",
            id="two classes",
        ),
        pytest.param(
            PodRequest((asked(4), asked(1, ResourceClass.CARD))),
            "container main asks for gpushare.io/memory and gpushare.io/card together: ask for each"
            " of them in a container of its own",
            id="two classes in one container",
        ),
    ],
)
def test_what_no_eviction_would_help(ledger: Ledger, request_: PodRequest, reason: str) -> None:
    result = filter_nodes(ledger, ["n1", "n2"], uid="p", request=request_)
    assert result == FilterResult([], unresolvable={"n1": reason, "n2": reason})


def test_slices_need_a_card_each() -> None:
    ledger = Ledger()
    ledger.replace_share_nodes(
        [share_node(name, 2, 2, 2, mode=SLICES, unit="1/2 card") for name in ("n1", "n2")]
    )
    ledger.set_pod(pod_update("a", node="n2", unit="1/2 card", c0=2))
    ledger.set_pod(pod_update("b", node="n2", unit="1/2 card", c1=2))
    result = filter_nodes(ledger, ["n1", "n2"], uid="p", request=PodRequest((asked(2, ResourceClass.SLICE),)))
    assert result == FilterResult(
        ["n1"], {"n2": "insufficient GPU slices: needs 2 cards with a free slice, has 1"}
    )
    most = filter_nodes(ledger, ["n1"], uid="p", request=PodRequest((asked(4, ResourceClass.SLICE),)))
    assert most.unresolvable == {
        "n1": "insufficient GPU slices: needs 4 cards with a free slice, has 3, of 3 in all"
    }


def test_no_nodes_offered(ledger: Ledger) -> None:
    assert filter_nodes(ledger, [], uid="p", request=pod_request(4)) == FilterResult([])


@given(
    used=st.lists(st.integers(0, 20), min_size=1, max_size=12),
    units=st.integers(0, 20),
    offered=st.lists(st.integers(0, 14), unique=True),
)
def test_every_offered_node_is_answered_exactly_once(used: list[int], units: int, offered: list[int]) -> None:
    ledger = Ledger()
    for index, amount in enumerate(used):
        ledger.set_share_node(share_node(f"n{index}", 16))
        ledger.set_pod(pod_update(f"p{index}", node=f"n{index}", c0=amount))
    names = [f"n{index}" for index in offered]
    result = filter_nodes(ledger, names, uid="new", request=pod_request(units))
    assert sorted([*result.passing, *result.failed, *result.unresolvable]) == sorted(names)
    if units:
        assert result.passing == [name for name in names if ledger.greatest[RESOURCE].get(name, -1) >= units]
