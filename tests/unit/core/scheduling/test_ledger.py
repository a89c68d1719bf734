"""The ledger's sums: GPUShareNodes, allocations and reservations, whatever the order they come in."""

import pytest
from msgspec import structs
from tests.fakes.ledger_listener import HeardChanges
from tests.samples.extender import GI, RESOURCE, asked, holder, pod_update, reference, reporting, share_node

from gpushare_core.placement.card_choice import Strategy
from gpushare_core.scheduling.ledger.ledger import DoesNotFitError, Ledger
from gpushare_core.scheduling.ledger.node_sums import GONE_SECONDS
from gpushare_core.scheduling.ledger.unreleased_pods import UNRELEASED_SECONDS
from gpushare_core.scheduling.objects.holder import Holder, PodUpdate
from gpushare_core.scheduling.objects.share_node import ReportedHolder


@pytest.fixture
def ledger() -> Ledger:
    """Two nodes of two cards with 16 units each."""
    ledger = Ledger()
    ledger.replace_share_nodes([share_node("n1"), share_node("n2")])
    return ledger


def reserve(ledger: Ledger, uid: str, units: int, node: str = "n1") -> Holder:
    return ledger.reserve(reference(uid, uid=uid), node=node, request=asked(units))


def used(ledger: Ledger, node: str = "n1") -> list[int]:
    sums = ledger.node(node)
    return [card.allocated for card in sums.cards()] if sums else []


def test_an_allocation_takes_units_of_its_card(ledger: Ledger) -> None:
    ledger.set_pod(pod_update("a", c0=4))
    ledger.set_pod(pod_update("b", c0=12))
    assert used(ledger) == [16, 0]
    assert dict(ledger.greatest[RESOURCE]) == {"n1": 16, "n2": 16}


def test_the_same_update_twice_counts_once(ledger: Ledger) -> None:
    ledger.set_pod(pod_update("a", c0=4))
    ledger.set_pod(pod_update("a", c0=4))
    assert used(ledger) == [4, 0]


def test_an_annotation_rewritten_by_the_plugin_moves_the_units(ledger: Ledger) -> None:
    ledger.set_pod(pod_update("a", c0=4))
    ledger.set_pod(pod_update("a", c1=4))
    assert used(ledger) == [0, 4]


class TestAnotherNode:
    """A bound pod never changes its node: of two that its annotation has named one is wrong."""

    def test_both_count_while_it_is_not_known_which(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=4))
        ledger.set_pod(pod_update("a", node="n2", c1=16))
        assert (used(ledger, "n1"), used(ledger, "n2")) == ([4, 0], [0, 16])

    def test_also_when_it_names_the_first_again(self, ledger: Ledger) -> None:
        for node in ("n1", "n2", "n1"):
            ledger.set_pod(pod_update("a", node=node, c0=4))
        assert (used(ledger, "n1"), used(ledger, "n2")) == ([4, 0], [4, 0])

    def test_the_one_where_the_kubelet_has_the_pod_is_right(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", node="n2", c1=16))
        ledger.set_pod(pod_update("a", c0=4))
        ledger.set_share_node(reporting(share_node("n1"), other=4))
        assert used(ledger, "n2") == [0, 16]
        ledger.set_share_node(reporting(share_node("n1"), a=4))
        assert (used(ledger, "n1"), used(ledger, "n2")) == ([4, 0], [0, 0])

    def test_also_where_that_was_reported_first(self, ledger: Ledger) -> None:
        ledger.set_share_node(reporting(share_node("n1"), a=4))
        ledger.set_pod(pod_update("a", node="n2", c1=16))
        ledger.set_pod(pod_update("a", c0=4))
        assert (used(ledger, "n1"), used(ledger, "n2")) == ([4, 0], [0, 0])

    def test_one_book_alone_frees_nothing(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=4))
        ledger.set_pod(pod_update("a", node="n2", c1=16))
        ledger.set_share_node(reporting(share_node("n1"), a=4))
        assert (used(ledger, "n1"), used(ledger, "n2")) == ([4, 0], [0, 16])

    def test_both_are_free_when_the_pod_is_gone(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=4))
        ledger.set_pod(pod_update("a", node="n2", c1=16))
        ledger.drop_pod("a")
        assert (used(ledger, "n1"), used(ledger, "n2")) == ([0, 0], [0, 0])

    def test_a_list_frees_none_of_a_pod_that_is_still_there(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=4))
        ledger.replace_pods([pod_update("a", node="n2", c1=16)], begun=1.0)
        assert (used(ledger, "n1"), used(ledger, "n2")) == ([4, 0], [0, 16])
        ledger.replace_pods([], begun=2.0)
        ledger.free_unreleased(now=2.0 + UNRELEASED_SECONDS)
        assert (used(ledger, "n1"), used(ledger, "n2")) == ([0, 0], [0, 0])


