"""A small cluster without time, and an auditor that looks at it after every step."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.fakes.book_readings import read_books
from tests.fakes.books import Node, Pod
from tests.fakes.books_cluster import GI, Cluster
from tests.samples.plugin import container
from tests.samples.pod_shapes import MEMORY

from gpushare_core.audit.auditor import differences, released_early
from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.audit.records import ClusterRecords
from gpushare_core.text.json_object import Json
from gpushare_plugin.devices.card import PhysicalCard

NODE = "n1"
SMALL = {"mode": "Memory", "memoryUnit": "1Gi"}


@dataclass(slots=True)
class Scene:
    """One node unless there are more; its cards are called ``n1-0``, ``n1-1``."""

    cluster: Cluster = field(default_factory=Cluster)
    spec: Json = field(default_factory=lambda: dict(SMALL))
    seen: list[Difference] = field(default_factory=list)
    """All that was different at a moment at which it must not be."""
    _before: ClusterRecords = field(default_factory=lambda: ClusterRecords({}))

    def node_with(self, *memories: int, name: str = NODE, **spec: object) -> Node:
        self.spec |= spec
        self.cluster.add_node(name, *memories, spec=self.spec)
        self.step()
        return self.cluster.nodes[name]

    @property
    def node(self) -> Node:
        return self.cluster.nodes[NODE]

    # Pods

    def create(self, units: int, *, resource: str = MEMORY, inits: Sequence[Json] = ()) -> Pod:
        return self.cluster.create([container("main", units, resource)], [*inits])

    def run(self, units: int, *, resource: str = MEMORY, inits: Sequence[Json] = ()) -> Pod:
        """A pod that was placed by the extender, runs, and is in all books."""
        pod = self.promise(units, resource=resource, inits=inits)
        self.admit(pod)
        self.look()
        return pod

    def promise(self, units: int, *, resource: str = MEMORY, inits: Sequence[Json] = ()) -> Pod:
        """It is bound, and its kubelet has not heard of it yet."""
        pod = self.create(units, resource=resource, inits=inits)
        assert self.cluster.schedule(pod), "it does not fit anywhere"
        self.step()
        return pod

    def try_to_run(self, units: int, *, resource: str = MEMORY) -> None:
        """It asks for more than there may be."""
        pod = self.create(units, resource=resource)
        if self.cluster.schedule(pod):
            self.step()
            self.admit(pod)

    def try_to_be_promised(self, units: int) -> None:
        """The same, and its kubelet has not heard of it yet."""
        self.cluster.schedule(self.create(units))
        self.step()

    def admit_all(self) -> None:
        """Every kubelet hears of the pods that are bound to it."""
        for pod in [*self.cluster.pods.values()]:
            if pod.node and pod.phase == "Pending":
                self.cluster.show(pod)
                self.admit(pod)

    def run_past_the_extender(self, units: int, *, resource: str = MEMORY) -> None:
        """Bound by somebody else: the plugin alone decides."""
        pod = self.create(units, resource=resource)
        self.cluster.bind_past_the_extender(pod, NODE)
        self.admit(pod)

    def admit(self, pod: Pod) -> None:
        self.cluster.admit(pod)
        self.step()

    def delete_by_force(self, pod: Pod) -> None:
        """The kubelet is the last to let go."""
        self.cluster.leave(pod)
        self.step()

    def release(self) -> None:
        for name in self.cluster.nodes:
            self.cluster.release(name)
        self.step()

    # Cards

    def find_cards(self, *cards: PhysicalCard, on: str = NODE) -> None:
        """The node has these from now on, in this order."""
        self.cluster.nodes[on].cards.present = {card.uuid: card for card in cards}

    # Time

    def look(self) -> None:
        """Every plugin looks at its node."""
        for node in self.cluster.nodes.values():
            node.look()
        self.step()

    def settle(self) -> None:
        """Everybody has heard of everything, and books must agree."""
        self.look()
        self.cluster.let_time_pass()
        self.agree()

    # The auditor

    def step(self) -> None:
        """Safety: what must never be, not even while pods are on their way."""
        books = read_books(self.cluster)
        self.seen += [difference for difference in differences(books) if difference.kind.at_once]
        for name, after in books.nodes.items():
            if before := self._before.nodes.get(name):
                self.seen += released_early(before, after)
        self._before = books

    def agree(self) -> None:
        """Agreement: no difference of any kind."""
        self.step()
        self.seen += self.differences()

    def must_not(self, *kinds: DifferenceKind) -> None:
        """At this moment the extender decides by its book: these kinds must not be."""
        self.seen += [difference for difference in self.differences() if difference.kind in kinds]

    def differences(self) -> list[Difference]:
        return differences(read_books(self.cluster))


def card(index: int, memory: int = 16, *, node: str = NODE, at: int | None = None) -> PhysicalCard:
    """``at``: its index, where that is another one than at first."""
    return PhysicalCard(
        uuid=f"{node}-{index}",
        index=index if at is None else at,
        memory=memory * GI,
        numa_node=index % 2,
    )
