"""What fits one node, and which of its cards a request gets. Pure."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from gpushare_core.placement.card_choice import Card, ChoiceReason, Strategy
from gpushare_core.placement.modes.sharing_mode import Room, SharingMode
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.node_ranking import Candidate
from gpushare_core.placement.requests import Request, ResourceClass, ResourceRequest
from gpushare_core.scheduling.ledger.node_room import NodeRoom, ResourceRoom, shared_room
from gpushare_core.scheduling.ledger.node_sums import CardUse, NodeSums
from gpushare_core.scheduling.objects.share_node import ShareNode, ShareNodeCard

FreeOf = tuple[ResourceClass, str]
"""A class and the UUID of a card."""


class CardChoice(NamedTuple):
    """What one resource of a request gets, and the cards that it was chosen from."""

    asked: ResourceRequest
    units: Mapping[str, int]
    """Card UUID -> units."""
    cards: Sequence[Card]
    strategy: Strategy

    @property
    def reason(self) -> ChoiceReason:
        return mode_serving(self.asked.resource).reason(self.cards, self.units, self.strategy)


def amounts(card: ShareNodeCard, resource: ResourceClass, use: CardUse | None) -> tuple[int, int]:
    """Returns the units of ``card``, and those of them that are allocated, as ``resource`` sees it: a card
    that serves another class now is full."""
    units = card.units_of(resource)
    return units, 0 if use is None else use.units if use.lock is resource else units


def _what_counts(
    card: ShareNodeCard, resource: ResourceClass, use: CardUse | None, *, is_mixed: bool
) -> tuple[int, ...]:
    """Returns what of a card decides what fits it, and how well."""
    units, allocated = amounts(card, resource, use)
    is_lockable = is_mixed and use is None
    return (card.index, units, allocated, card.is_open, is_lockable, card.numa_node, card.link_group)


@dataclass(slots=True)
class NodeLedger(NodeSums):
    """The sums of a node, and what follows from them."""

    paused_reason: str = ""
    """For people: why the node takes no pods for a while. Empty when it does."""

    @property
    def is_empty(self) -> bool:
        return self.share_node is None and not (self.holders or self.holds or self.paused_reason)

    @property
    def closed_reason(self) -> str:
        """Why a node that shares cards takes no pods of ours; empty when it does."""
        return (self.share_node.closed_reason if self.share_node else "") or self.paused_reason

    @property
    def open_share_node(self) -> ShareNode | None:
        """The GPUShareNode if the node takes pods of ours."""
        return None if self.closed_reason else self.share_node

    def room(self) -> NodeRoom | None:
        """Returns None for a node that takes no pods of ours."""
        if self.open_share_node is None:
            return None
        offered = ((name, mode_serving(served)) for name, served in self.open_share_node.resources.items())
        return shared_room(tuple(ResourceRoom(name, mode, self._room(mode)) for name, mode in offered))

    def _room(self, mode: SharingMode) -> Room:
        """Makes no ``Card`` of any card: of most nodes nothing else is asked between two changes."""
        cards = self.share_node.cards if self.share_node else ()
        amounts = [self.amounts_of(card, mode.resource) for card in cards if card.is_open]
        return mode.room_of(amounts, unhealthy=len(cards) - len(amounts))

    def possible(self) -> dict[str, int]:
        """Returns the name of each resource that the node serves, closed or not -> the greatest amount that
        its cards offer to a pod when all are open and empty."""
        if self.share_node is None:
            return {}
        cards = self.share_node.cards
        return {
            name: mode_serving(resource).greatest([card.units_of(resource) for card in cards])
            for name, resource in self.share_node.resources.items()
        }

    def fingerprint(self) -> Hashable:
        """Returns the same for nodes that answer every request alike: thousands are in few states."""
        share_node = self.open_share_node
        if share_node is None:
            return self.closed_reason
        uses, is_mixed = self._uses, self._is_mixed
        seen = [
            _what_counts(card, resource_class, uses.get(card.uuid), is_mixed=is_mixed)
            for resource_class in self._classes
            for card in share_node.cards
        ]
        uuids = [card.uuid for card in share_node.cards]
        return (
            (share_node.strategy, share_node.candidates, share_node.compute_score),
            (*share_node.resources.items(),),
            frozenset(use.lock for use in self._uses.values()),
            (*chain.from_iterable(seen),),
            () if len({*uuids}) == len(uuids) else (*uuids,),
        )

    def amounts_of(self, card: ShareNodeCard, resource: ResourceClass) -> tuple[int, int]:
        return amounts(card, resource, self._uses.get(card.uuid))

    def free(self) -> dict[FreeOf, int]:
        """Returns the units of each class that each card has free, where pods can have several classes."""
        if self.open_share_node is None or not self._is_mixed:
            return {}
        return {
            (resource, card.uuid): card.free
            for resource in self._classes
            for card in self.cards(resource)
            if card.healthy
        }

    def cards(self, resource: ResourceClass | None = None) -> tuple[Card, ...]:
        """Returns the cards of the GPUShareNode with what is allocated of them now, by index; made anew each
        time.

        1. With ``resource``: as that class sees them. A card that serves another class now is full.
        2. Without: each as the class sees it that uses it, or the first class that the node serves.
        """
        if resource is None and not self._is_mixed:
            resource = self._classes[0]
        cards = self.share_node.cards if self.share_node else ()
        return tuple(self._card(card, resource, self._uses.get(card.uuid)) for card in cards)

    def _seen_as(self, resource: ResourceClass) -> tuple[Card, ...]:
        """Returns ``cards``, made once."""
        seen = self._seen or {}
        if resource not in seen:
            self._seen = seen = {**seen, resource: self.cards(resource)}
        return seen[resource]

    def _cards_after(self, resource: ResourceClass, gone: Collection[str]) -> Iterator[Card]:
        for card in self.share_node.cards if self.share_node else ():
            yield self._card(card, resource, self._use(card.uuid, gone))

    def _card(self, card: ShareNodeCard, resource: ResourceClass | None, use: CardUse | None) -> Card:
        seen_as = resource or (use.lock if use else None) or self._classes[0]
        units, allocated = amounts(card, seen_as, use)
        lockable = use is None and self._is_mixed
        return Card(
            card.uuid,
            card.index,
            units,
            allocated,
            card.is_open,
            card.numa_node,
            card.link_group,
            lockable,
        )

    def card_fits(self, card: str, request: ResourceRequest, *, gone: Collection[str]) -> bool:
        """Returns whether ``card`` (UUID) is one that ``request`` could get. ``gone``: as in ``choose``."""
        reported, units = self._reported(card), mode_serving(request.resource).on_cards(request.total).units
        is_served = self.open_share_node is not None and request.name in self.open_share_node.resources
        return (
            is_served
            and reported is not None
            and self._card(reported, request.resource, self._use(card, gone)).fits(units)
        )

    def choose(
        self, request: ResourceRequest, *, without: Collection[str] = (), gone: Collection[str] = ()
    ) -> Mapping[str, int]:
        """Returns card UUID -> units that ``request`` would get, ``without`` some cards; empty when it does
        not fit.

        ``gone``: UIDs of pods whose units, and whose holds, are taken for free.
        """
        choice = self._choice(request, without=without, gone=gone)
        return choice.units if choice else {}

    def _choice(
        self, request: ResourceRequest, *, without: Collection[str], gone: Collection[str]
    ) -> CardChoice | None:
        share_node = self.open_share_node
        if share_node is None or request.name not in share_node.resources:
            return None
        seen = self._cards_after(request.resource, gone) if gone else self._seen_as(request.resource)
        cards = [card for card in seen if card.uuid not in without]
        units = mode_serving(request.resource).choose(cards, request.total, share_node.strategy)
        return CardChoice(request, units, cards, share_node.strategy) if units else None

    def choose_together(self, request: Request, *, gone: Collection[str] = ()) -> list[CardChoice]:
        """Returns what each resource of ``request`` would get; empty when they do not fit together.

        ``gone``: as in ``choose``. No card serves two classes. Memory chooses first: not every card is large
        enough for it.
        """
        chosen: list[CardChoice] = []
        for asked in sorted(request.resources, key=lambda asked: asked.resource is not ResourceClass.MEMORY):
            taken = {card for choice in chosen for card in choice.units}
            choice = self._choice(asked, without=taken, gone=gone)
            if choice is None:
                return []
            chosen.append(choice)
        return chosen

    def candidate(self, request: Request) -> Candidate | None:
        """Returns what ranking needs to know, or None when ``request`` does not fit, all of it together. Of
        several resources the first one ranks."""
        share_node = self.open_share_node
        if share_node is None or (len(request.resources) > 1 and not self.choose_together(request)):
            return None
        asked = request.resources[0]
        chosen = self.choose(asked)
        if not chosen:
            return None
        return Candidate.of_cards(
            self._seen_as(asked.resource),
            chosen,
            resource=asked.resource,
            holds=frozenset(use.lock for use in self._uses.values() if use.lock),
            compute_score=share_node.compute_score,
        )