def test_a_pod_that_is_gone_gives_its_units_back(ledger: Ledger) -> None:
    ledger.set_pod(pod_update("a", c0=4))
    ledger.drop_pod("a")
    ledger.drop_pod("a")
    assert used(ledger) == [0, 0]


class TestDepartures:
    """The kubelet may have admitted a pod that is gone before its plugin could tell."""

    def test_it_counts_until_the_plugin_would_have_told_of_it(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=4))
        ledger.pod_deleted("a", now=100.0)
        ledger.set_share_node(reporting(share_node("n1"), other=1))
        ledger.free_unreleased(now=99.0 + UNRELEASED_SECONDS)
        assert (used(ledger), ledger.holder("a")) == ([5, 0], None)
        ledger.free_unreleased(now=100.0 + UNRELEASED_SECONDS)
        assert used(ledger) == [1, 0]

    def test_once_it_tells_that_counts_alone(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=4))
        ledger.pod_deleted("a", now=100.0)
        ledger.set_share_node(reporting(share_node("n1"), 1, a=4))
        assert used(ledger) == [0, 4]
        ledger.set_share_node(share_node("n1"))
        assert used(ledger) == [0, 0]

    def test_what_it_tells_of_afterwards_comes_back(self, ledger: Ledger) -> None:
        """Nobody has to be evicted for it."""
        ledger.set_pod(pod_update("a", c0=4))
        ledger.pod_deleted("a", now=100.0)
        ledger.set_share_node(reporting(share_node("n1"), 0, a=4))
        assert (used(ledger), ledger.unreleased("n1")) == ([4, 0], frozenset({"a"}))
        ledger.free_unreleased(now=100.0 + GONE_SECONDS)
        assert (used(ledger), ledger.unreleased("n1")) == ([4, 0], frozenset())

    @pytest.mark.parametrize("told_first", [True, False])
    def test_what_it_has_told_of_one_container_says_nothing_of_the_next(
        self, ledger: Ledger, *, told_first: bool
    ) -> None:
        """Deleted by force while the kubelet gave its second container units of another card."""
        ledger.set_pod(pod_update("a", c0=4, c1=4))
        if told_first:
            ledger.set_share_node(reporting(share_node("n1"), 0, a=4))
        ledger.pod_deleted("a", now=100.0)
        ledger.set_share_node(reporting(share_node("n1"), 0, a=4))
        assert used(ledger) == [4, 4]
        ledger.set_share_node(reporting(reporting(share_node("n1"), 0, a=4), 1, a=4))
        ledger.set_share_node(share_node("n1"))
        assert used(ledger) == [0, 0]

    def test_what_was_told_of_half_is_not_free_at_once(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=8))
        ledger.set_share_node(reporting(share_node("n1"), a=4))
        ledger.set_share_node(share_node("n1"))
        ledger.pod_deleted("a", now=100.0)
        assert used(ledger) == [8, 0]

    def test_nor_what_init_containers_lend_each_other(self, ledger: Ledger) -> None:
        """Two of 4 units, one after the other, before a container of 8."""
        node = reporting(share_node("n1"), a=4)
        lending = structs.replace(node.cards[0], holders=(ReportedHolder("a", "default", "a", 8, 4),))
        ledger.set_pod(pod_update("a", c0=8))
        ledger.set_share_node(structs.replace(node, cards=(lending, *node.cards[1:])))
        ledger.pod_deleted("a", now=100.0)
        assert used(ledger) == [8, 0]

    def test_what_was_told_of_and_given_back_is_free_at_once(self, ledger: Ledger) -> None:
        """The plugin may see a pod's end earlier than the API server says that it is gone."""
        ledger.set_share_node(reporting(share_node("n1"), a=4))
        ledger.set_pod(pod_update("a", c0=4))
        ledger.set_share_node(share_node("n1"))
        ledger.pod_deleted("a", now=100.0)
        assert used(ledger) == [0, 0]

    def test_a_doubted_pod_counts_on_every_node(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=4))
        ledger.set_pod(pod_update("a", node="n2", c1=16))
        ledger.pod_deleted("a", now=100.0)
        assert (used(ledger, "n1"), used(ledger, "n2")) == ([4, 0], [0, 16])
        ledger.set_share_node(reporting(share_node("n1"), a=4))
        assert (used(ledger, "n1"), used(ledger, "n2")) == ([4, 0], [0, 0])

    def test_a_bind_that_failed_leaves_nothing(self, ledger: Ledger) -> None:
        reserve(ledger, "a", 4)
        ledger.release("a")
        assert used(ledger) == [0, 0]

    def test_a_pod_that_is_seen_again_counts_once(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=4))
        ledger.pod_deleted("a", now=100.0)
        ledger.set_pod(pod_update("a", c1=4))
        ledger.free_unreleased(now=1000.0)
        assert used(ledger) == [0, 4]

    def test_a_list_without_it_counts_from_when_it_began(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=4))
        ledger.replace_pods([], begun=100.0)
        assert used(ledger) == [4, 0]
        ledger.free_unreleased(now=100.0 + UNRELEASED_SECONDS)
        assert used(ledger) == [0, 0]


