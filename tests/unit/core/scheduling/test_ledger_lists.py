"""A list that is read anew: the sums are those that its pods and nodes one by one lead to, and each node that
changed is told of once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.ledger_listener import HeardChanges
from tests.samples.extender import asked, holder, reference, reporting, share_node

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.share_node import ShareNode

NODES = ["n1", "n2"]
UIDS = ["a", "b", "c"]
RESOURCE = GPUSHARE.memory_resource


@dataclass
class Seen:
    """A ledger, and what it has told."""

    heard: HeardChanges = field(default_factory=HeardChanges)
    before: dict[str, int] = field(default_factory=dict)
    """Node -> the greatest amount that fitted there before the list."""
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.heard)

    def the_list_comes(self) -> None:
        self.before = {**self.ledger.greatest[RESOURCE]}
        for node in (self.heard.rooms, self.heard.nodes, self.heard.fits_now):
            node.clear()

    def sums(self) -> dict[str, object]:
        return {name: self.of(name) for name in NODES}

    def of(self, name: str) -> object:
        node = self.ledger.node(name)
        known = node and (
            node.holders,
            node.cards(),
            {card: node.booked_of(card) for card in node.booked_cards},
        )
        return known, self.ledger.room(name), self.ledger.greatest[RESOURCE].get(name)


@st.composite
def holders(draw: st.DrawFn) -> list[PodUpdate]:
    uids = draw(st.lists(st.sampled_from(UIDS), unique=True))
    units = st.integers(1, 9)
    return [
        PodUpdate(uid, holder(uid, node=draw(st.sampled_from(NODES)), c0=draw(units), c1=draw(units)))
        for uid in uids
    ]


@st.composite
def share_nodes(draw: st.DrawFn) -> list[ShareNode]:
    names = draw(st.lists(st.sampled_from(NODES), unique=True))
    reported = st.dictionaries(st.sampled_from(UIDS), st.integers(1, 9), max_size=2)
    return [reporting(share_node(name), 0, **draw(reported)) for name in names]


def seen(nodes: Iterable[ShareNode], pods: Iterable[PodUpdate], *, held: bool) -> Seen:
    before = Seen()
    for node in nodes:
        before.ledger.set_share_node(node)
    for pod in pods:
        before.ledger.set_pod(pod)
    if held and before.ledger.fits("n1", asked(2)):
        before.ledger.hold(reference("p"), node="n1", request=asked(2), priority=5, until=9.0)
    before.the_list_comes()
    return before


@given(share_nodes(), holders(), holders(), st.booleans())
def test_of_pods(nodes: list[ShareNode], before: list[PodUpdate], after: list[PodUpdate], held: bool) -> None:  # noqa: FBT001
    together, one_by_one = (seen(nodes, before, held=held) for _ in range(2))
    known = {pod.uid for pod in before}
    together.ledger.replace_pods(after, begun=1.0)
    for uid in known - {pod.uid for pod in after}:
        one_by_one.ledger.pod_deleted(uid, now=1.0)
    for pod in after:
        one_by_one.ledger.set_pod(pod)
    assert_same(together, one_by_one)


@given(share_nodes(), share_nodes(), holders(), st.booleans())
def test_of_share_nodes(
    before: list[ShareNode],
    after: list[ShareNode],
    pods: list[PodUpdate],
    held: bool,  # noqa: FBT001
) -> None:
    together, one_by_one = (seen(before, pods, held=held) for _ in range(2))
    together.ledger.replace_share_nodes(after)
    set_one_by_one(one_by_one.ledger, after)
    assert_same(together, one_by_one)


def set_one_by_one(ledger: Ledger, after: Sequence[ShareNode]) -> None:
    present = {node.name: node for node in after}
    for name in NODES:
        if name not in present:
            ledger.drop_share_node(name)
        elif present[name] != ledger.share_node(name):
            ledger.set_share_node(present[name])


def assert_same(together: Seen, one_by_one: Seen) -> None:
    assert together.sums() == one_by_one.sums()
    assert together.ledger.node_names() == one_by_one.ledger.node_names()
    assert sorted(together.heard.nodes) == sorted(set(one_by_one.heard.nodes))
    assert set(together.heard.fits_now) <= set(one_by_one.heard.fits_now)
    after, before = together.ledger.greatest[RESOURCE], together.before
    assert sorted(together.heard.rooms) == sorted(
        (RESOURCE, amount) for name, amount in after.items() if amount > before.get(name, 0)
    )


def test_a_node_of_many_pods_is_told_of_once() -> None:
    here = seen([share_node("n1", 16)], [], held=False)
    here.ledger.replace_pods([PodUpdate(uid, holder(uid, c0=4)) for uid in UIDS], begun=1.0)
    assert here.heard.nodes == ["n1"]
    assert here.ledger.greatest[RESOURCE] == {"n1": 4}
