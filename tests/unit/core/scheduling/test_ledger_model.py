"""The ledger against a model of the cluster: binds under way, answers lost, updates late, lists in between.

Annotations are changed behind the extender's back, and repaired. Whatever the order, no card is given out
twice, no running pod is forgotten, and in the end the sums are exactly what the cluster says.
"""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace
from tests.samples.extender import RESOURCE, asked, reference, reporting, share_node

from gpushare_core.audit.auditor import node_differences
from gpushare_core.scheduling.ledger.ledger import DoesNotFitError, Ledger
from gpushare_core.scheduling.ledger.reservations import BindState, Reservation
from gpushare_core.scheduling.ledger.unreleased_pods import UNRELEASED_SECONDS
from gpushare_core.scheduling.objects.holder import CardUnits, Holder, PodUpdate
from gpushare_extender.decide.audit.fast_path import surely_agree
from gpushare_extender.decide.audit.records import node_records

CARD = 8
NODES = ("n1", "n2")


@dataclass(frozen=True)
class Deleted:
    uid: str


@dataclass(frozen=True)
class Look:
    """A read under way of a pod whose bind was abandoned, and whether it will show that nothing is held."""

    reservation: Reservation
    shows_nothing: bool


@dataclass(frozen=True)
class List:
    """A list under way: what it will show, and when it began."""

    pods: tuple[Holder, ...]
    begun: float


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.ledger.replace_share_nodes([share_node(node, CARD, CARD) for node in NODES])
        self.now = 0.0
        self.serial = 0
        self.sent: dict[str, Holder] = {}
        """Bindings whose answer the extender does not have."""
        self.abandoned: set[str] = set()
        """Those of them that no bind task looks after any more."""
        self.expired: set[str] = set()
        """Those of the abandoned that cannot take effect any more."""
        self.look: Look | None = None
        self.bound: set[str] = set()
        """Pods whose Binding has taken effect; some of them may be gone since."""
        self.running: dict[str, Holder] = {}
        """Bound pods, as they are."""
        self.annotated: dict[str, Holder] = {}
        """Bound pods, as their annotation in the API server says."""
        self.updates: list[Holder | Deleted] = []
        self.listing: List | None = None
        self.kubelet: dict[str, Holder] = {}
        """Pods whose units the kubelet has not released, some of them unknown to the API."""
        self.reported: dict[str, dict[str, Holder]] = {node: {} for node in NODES}
        """By the GPUShareNode that there is."""
        self.read: dict[str, dict[str, Holder]] = {node: {} for node in NODES}
        """As the node's plugin has read it last: a new GPUShareNode is closed until that is in it."""

    def tick(self) -> float:
        self.now += 1.0
        return self.now

    @rule(node=st.sampled_from(NODES), units=st.integers(1, CARD + 1))
    def bind(self, node: str, units: int) -> None:
        self.serial += 1
        uid = f"pod-{self.serial}"
        free = self.ledger.greatest[RESOURCE].get(node, 0)
        try:
            holder = self.ledger.reserve(reference(uid, uid=uid), node=node, request=asked(units))
        except DoesNotFitError:
            assert units > free
        else:
            assert units <= free
            self.sent[uid] = holder

    @precondition(lambda self: self.sent.keys() - self.bound - self.expired)
    @rule(data=st.data())
    def the_api_server_binds(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.sent.keys() - self.bound - self.expired)))
        self.bound.add(uid)
        self.running[uid] = self.sent[uid]
        self.annotate(self.sent[uid])

    def annotate(self, holder: Holder) -> None:
        self.annotated[holder.uid] = holder
        self.updates.append(holder)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def an_annotation_is_forged(self, data: st.DataObject) -> None:
        true = self.running[data.draw(st.sampled_from(sorted(self.running)))]
        (other,) = set(NODES) - {true.node}
        self.annotate(replace(true, node=other, cards=(CardUnits(f"{other}-0", 1),)))

    @precondition(lambda self: self.kubelet.keys() & self.running.keys())
    @rule(data=st.data())
    def the_plugin_repairs(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.kubelet.keys() & self.running.keys())))
        self.annotate(self.running[uid])

    @precondition(lambda self: self.sent.keys() - self.abandoned)
    @rule(data=st.data())
    def an_answer_comes(self, data: st.DataObject) -> None:
        self.answer(data.draw(st.sampled_from(sorted(self.sent.keys() - self.abandoned))))

    def answer(self, uid: str) -> None:
        del self.sent[uid]
        if uid in self.bound:
            self.ledger.reservations.confirm(uid, now=self.tick())
        else:
            self.ledger.release(uid)

    @precondition(lambda self: self.sent.keys() - self.abandoned)
    @rule(data=st.data())
    def a_defect_ends_a_bind(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.sent.keys() - self.abandoned)))
        self.abandoned.add(uid)
        self.ledger.reservations.abandon(uid, now=self.tick())

    @precondition(lambda self: self.abandoned)
    @rule(data=st.data())
    def a_lost_binding_expires(self, data: st.DataObject) -> None:
        self.expired.add(data.draw(st.sampled_from(sorted(self.abandoned))))

    @precondition(lambda self: self.abandoned - (self.bound - self.running.keys()))
    @rule(data=st.data())
    def an_abandoned_pod_is_bound_again(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.abandoned - (self.bound - self.running.keys()))))
        before = self.sent[uid]
        units = sum(before.shares.values())
        try:
            holder = self.ledger.reserve(reference(uid, uid=uid), node=before.node, request=asked(units))
        except DoesNotFitError:
            return
        assert holder == before or uid in self.expired, "its Binding may still take effect"
        self.sent[uid] = holder
        self.abandoned.discard(uid)
        self.expired.discard(uid)

    @precondition(lambda self: not self.look and self.settled_reservations())
    @rule(data=st.data())
    def a_look_begins(self, data: st.DataObject) -> None:
        reservation = data.draw(st.sampled_from(self.settled_reservations()))
        self.look = Look(reservation, shows_nothing=reservation.holder.uid not in self.running)

    @precondition(lambda self: self.look)
    @rule()
    def the_look_ends(self) -> None:
        look, self.look = self.look, None
        assert look is not None
        uid = look.reservation.holder.uid
        if look.shows_nothing and self.ledger.reservations.get(uid) is look.reservation:
            self.ledger.release_later(uid, now=self.tick())

    def settled_reservations(self) -> list[Reservation]:
        """Returns those that a look can tell about."""
        settled = self.expired | self.bound
        abandoned = self.ledger.reservations.in_state(BindState.ABANDONED)
        return [reservation for reservation in abandoned if reservation.holder.uid in settled]

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def a_pod_goes(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.running)))
        del self.running[uid], self.annotated[uid]
        self.updates.append(Deleted(uid))

    @precondition(lambda self: self.running.keys() - self.kubelet.keys())
    @rule(data=st.data())
    def the_kubelet_admits(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.running.keys() - self.kubelet.keys())))
        self.kubelet[uid] = self.running[uid]

    @precondition(lambda self: self.kubelet.keys() - self.running.keys())
    @rule(data=st.data())
    def the_kubelet_releases(self, data: st.DataObject) -> None:
        del self.kubelet[data.draw(st.sampled_from(sorted(self.kubelet.keys() - self.running.keys())))]

    @rule(node=st.sampled_from(NODES))
    def the_plugin_reports(self, node: str) -> None:
        self.read[node] = {uid: holder for uid, holder in self.kubelet.items() if holder.node == node}
        self.write_status(node)

    def write_status(self, node: str) -> None:
        self.reported[node] = self.read[node]
        present = share_node(node, CARD, CARD)
        for index, card in enumerate(present.cards):
            units = {uid: holder.units_of(card.uuid) for uid, holder in self.reported[node].items()}
            present = reporting(present, index, **{uid: amount for uid, amount in units.items() if amount})
        self.ledger.set_share_node(present)

    @precondition(lambda self: self.updates and not self.listing)
    @rule()
    def an_update_arrives(self) -> None:
        update = self.updates.pop(0)
        if isinstance(update, Deleted):
            self.ledger.pod_deleted(update.uid, now=self.tick())
        else:
            self.ledger.set_pod(PodUpdate(update.uid, update))

    @precondition(lambda self: not self.listing)
    @rule()
    def the_watch_is_lost_and_a_list_begins(self) -> None:
        self.listing = List(tuple(self.annotated.values()), begun=self.tick())
        self.updates.clear()

    @precondition(lambda self: self.listing)
    @rule()
    def the_list_ends(self) -> None:
        assert self.listing is not None
        shown = [PodUpdate(holder.uid, holder) for holder in self.listing.pods]
        self.ledger.replace_pods(shown, begun=self.listing.begun)
        self.listing = None

    @rule()
    def the_plugins_have_had_the_time_to_report(self) -> None:
        for node in NODES:
            self.the_plugin_reports(node)
        self.now += UNRELEASED_SECONDS
        self.ledger.free_unreleased(now=self.now)

    @rule(node=st.sampled_from(NODES))
    def the_policy_goes(self, node: str) -> None:
        self.reported[node] = {}
        self.ledger.drop_share_node(node)

    @rule(node=st.sampled_from(NODES))
    def the_policy_comes(self, node: str) -> None:
        self.write_status(node)

    @invariant()
    def no_card_is_given_out_twice(self) -> None:
        used: dict[str, int] = {}
        settled = self.bound | self.expired
        not_bound = {uid: holder for uid, holder in self.sent.items() if uid not in settled}
        reported = {uid: holder for pods in self.reported.values() for uid, holder in pods.items()}
        for holder in {**reported, **self.running, **not_bound}.values():
            for card, units in holder.shares.items():
                used[card] = used.get(card, 0) + units
        assert all(units <= CARD for units in used.values()), used

    @invariant()
    def no_running_pod_is_forgotten(self) -> None:
        for uid, holder in self.running.items():
            sums = self.ledger.node(holder.node)
            assert sums is not None
            assert sums.holders[uid] == holder

    @invariant()
    def the_index_is_true(self) -> None:
        for node in NODES:
            sums = self.ledger.node(node)
            if node in self.ledger.greatest[RESOURCE]:
                assert sums is not None
                free = max(CARD - self.counted(node, f"{node}-{index}") for index in range(2))
                assert self.ledger.greatest[RESOURCE][node] == max(free, 0)
            else:
                assert sums is None or sums.share_node is None

    @invariant()
    def who_finds_that_books_agree_is_right(self) -> None:
        for node in NODES:
            if surely_agree(self.ledger, node):
                books = node_records(self.ledger, node)
                assert books is not None
                assert node_differences(books) == []

    def counted(self, node: str, card: str) -> int:
        uids = (f"pod-{number}" for number in range(1, self.serial + 1))
        reported = {uid: holder for pods in self.reported.values() for uid, holder in pods.items()}
        sums = self.ledger.node(node)
        booked = sums.holders if sums else {}
        holders = (booked.get(uid) or reported.get(uid) for uid in uids)
        return sum(holder.units_of(card) for holder in holders if holder)

    def teardown(self) -> None:
        """Everything comes to rest: the sums are what the cluster says."""
        if self.listing:
            self.the_list_ends()
        for uid in self.sent.keys() - self.abandoned:
            self.answer(uid)
        self.expired |= self.abandoned
        self.look = None
        for reservation in self.settled_reservations():
            self.look = Look(reservation, shows_nothing=reservation.holder.uid not in self.running)
            self.the_look_ends()
        self.kubelet = dict(self.running)
        for holder in self.running.values():
            self.annotate(holder)
        while self.updates:
            self.an_update_arrives()
        self.the_watch_is_lost_and_a_list_begins()
        self.the_list_ends()
        self.the_plugins_have_had_the_time_to_report()
        for node in NODES:
            sums = self.ledger.node(node)
            assert sums is not None
            assert sums.holders == {uid: each for uid, each in self.running.items() if each.node == node}
            books = node_records(self.ledger, node)
            assert books is not None
            assert node_differences(books) == []
            assert surely_agree(self.ledger, node)


LedgerMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestLedgerAgainstTheCluster = LedgerMachine.TestCase