def test_a_pod_whose_annotation_went_holds_what_it_said(ledger: Ledger) -> None:
    ledger.set_pod(pod_update("a", c0=4))
    ledger.set_pod(PodUpdate("a"))
    assert used(ledger) == [4, 0]
    ledger.drop_pod("a")
    assert used(ledger) == [0, 0]


def test_an_over_full_card_fits_nothing(ledger: Ledger) -> None:
    ledger.set_pod(pod_update("a", c0=24))
    ledger.set_pod(pod_update("b", c1=17))
    assert ledger.greatest[RESOURCE]["n1"] == 0
    with pytest.raises(DoesNotFitError, match="asked 1, largest free 0"):
        reserve(ledger, "c", 1)


def test_allocations_wait_for_their_card_to_appear() -> None:
    ledger = Ledger()
    ledger.set_pod(pod_update("a", c0=4))
    assert dict(ledger.greatest[RESOURCE]) == {}
    ledger.set_share_node(share_node("n1"))
    assert used(ledger) == [4, 0]


def test_a_card_that_disappears_and_comes_back_is_still_held(ledger: Ledger) -> None:
    ledger.set_pod(pod_update("a", c1=4))
    ledger.set_share_node(share_node("n1", 16))
    assert used(ledger) == [0]
    ledger.set_share_node(share_node("n1"))
    assert used(ledger) == [0, 4]


def test_a_node_without_its_share_node_takes_no_pods_but_keeps_its_sums(ledger: Ledger) -> None:
    ledger.set_pod(pod_update("a", c0=4))
    ledger.drop_share_node("n1")
    ledger.drop_share_node("never seen")
    assert "n1" not in ledger.greatest[RESOURCE]
    with pytest.raises(DoesNotFitError, match="share no GPU cards"):
        reserve(ledger, "b", 1)
    ledger.set_share_node(share_node("n1"))
    assert used(ledger) == [4, 0]


def test_nodes_that_are_not_listed_any_more_take_no_pods(ledger: Ledger) -> None:
    ledger.replace_share_nodes([share_node("n2"), share_node("n3")])
    assert sorted(ledger.greatest[RESOURCE]) == ["n2", "n3"]
    assert ledger.node("n1") is None


def test_a_closed_node_takes_no_pods(ledger: Ledger) -> None:
    ledger.set_share_node(share_node("n1", closed_reason="not today"))
    assert "n1" not in ledger.greatest[RESOURCE]
    with pytest.raises(DoesNotFitError, match="not today"):
        reserve(ledger, "a", 1)


def test_a_sick_card_is_not_chosen_and_its_pods_still_count(ledger: Ledger) -> None:
    ledger.set_pod(pod_update("a", c0=4))
    ledger.set_share_node(share_node("n1", 16, 16, sick=(0,)))
    assert reserve(ledger, "b", 4).shares == {"n1-1": 4}
    assert used(ledger) == [4, 4]


