"""The ledger against a model of the cluster: binds in flight, answers lost, news late, lists in between.

Whatever the order, no card is given out twice, no running pod is forgotten, and in the end the books are
exactly what the cluster says.
"""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.samples.extender import inventory

from gpushare_extender.ledger.holder import Holding, PodNews
from gpushare_extender.ledger.ledger import Ledger, NoRoomError

CARD = 8
NODES = ("n1", "n2")


@dataclass(frozen=True)
class Gone:
    uid: str


@dataclass(frozen=True)
class Snapshot:
    """A list under way: what it will show, and when it began."""

    pods: tuple[Holding, ...]
    begun: float


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.ledger.replace_inventories([inventory(node, CARD, CARD) for node in NODES])
        self.now = 0.0
        self.serial = 0
        self.sent: dict[str, Holding] = {}
        """Bindings whose answer the extender does not have."""
        self.bound: set[str] = set()
        """Pods whose Binding has taken effect; some of them may be gone since."""
        self.running: dict[str, Holding] = {}
        """Bound pods, as the API server has them."""
        self.news: list[Holding | Gone] = []
        self.listing: Snapshot | None = None

    def tick(self) -> float:
        self.now += 1.0
        return self.now

    @rule(node=st.sampled_from(NODES), units=st.integers(1, CARD + 1))
    def bind(self, node: str, units: int) -> None:
        self.serial += 1
        uid = f"pod-{self.serial}"
        room = self.ledger.largest_free.get(node, 0)
        try:
            held = self.ledger.reserve(uid=uid, namespace="d", name=uid, node=node, units=units)
        except NoRoomError:
            assert units > room
        else:
            assert units <= room
            self.sent[uid] = held

    @precondition(lambda self: self.sent.keys() - self.bound)
    @rule(data=st.data())
    def the_api_server_binds(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.sent.keys() - self.bound)))
        self.bound.add(uid)
        self.running[uid] = self.sent[uid]
        self.news.append(self.sent[uid])

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def an_answer_comes(self, data: st.DataObject) -> None:
        self.answer(data.draw(st.sampled_from(sorted(self.sent))))

    def answer(self, uid: str) -> None:
        del self.sent[uid]
        if uid in self.bound:
            self.ledger.confirm(uid, now=self.tick())
        else:
            self.ledger.release(uid)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def a_pod_goes(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.running)))
        del self.running[uid]
        self.news.append(Gone(uid))

    @precondition(lambda self: self.news and not self.listing)
    @rule()
    def news_arrive(self) -> None:
        told = self.news.pop(0)
        if isinstance(told, Gone):
            self.ledger.drop_pod(told.uid)
        else:
            self.ledger.set_pod(PodNews(told.uid, told))

    @precondition(lambda self: not self.listing)
    @rule()
    def the_watch_is_lost_and_a_list_begins(self) -> None:
        self.listing = Snapshot(tuple(self.running.values()), begun=self.tick())
        self.news.clear()

    @precondition(lambda self: self.listing)
    @rule()
    def the_list_ends(self) -> None:
        assert self.listing is not None
        shown = [PodNews(held.uid, held) for held in self.listing.pods]
        self.ledger.replace_pods(shown, begun=self.listing.begun)
        self.listing = None

    @rule(node=st.sampled_from(NODES))
    def the_policy_goes(self, node: str) -> None:
        self.ledger.drop_inventory(node)

    @rule(node=st.sampled_from(NODES))
    def the_policy_comes(self, node: str) -> None:
        self.ledger.set_inventory(inventory(node, CARD, CARD))

    @invariant()
    def no_card_is_given_out_twice(self) -> None:
        used: dict[str, int] = {}
        coming = {uid: held for uid, held in self.sent.items() if uid not in self.bound}
        for held in {**self.running, **coming}.values():
            for card, units in held.cards:
                used[card] = used.get(card, 0) + units
        assert all(units <= CARD for units in used.values()), used

    @invariant()
    def no_running_pod_is_forgotten(self) -> None:
        for uid, held in self.running.items():
            assert self.ledger.holding(uid) == held

    @invariant()
    def the_index_is_true(self) -> None:
        for node in NODES:
            books = self.ledger.node(node)
            if node in self.ledger.largest_free:
                assert books is not None
                free = max(CARD - self.counted(f"{node}-{index}") for index in range(2))
                assert self.ledger.largest_free[node] == max(free, 0)
            else:
                assert books is None or books.inventory is None

    def counted(self, card: str) -> int:
        every = (self.ledger.holding(f"pod-{number}") for number in range(1, self.serial + 1))
        return sum(held.units_of(card) for held in every if held)

    def teardown(self) -> None:
        """Everything comes to rest: the books are what the cluster says."""
        if self.listing:
            self.the_list_ends()
        for uid in list(self.sent):
            self.answer(uid)
        while self.news:
            self.news_arrive()
        self.the_watch_is_lost_and_a_list_begins()
        self.the_list_ends()
        every = (self.ledger.holding(f"pod-{number}") for number in range(1, self.serial + 1))
        assert {held.uid: held for held in every if held} == self.running


LedgerMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestLedgerAgainstTheCluster = LedgerMachine.TestCase
