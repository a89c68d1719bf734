"""``top``: use of nodes, cards or containers, those first that use more than they asked for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import ClassVar, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from gpushare_cli.decide.inspection.shared_card import SharedCard
from gpushare_cli.decide.inspection.shared_node import SharedNode
from gpushare_cli.report import CommandReport


class TopOf(StrEnum):
    NODES = "nodes"
    CARDS = "cards"
    PODS = "pods"


class TopSort(StrEnum):
    USED = "used"
    ASKED = "asked"
    SHARE = "share"
    """Of what was asked for, the part that is used."""
    NAME = "name"


class UseRow(Struct, frozen=True, kw_only=True, rename="camel"):
    node: str
    used_bytes: int | None = None
    """None: not known."""
    asked_bytes: int = 0
    """What the units are worth that pods hold."""
    exceeding: int = 0
    """Containers that use more than they asked for."""

    @property
    def share(self) -> float | None:
        known = self.used_bytes is not None and self.asked_bytes
        return (self.used_bytes or 0) / self.asked_bytes if known else None


class NodeUseRow(UseRow, frozen=True, kw_only=True, rename="camel"):
    memory_bytes: int
    cards: int


class CardUseRow(UseRow, frozen=True, kw_only=True, rename="camel"):
    card: int
    uuid: str
    memory_bytes: int
    pods: int


class ContainerUseRow(UseRow, frozen=True, kw_only=True, rename="camel"):
    """A container's part of one card."""

    namespace: str
    pod: str
    uid: str
    container: str
    card: int
    card_uuid: str
    units: int
    isolation: str = ""
    """What keeps it to its units: Hook or Driver; empty: nothing."""
    limit_bytes: int | None = None
    """None: nothing holds it."""
    lacks_isolation: bool = False
    """Whether its node asks for isolation, and its pod came before that."""
    exceeded_since: str = ""
    """RFC 3339; empty: it has not more than it asked for, or that is not known."""
    evicted_from: str = ""
    """RFC 3339: when its pod is evicted if it still has more then. Empty: it is not."""


class TopReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "MemoryUse"
    of: TopOf
    looked_at: str = ""
    """RFC 3339."""
    namespace: str = ""
    """Empty: all."""
    nodes: Sequence[NodeUseRow] = ()
    cards: Sequence[CardUseRow] = ()
    containers: Sequence[ContainerUseRow] = ()
    unmeasured: Sequence[str] = ()
    """Why use is not known, and of which nodes."""
    unread: Sequence[str] = ()
    """Sentences: what could not be read, and what is therefore not known."""

    @property
    def names(self) -> Sequence[str]:
        if self.of is TopOf.PODS:
            return list(dict.fromkeys(f"pod/{row.pod}" for row in self.containers))
        rows: Iterable[UseRow] = self.nodes or self.cards
        return list(dict.fromkeys(f"gpusharenode.gpushare.io/{row.node}" for row in rows))


_KEYS: Mapping[TopSort, Callable[[UseRow], float]] = {
    TopSort.USED: lambda row: -(row.used_bytes or 0),
    TopSort.ASKED: lambda row: -row.asked_bytes,
    TopSort.SHARE: lambda row: -(row.share or 0),
    TopSort.NAME: lambda _row: 0,
}

Row = TypeVar("Row", bound=UseRow)


def _ordered(rows: Iterable[Row], sort: TopSort) -> list[Row]:
    """Returns those that exceed what they asked for first, then those with the most."""
    key = _KEYS[sort]
    return sorted(rows, key=lambda row: (not row.exceeding, key(row)))


def top_report(
    nodes: Sequence[SharedNode],
    *,
    of: TopOf,
    sort: TopSort,
    looked_at: str = "",
    namespace: str = "",
    unmeasured: Sequence[str] = (),
    unread: Sequence[str] = (),
) -> TopReport:
    """``namespace``: only cards of which its pods hold something, and its containers; empty for all."""
    chosen = [(node, [card for card in node.cards if _has_holder(card, namespace)]) for node in nodes]
    report = TopReport(of=of, looked_at=looked_at, namespace=namespace, unmeasured=unmeasured, unread=unread)
    if of is TopOf.NODES:
        rows = [_node_row(node, cards) for node, cards in chosen if cards]
        return replace(report, nodes=_ordered(rows, sort))
    if of is TopOf.CARDS:
        card_rows = [_card_row(node, card) for node, cards in chosen for card in cards]
        return replace(report, cards=_ordered(card_rows, sort))
    containers = (
        row for node, cards in chosen for card in cards for row in _container_rows(node, card, namespace)
    )
    by_name = sorted(containers, key=lambda row: (row.namespace, row.pod, row.container, row.card))
    return replace(report, containers=_ordered(by_name, sort))


def _has_holder(card: SharedCard, namespace: str) -> bool:
    return not namespace or any(holder.namespace == namespace for holder in card.holders)


def _exceeding(card: SharedCard) -> int:
    return sum(container.exceeds for holder in card.holders for container in holder.containers)


def _node_row(node: SharedNode, cards: Sequence[SharedCard]) -> NodeUseRow:
    used = [card.used_bytes for card in cards]
    return NodeUseRow(
        node=node.name,
        used_bytes=None if None in used else sum(size or 0 for size in used),
        asked_bytes=sum(card.held_bytes for card in cards),
        exceeding=sum(map(_exceeding, cards)),
        memory_bytes=sum(card.memory_bytes for card in cards),
        cards=len(cards),
    )


def _card_row(node: SharedNode, card: SharedCard) -> CardUseRow:
    return CardUseRow(
        node=node.name,
        used_bytes=card.used_bytes,
        asked_bytes=card.held_bytes,
        exceeding=_exceeding(card),
        card=card.index,
        uuid=card.uuid,
        memory_bytes=card.memory_bytes,
        pods=len(card.holders),
    )


def _container_rows(node: SharedNode, card: SharedCard, namespace: str) -> Iterable[ContainerUseRow]:
    for holder in card.holders:
        if namespace in ("", holder.namespace):
            for container in holder.containers:
                yield ContainerUseRow(
                    node=node.name,
                    used_bytes=container.used_bytes,
                    asked_bytes=container.asked_bytes,
                    exceeding=int(container.exceeds),
                    namespace=holder.namespace,
                    pod=holder.name,
                    uid=holder.uid,
                    container=container.container,
                    card=card.index,
                    card_uuid=card.uuid,
                    units=container.units,
                    isolation=container.isolation,
                    limit_bytes=container.limit_bytes,
                    lacks_isolation=container.lacks_isolation,
                    exceeded_since=container.exceeded_since,
                    evicted_from=container.evicted_from,
                )