@pytest.mark.parametrize(
    ("strategy", "card"),
    [
        pytest.param(Strategy.BINPACK, "n1-0", id="binpack"),
        pytest.param(Strategy.SPREAD, "n1-1", id="spread"),
    ],
)
def test_the_node_s_strategy_chooses(ledger: Ledger, strategy: Strategy, card: str) -> None:
    ledger.set_share_node(share_node("n1", strategy=strategy))
    ledger.set_pod(pod_update("a", c0=4))
    assert reserve(ledger, "b", 4).shares == {card: 4}


@pytest.mark.parametrize(
    ("unit", "counted"),
    [
        pytest.param("256Mi", 4, id="smaller units: the kubelet will give four of the present size"),
        pytest.param(str(GI + 1), 5, id="rounded up"),
        pytest.param("2Gi", 8, id="bigger units"),
        pytest.param("much", 4, id="unknown unit"),
    ],
)
def test_units_of_another_size_are_converted(ledger: Ledger, unit: str, counted: int) -> None:
    ledger.set_pod(pod_update("a", unit=unit, c0=4))
    assert used(ledger) == [counted, 0]


def test_a_pod_bound_while_the_unit_grew_counts_as_what_the_kubelet_gives(ledger: Ledger) -> None:
    ledger.set_pod(pod_update("a", c0=8))
    ledger.set_share_node(share_node("n1", 8, 8, unit="2Gi"))
    assert used(ledger) == [8, 0]
    ledger.set_share_node(reporting(share_node("n1", 8, 8, unit="2Gi"), a=4))
    assert used(ledger) == [4, 0]


def test_a_change_of_the_unit_recounts_what_is_held(ledger: Ledger) -> None:
    ledger.set_pod(pod_update("a", c0=4))
    ledger.set_share_node(share_node("n1", 64, 64, unit="256Mi"))
    assert used(ledger) == [16, 0]
    ledger.drop_pod("a")
    assert used(ledger) == [0, 0]


class TestReservations:
    def test_reserved_units_are_not_free(self, ledger: Ledger) -> None:
        assert reserve(ledger, "a", 12) == holder("a", c0=12)
        assert reserve(ledger, "b", 12) == holder("b", c1=12)
        with pytest.raises(
            DoesNotFitError, match="insufficient GPU memory in one card: asked 12, largest free 4"
        ):
            reserve(ledger, "c", 12)
        assert ledger.greatest[RESOURCE]["n1"] == 4

    def test_released_units_are_free_again(self, ledger: Ledger) -> None:
        reserve(ledger, "a", 12)
        ledger.release("a")
        assert used(ledger) == [0, 0]
        assert "a" not in ledger.reservations

    def test_a_pod_cannot_reserve_twice(self, ledger: Ledger) -> None:
        reserve(ledger, "a", 4)
        with pytest.raises(DoesNotFitError, match="already holds units on node n1"):
            reserve(ledger, "a", 4, node="n2")

    def test_the_annotation_takes_the_place_of_the_reservation(self, ledger: Ledger) -> None:
        reserve(ledger, "a", 4)
        ledger.set_pod(pod_update("a", c0=4))
        ledger.reservations.confirm("a", now=5.0)
        ledger.release("a")
        assert used(ledger) == [4, 0]
        assert "a" not in ledger.reservations

    def test_a_pod_deleted_before_its_bind_is_answered_does_not_come_back(self, ledger: Ledger) -> None:
        reserve(ledger, "a", 4)
        ledger.set_pod(pod_update("a", c0=4))
        ledger.drop_pod("a")
        ledger.reservations.confirm("a", now=5.0)
        assert used(ledger) == [0, 0]

    def test_an_update_without_annotation_leaves_a_reservation_alone(self, ledger: Ledger) -> None:
        reserve(ledger, "a", 4)
        ledger.set_pod(PodUpdate("a"))
        assert used(ledger) == [4, 0]
        ledger.reservations.confirm("a", now=5.0)
        ledger.set_pod(PodUpdate("a"))
        assert used(ledger) == [4, 0]

    def test_a_list_leaves_unconfirmed_reservations_alone(self, ledger: Ledger) -> None:
        reserve(ledger, "a", 4)
        ledger.replace_pods([], begun=100.0)
        assert used(ledger) == [4, 0]
        assert ledger.reservations.is_unconfirmed("a")

    @pytest.mark.parametrize(
        ("begun", "units"),
        [
            pytest.param(4.0, 4, id="begun before: it may have missed the pod"),
            pytest.param(5.0, 4, id="begun at the same moment: likewise"),
            pytest.param(6.0, 0, id="begun after: the pod is gone"),
        ],
    )
    def test_a_list_without_a_confirmed_pod(self, ledger: Ledger, begun: float, units: int) -> None:
        reserve(ledger, "a", 4)
        ledger.reservations.confirm("a", now=5.0)
        ledger.replace_pods([], begun=begun)
        ledger.free_unreleased(now=begun + UNRELEASED_SECONDS)
        assert used(ledger) == [units, 0]

    def test_a_list_takes_the_place_of_all_allocations(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("gone", c0=4))
        ledger.set_pod(pod_update("stays", c0=2))
        ledger.replace_pods(
            [pod_update("stays", c0=2), pod_update("new", c1=1), PodUpdate("plain")], begun=1.0
        )
        ledger.free_unreleased(now=1.0 + UNRELEASED_SECONDS)
        assert used(ledger) == [2, 1]


