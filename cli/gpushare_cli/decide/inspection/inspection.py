"""``inspect``: which nodes and cards are shown, and in which order."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from gpushare_cli.decide.inspection.shared_card import SharedCard
from gpushare_cli.decide.inspection.shared_node import SharedNode
from gpushare_cli.report import CommandReport, ExitStatus


class MissingNode(Struct, frozen=True, kw_only=True, rename="camel"):
    """A node that was named, and shares no cards."""

    name: str
    reason: str


class CardInspection(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "CardInspection"
    time: str = ""
    """When it was looked, RFC 3339."""
    nodes: Sequence[SharedNode] = ()
    missing: Sequence[MissingNode] = ()
    unread: Sequence[str] = ()
    """Sentences: what could not be read, and what is therefore not known."""
    sharing_nodes: int = 0
    """All that were read."""
    looked_at: int = 0
    """Those of them that were chosen, shown or not."""
    only_problems: bool = False
    card: str = ""
    """Index or UUID of the only one that was asked for."""
    chooses_cards: bool = False
    """Whether nodes or cards were named, so that a table shows cards however many there are."""

    @property
    def names(self) -> Sequence[str]:
        return [f"gpusharenode.gpushare.io/{node.name}" for node in self.nodes]

    @property
    def exit_status(self) -> ExitStatus:
        """The answer is no where a named node or card is missing, or where problems were asked for and there
        are some."""
        if self.missing or (self.nodes if self.only_problems else self.card and not self.nodes):
            return ExitStatus.NO
        return ExitStatus.CANNOT_LOOK if self.only_problems and self.unread else ExitStatus.GOOD


class InspectionSort(StrEnum):
    NAME = "name"
    FREE = "free"
    HELD = "held"
    USED = "used"


_CARD_KEYS: Mapping[InspectionSort, Callable[[SharedCard], int]] = {
    InspectionSort.FREE: lambda card: -card.free_bytes,
    InspectionSort.HELD: lambda card: -card.held_bytes,
    InspectionSort.USED: lambda card: -(card.used_bytes or 0),
}
_NODE_KEYS: Mapping[InspectionSort, Callable[[SharedNode], int]] = {
    InspectionSort.FREE: lambda node: -node.free_bytes,
    InspectionSort.HELD: lambda node: -node.held_bytes,
    InspectionSort.USED: lambda node: -(node.used_bytes or 0),
}
"""By bytes: nodes have units of different sizes. The most first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionChoice:
    """What of the cluster is shown."""

    names: Sequence[str] = ()
    """Empty: all nodes."""
    labelled: Collection[str] | None = None
    """Nodes that a selector chooses; None: no selector."""
    card: str = ""
    """Index or UUID."""
    namespace: str = ""
    """Only cards of which its pods hold something; empty: all."""
    only_problems: bool = False
    sort: InspectionSort = InspectionSort.NAME

    def shows_card(self, card: SharedCard) -> bool:
        return (
            self.card in ("", str(card.index), card.uuid)
            and (not self.namespace or any(holder.namespace == self.namespace for holder in card.holders))
            and (not self.only_problems or card.has_problem)
        )

    def shows_node(self, node: SharedNode) -> bool:
        is_named = not self.names or node.name in self.names
        return is_named and (self.labelled is None or node.name in self.labelled)

    @property
    def filters_cards(self) -> bool:
        return bool(self.card or self.namespace)


def card_inspection(
    nodes: Sequence[SharedNode],
    choice: InspectionChoice,
    *,
    time: str = "",
    missing: Sequence[MissingNode] = (),
    unread: Sequence[str] = (),
) -> CardInspection:
    looked_at = [node for node in nodes if choice.shows_node(node)]
    shown = [kept for node in looked_at if (kept := _shown(node, choice)) is not None]
    if choice.sort is not InspectionSort.NAME:
        shown.sort(key=_NODE_KEYS[choice.sort])
    return CardInspection(
        time=time,
        nodes=shown,
        missing=[*missing, *_without_card(looked_at, shown, choice)],
        unread=unread,
        sharing_nodes=len(nodes),
        looked_at=len(looked_at),
        only_problems=choice.only_problems,
        card=choice.card,
        chooses_cards=bool(choice.names) or choice.filters_cards,
    )


def _shown(node: SharedNode, choice: InspectionChoice) -> SharedNode | None:
    if choice.only_problems and not node.problems:
        return None
    cards = [card for card in node.cards if choice.shows_card(card)]
    if choice.filters_cards and not cards:
        return None
    if choice.sort is not InspectionSort.NAME:
        cards.sort(key=_CARD_KEYS[choice.sort])
    indices = {card.index for card in cards}
    problems = [problem for problem in node.problems if problem.card is None or problem.card in indices]
    return replace(node, cards=cards, problems=problems)


def _without_card(
    looked_at: Sequence[SharedNode], shown: Sequence[SharedNode], choice: InspectionChoice
) -> Sequence[MissingNode]:
    """Returns the named nodes that have no such card."""
    if not choice.card or not choice.names or choice.namespace or choice.only_problems:
        return ()
    names = {node.name for node in shown}
    return [
        MissingNode(name=node.name, reason=f"it has no card {choice.card}, {_cards_of(node)}")
        for node in looked_at
        if node.name not in names
    ]


def _cards_of(node: SharedNode) -> str:
    indices = ", ".join(str(card.index) for card in node.cards)
    return f"only {indices}" if indices else "and no other"
