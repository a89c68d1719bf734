"""What the process knows of its node; the only mutable state, changed on the event loop only."""

import asyncio
from dataclasses import dataclass, field, replace

from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.books.dialects import GPUSHARE, Dialect
from gpushare_core.placement.cards import Strategy
from gpushare_plugin.decide.admission import Grant
from gpushare_plugin.decide.holdings import Books
from gpushare_plugin.decide.layout import Layout
from gpushare_plugin.decide.offering import Offering
from gpushare_plugin.decide.pods import Pod, PodName
from gpushare_plugin.devices.cards import PhysicalCard


@dataclass(slots=True)
class NodeState:
    """``changed`` is set by whoever changes something that the status or the offering follows from."""

    name: str
    dialect: Dialect = GPUSHARE
    node: GPUShareNode | None = None
    pods: dict[PodName, Pod] = field(default_factory=dict)
    books: Books = field(default_factory=Books)
    books_readable: bool = False
    found: tuple[PhysicalCard, ...] | None = None
    offering: Offering = field(default_factory=Offering)
    last_layout: Layout | None = None
    """Kept when nothing is offered any more: pods may still hold units of it."""
    grants: dict[str, Grant] = field(default_factory=dict)
    """By pod UID."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def strategy(self) -> Strategy:
        return self.node.spec.strategy if self.node else Strategy.BINPACK

    def put_pod(self, pod: Pod) -> None:
        """Remember what was read of ``pod``; its spec is kept from before where only metadata was read."""
        before = self.pods.get(pod.name)
        if before is not None and before.uid != pod.uid:
            self.drop_pod(before.name, before.uid)
        elif before is not None and pod.ask is None:
            pod = replace(pod, ask=before.ask)
        self.pods[pod.name] = pod
        self.changed.set()

    def drop_pod(self, name: PodName, uid: str) -> None:
        """Forget the pod, but not another one of the same name."""
        if name in self.pods and self.pods[name].uid == uid:
            del self.pods[name]
            self.grants.pop(uid, None)
            self.changed.set()

    def keep_pods(self, names: set[PodName]) -> None:
        """Forget all pods but these."""
        for name in self.pods.keys() - names:
            self.drop_pod(name, self.pods[name].uid)

    def put_books(self, books: Books) -> None:
        if books != self.books or not self.books_readable:
            self.books, self.books_readable = books, True
            self.changed.set()

    def lose_books(self) -> None:
        """The kubelet does not answer: go on with what it said last."""
        if self.books_readable:
            self.books_readable = False
            self.changed.set()

    def note_grant(self, uid: str, card: str) -> None:
        before = self.grants.get(uid)
        self.grants[uid] = Grant(card, before.containers + 1 if before else 1)