def test_a_node_is_forgotten_with_its_last_holder() -> None:
    ledger = Ledger()
    ledger.set_pod(pod_update("a", c0=4))
    ledger.drop_pod("a")
    assert ledger.node("n1") is None


@pytest.mark.parametrize(
    ("node", "units", "message", "resolvable"),
    [
        pytest.param(
            "n1", 17, "asked 17, largest free 16, biggest card 16", False, id="bigger than any card"
        ),
        pytest.param("n2", 16, "asked 16, largest free 12", True, id="cards are in use"),
        pytest.param("n9", 1, "share no GPU cards", False, id="not one of ours"),
        pytest.param("n3", 1, "not today", False, id="closed"),
    ],
)
def test_why_a_request_does_not_fit(
    ledger: Ledger, node: str, units: int, message: str, *, resolvable: bool
) -> None:
    ledger.set_share_node(share_node("n3", closed_reason="not today"))
    ledger.set_pod(pod_update("a", node="n2", c0=4))
    ledger.set_pod(pod_update("b", node="n2", c1=8))
    reason = ledger.unfit_reason(node, asked(units))
    assert message in reason.message
    assert reason.resolvable is resolvable


class TestReportedHolders:
    """What the kubelet has given out counts until the plugin reports that it is back."""

    def test_a_holder_that_the_api_no_longer_knows_counts(self, ledger: Ledger) -> None:
        ledger.set_share_node(reporting(share_node("n1", 16), ghost=16))
        assert ledger.greatest[RESOURCE]["n1"] == 0
        with pytest.raises(DoesNotFitError, match="largest free 0"):
            reserve(ledger, "a", 1)

    def test_what_the_kubelet_gave_out_counts_however_little_is_booked(self, ledger: Ledger) -> None:
        """Units of several containers add up, those that an init container lends do not: the total tells."""
        ledger.set_pod(pod_update("lender", c0=8))
        ledger.set_pod(pod_update("a", c0=1))
        lender = ReportedHolder("lender", "default", "lender", units=16, least=8)
        two_containers = ReportedHolder("a", "default", "a", units=8, least=4)
        node = share_node("n1", 24)
        card = structs.replace(node.cards[0], allocated=16, holders=(lender, two_containers))
        ledger.set_share_node(structs.replace(node, cards=(card,)))
        assert used(ledger) == [16]
        reserve(ledger, "b", 8)
        assert used(ledger) == [24]

    def test_a_pod_in_both_books_counts_once(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=4))
        ledger.set_share_node(reporting(share_node("n1"), a=4))
        assert used(ledger) == [4, 0]

    @pytest.mark.parametrize(("booked", "reported"), [(4, 6), (6, 4)])
    def test_with_the_larger_figure(self, ledger: Ledger, booked: int, reported: int) -> None:
        ledger.set_pod(pod_update("a", c0=booked))
        ledger.set_share_node(reporting(share_node("n1"), a=reported))
        assert used(ledger) == [6, 0]

    def test_a_reservation_that_is_not_reported_yet_counts_besides(self, ledger: Ledger) -> None:
        ledger.set_share_node(reporting(share_node("n1"), ghost=10))
        reserve(ledger, "a", 6)
        assert used(ledger) == [16, 0]
        ledger.set_share_node(reporting(share_node("n1"), ghost=10, a=6))
        assert used(ledger) == [16, 0]

    def test_units_of_a_deleted_pod_are_free_once_the_kubelet_has_released_them(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=16))
        ledger.set_share_node(reporting(share_node("n1", 16), a=16))
        ledger.drop_pod("a")
        assert (used(ledger), ledger.greatest[RESOURCE]["n1"]) == ([16], 0)
        ledger.set_share_node(share_node("n1", 16))
        assert (used(ledger), ledger.greatest[RESOURCE]["n1"]) == ([0], 16)

    def test_a_pod_of_the_same_name_is_another_one(self, ledger: Ledger) -> None:
        ledger.set_share_node(reporting(share_node("n1"), former=8))
        ledger.set_pod(pod_update("present", c0=8))
        assert used(ledger) == [16, 0]

    def test_a_pod_on_another_card_than_its_annotation_says_counts_on_both(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=4))
        ledger.set_share_node(reporting(share_node("n1"), 1, a=4))
        assert used(ledger) == [4, 4]

    def test_an_annotation_of_a_card_that_is_not_there_hides_no_units_of_the_pod(
        self, ledger: Ledger
    ) -> None:
        ledger.set_pod(pod_update("a", c7=4))
        assert used(ledger) == [0, 0]
        ledger.set_share_node(reporting(share_node("n1"), a=4))
        assert used(ledger) == [4, 0]

    def test_units_without_a_name_count(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", c0=4))
        ledger.set_share_node(reporting(share_node("n1"), a=4, allocated=10))
        assert used(ledger) == [10, 0]

    def test_a_pod_of_an_earlier_unit_is_counted_in_the_node_s_own(self, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("a", unit="256Mi", c0=16))
        ledger.set_share_node(reporting(share_node("n1"), a=4))
        assert used(ledger) == [4, 0]

    def test_a_node_that_is_gone_and_comes_back_reports_anew(self, ledger: Ledger) -> None:
        ledger.set_share_node(reporting(share_node("n1"), ghost=4))
        ledger.drop_share_node("n1")
        ledger.set_share_node(share_node("n1"))
        assert used(ledger) == [0, 0]


def test_a_list_of_the_nodes_that_there_are_changes_only_those_that_have_changed() -> None:
    """All that is remembered of a node goes with a change, and it is audited: the list has them all."""
    heard = HeardChanges()
    ledger, changed = Ledger(heard), heard.nodes
    ledger.replace_share_nodes([share_node("n1"), share_node("n2"), share_node("n3")])
    known = ledger.answers(["n1", "n2"], asked(4))
    changed.clear()
    ledger.replace_share_nodes([share_node("n1"), share_node("n2", 8)])
    assert sorted(changed) == ["n2", "n3"]
    again = ledger.answers(["n1", "n2"], asked(4))
    assert (again[0] is known[0], again[1] is known[1]) == (True, False)
    assert ledger.share_node("n3") is None


class TestConfirmation:
    """What a watch shows of a bind that was made here."""

    def test_it_changes_no_sums_and_is_known_from_then_on(self) -> None:
        heard, looked = HeardChanges(), list[str]()
        ledger, changed = Ledger(heard), heard.nodes
        ledger.replace_share_nodes([share_node("n1")])
        reserved = reserve(ledger, "a", 4)
        changed.clear()
        ledger.index.forget = lambda node: looked.append(node)  # type: ignore[method-assign]
        seen = structs.replace(reserved, created=1_700_000_000)
        ledger.set_pod(PodUpdate("a", seen))
        assert (looked, changed) == ([], ["n1"])
        assert ledger.holder("a") is seen
        sums = ledger.node("n1")
        assert sums is not None
        assert sums.holders["a"] is seen
        assert "a" not in ledger.reservations
        assert sorted(used(ledger)) == [0, 4]

    @pytest.mark.parametrize("units", [3, 5])
    def test_where_it_says_something_else_that_counts(self, units: int) -> None:
        ledger = Ledger()
        ledger.replace_share_nodes([share_node("n1")])
        reserve(ledger, "a", 4)
        ledger.set_pod(pod_update("a", c1=units))
        assert used(ledger) == [0, units]
