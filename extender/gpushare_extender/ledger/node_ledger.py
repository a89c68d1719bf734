"""The sums of one node: its cards, and which pods have how much of them. Pure."""

from collections.abc import Collection, Hashable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from gpushare_core.placement.card_choice import Card
from gpushare_core.placement.modes.sharing_mode import Room, SharingMode
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.node_ranking import Candidate
from gpushare_core.placement.requests import Request, ResourceClass, ResourceRequest
from gpushare_core.placement.units import Meaning, convert_units
from gpushare_extender.ledger.booking import (
    Booking,
    Bookings,
    units_booked,
    units_by_pod,
    with_units,
    without_pod,
)
from gpushare_extender.ledger.card_use import CardUse, card_use
from gpushare_extender.ledger.hold import Hold
from gpushare_extender.ledger.node_room import NodeRoom, ResourceRoom, shared_room
from gpushare_extender.objects.holder import Holder
from gpushare_extender.objects.share_node import ShareNode, ShareNodeCard

LEFT_SECONDS = 60.0
"""In which a plugin stops telling of a pod that is gone. Where it does not, the pod was deleted by force and
hangs, as in its driver: nobody knows when it ends."""

FreeOf = tuple[ResourceClass, str]
"""A class and the UUID of a card."""


class Share(NamedTuple):
    """What one pod has of one card."""

    namespace: str
    name: str
    uid: str
    units: int


def amounts(card: ShareNodeCard, resource: ResourceClass, use: CardUse | None) -> tuple[int, int]:
    """Returns the units that ``card`` has and those of them that are allocated, as ``resource`` sees it: one
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
class NodeLedger:
    """Holders survive the loss of the GPUShareNode: the pods still run, and the policy may come back."""

    share_node: ShareNode | None = None
    holders: dict[str, Holder] = field(default_factory=dict)
    """By pod UID; also those that are gone and count still."""
    holds: dict[str, Hold] = field(default_factory=dict)
    """By the UID of the pod that they are for."""
    paused_reason: str = ""
    """For people: why the node takes no pods for a while. Empty when it does."""
    _booked: dict[str, Booking] = field(default_factory=dict)
    """Card UUID -> units by annotation or reservation, in the node's unit; cards that the GPUShareNode does
    not name (yet) are in it, too."""
    _uses: dict[str, CardUse] = field(default_factory=dict)
    """By UUID, of the cards of which anything is in use."""
    _left: dict[str, float] = field(default_factory=dict)
    """UID of a pod that is gone, and of which the GPUShareNode tells still -> since when it is gone."""
    _given_back: frozenset[str] = frozenset()
    """UIDs of the holders of which a GPUShareNode told in full, and that the next one did not name."""
    _seen: Mapping[ResourceClass, tuple[Card, ...]] | None = None
    """The cards as those classes see them for which one was chosen since the last change: of few nodes."""

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
        offered = ((name, mode_serving(each)) for name, each in self.open_share_node.resources.items())
        return shared_room(tuple(ResourceRoom(name, mode, self._room(mode)) for name, mode in offered))

    def possible(self) -> dict[str, int]:
        """Returns, by name, each resource that the node serves, closed or not -> the greatest amount that its
        cards offer to a pod when all are open and empty."""
        share_node = self.share_node
        modes = (
            {name: mode_serving(each) for name, each in share_node.resources.items()} if share_node else {}
        )
        cards = share_node.cards if share_node else ()
        return {
            name: mode.greatest([card.units_of(mode.resource) for card in cards])
            for name, mode in modes.items()
        }

    def _room(self, mode: SharingMode) -> Room:
        """Makes no ``Card`` of any card: of most nodes nothing else is asked between two changes."""
        cards = self.share_node.cards if self.share_node else ()
        amounts = [self.amounts_of(card, mode.resource) for card in cards if card.is_open]
        return mode.room_of(amounts, unhealthy=len(cards) - len(amounts))

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
        """Returns the units that a card has and those of them that are allocated, as ``resource`` sees it."""
        return amounts(card, resource, self._uses.get(card.uuid))

    def free(self) -> dict[FreeOf, int]:
        """Returns the units of each class that each card has free, where pods can have several classes."""
        if self.open_share_node is None or not self._is_mixed:
            return {}
        seen = (
            (resource_class, card) for resource_class in self._classes for card in self.cards(resource_class)
        )
        return {(each, card.uuid): card.free for each, card in seen if card.healthy}

    def set_share_node(self, share_node: ShareNode | None) -> None:
        missing = self.holders.keys() & set(_named(self.share_node)).difference(_named(share_node))
        if given_back := {uid for uid in missing if self.is_reported_in_full(uid)}:
            self._given_back |= given_back
        for uid in self._left.keys() - set(_named(share_node)):
            del self._left[uid]
        before, self.share_node = self._meanings, share_node
        if before != self._meanings or any(map(self._is_of_another_unit, self.holders.values())):
            self._booked.clear()
            for holder in self.holders.values():
                self._book(holder)
        self._uses.clear()
        self._changed()
        cards = {card.uuid: card for card in reversed(share_node.cards)} if share_node else {}
        held = (each.card for hold in self.holds.values() for each in hold.holder.cards)
        for card in {*self._booked, *cards, *held}:
            self._set_use(card, self._use_of(card, cards.get(card)))

    def put(self, holder: Holder) -> None:
        """Takes the place of what the same pod had before."""
        self._unbook(holder.uid)
        self._left.pop(holder.uid, None)
        self.holders[holder.uid] = holder
        self._book(holder)
        for card in holder.cards:
            self._count(card.card)

    def replace(self, holder: Holder) -> None:
        """Takes the place of what the same pod had before, which counts as it does."""
        self.holders[holder.uid] = holder

    def remove(self, uid: str) -> None:
        """What the kubelet has not released yet stays in use."""
        self._unbook(uid)
        if uid in self._given_back:
            self._given_back -= {uid}

    def leave(self, uid: str, *, now: float) -> None:
        """As ``remove``, of a pod that is gone: the GPUShareNode will not tell of it for long."""
        self.remove(uid)
        if self.is_reported(uid):
            self._left[uid] = now

    @property
    def left(self) -> Set[str]:
        """The UIDs of pods that are gone, and that the GPUShareNode names still."""
        return self._left.keys()

    def forget_left(self, *, now: float) -> None:
        """Those that are gone for ``LEFT_SECONDS`` are not waited for any more."""
        for uid in [uid for uid, since in self._left.items() if now - since >= LEFT_SECONDS]:
            del self._left[uid]

    def _unbook(self, uid: str) -> None:
        for card in self.holders.pop(uid).cards if uid in self.holders else ():
            self._set_bookings(card.card, without_pod(self._booked.get(card.card), uid))
            self._count(card.card)

    def is_reported(self, uid: str) -> bool:
        """Whether the GPUShareNode says that the kubelet has given units to the pod."""
        return uid in _named(self.share_node)

    def is_reported_in_full(self, uid: str) -> bool:
        """Whether it says so of as many units as the pod has booked: each container is given its own."""
        cards = self.share_node.cards if self.share_node else ()
        reported = sum(card.surely_given(uid) for card in cards)
        return reported >= max(1, sum(units_booked(each, uid) for each in self._booked.values()))

    def was_reported(self, uid: str) -> bool:
        """Whether what the kubelet has given to a holder is known: some GPUShareNode has told all of it."""
        return uid in self._given_back or self.is_reported_in_full(uid)

    def cards(self, resource: ResourceClass | None = None) -> tuple[Card, ...]:
        """Returns the cards of the GPUShareNode with what is allocated of them now, in order of index; made
        anew each time.

        They are as the class sees them: one that serves another class now is full. Without a class each is as
        those see it that use it: where there is one class alone, as that does.
        """
        if resource is None and not self._is_mixed:
            resource = self._classes[0]
        cards = self.share_node.cards if self.share_node else ()
        return tuple(self._card(card, resource, self._uses.get(card.uuid)) for card in cards)

    def _seen_as(self, resource: ResourceClass) -> tuple[Card, ...]:
        """Returns the same as ``cards``, made once."""
        seen = self._seen or {}
        if resource not in seen:
            self._seen = seen = {**seen, resource: self.cards(resource)}
        return seen[resource]

    def card_fits(self, card: str, request: ResourceRequest, *, gone: Collection[str]) -> bool:
        """Returns whether ``card`` (UUID) is one that ``request`` could get. ``gone``: as in ``choose``."""
        reported, units = self._reported(card), mode_serving(request.resource).on_cards(request.total).units
        is_served = self.open_share_node is not None and request.name in self.open_share_node.resources
        return (
            is_served
            and reported is not None
            and self._card(reported, request.resource, self._use(card, gone)).fits(units)
        )

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

    def lock_of(self, card: str) -> ResourceClass | None:
        """Returns the class that ``card`` (UUID) serves alone as long as anything of it is in use."""
        return self._uses[card].lock if card in self._uses else None

    def choose(
        self, request: ResourceRequest, *, without: Collection[str] = (), gone: Collection[str] = ()
    ) -> Mapping[str, int]:
        """Returns card UUID -> units that ``request`` would get, ``without`` some cards; empty when it does
        not fit.

        ``gone``: UIDs of pods that have nothing any more, and for which nothing is held.
        """
        share_node = self.open_share_node
        if share_node is None or request.name not in share_node.resources:
            return {}
        seen = self._cards_after(request.resource, gone) if gone else self._seen_as(request.resource)
        cards = [card for card in seen if card.uuid not in without]
        return mode_serving(request.resource).choose(cards, request.total, share_node.strategy)

    def choose_together(
        self, request: Request, *, gone: Collection[str] = ()
    ) -> list[tuple[ResourceRequest, Mapping[str, int]]]:
        """Returns what each resource of ``request`` would get; empty when they do not fit together.

        ``gone``: as in ``choose``. No card serves two classes. Memory chooses first: not every card is large
        enough for it.
        """
        chosen: list[tuple[ResourceRequest, Mapping[str, int]]] = []
        for resource in sorted(request.resources, key=lambda each: each.resource is not ResourceClass.MEMORY):
            taken = {card for _, shares in chosen for card in shares}
            cards = self.choose(resource, without=taken, gone=gone)
            if not cards:
                return []
            chosen.append((resource, cards))
        return chosen

    def put_hold(self, hold: Hold) -> None:
        self.holds[hold.uid] = hold
        for card in hold.holder.cards:
            self._count(card.card)

    def remove_hold(self, uid: str) -> None:
        for card in self.holds.pop(uid).holder.cards:
            self._count(card.card)

    def candidate(self, request: Request) -> Candidate | None:
        """Returns what ranking needs to know, or None when ``request`` does not fit, all of it together.

        Of several resources the first one ranks.
        """
        share_node = self.open_share_node
        if share_node is None or (len(request.resources) > 1 and not self.choose_together(request)):
            return None
        return self._candidate(share_node, request.resources[0])

    def _candidate(self, share_node: ShareNode, request: ResourceRequest) -> Candidate | None:
        chosen = self.choose(request)
        if not chosen:
            return None
        return Candidate.of_cards(
            self._seen_as(request.resource),
            chosen,
            resource=request.resource,
            holds=frozenset(use.lock for use in self._uses.values() if use.lock),
            compute_score=share_node.compute_score,
        )

    def booked(self, uid: str, card: str) -> int:
        """Returns what the pod has of ``card`` (UUID) by annotation or reservation, in the node's unit."""
        return units_booked(self._booked.get(card), uid)

    def booked_of(self, card: str) -> dict[str, int]:
        """Returns pod UID -> units of ``card`` (UUID), as ``booked`` says them."""
        return units_by_pod(self._booked.get(card))

    @property
    def booked_cards(self) -> Set[str]:
        """The UUIDs of the cards of which pods have anything by annotation or reservation."""
        return self._booked.keys()

    def given(self, card: ShareNodeCard) -> Mapping[str, int]:
        """Returns what the kubelet has given to each pod of ``card``, by UID, each pod as a whole."""
        return card.given(self.booked_of(card.uuid))

    def shares(self, card: str) -> Iterator[Share]:
        """Yields what each pod has of ``card`` (UUID), in the node's unit, in no particular order."""
        booked = self.booked_of(card)
        reported = self._reported(card)
        given = reported.given(booked) if reported else {}
        for uid, units in booked.items():
            holder = self.holders[uid]
            yield Share(holder.namespace, holder.name, uid, max(units, given.get(uid, 0)))
        for other in reported.holders if reported else ():
            if other.uid not in booked:
                yield Share(other.namespace, other.name, other.uid, other.units)

    @property
    def _meanings(self) -> tuple[Meaning, ...]:
        return self.share_node.meanings if self.share_node else ()

    @property
    def _classes(self) -> tuple[ResourceClass, ...]:
        """What the node serves."""
        return (self.share_node and self.share_node.classes) or (ResourceClass.MEMORY,)

    @property
    def _is_mixed(self) -> bool:
        """Whether a card that nobody uses is open to several classes."""
        return self.share_node is not None and len(self.share_node.resources) > 1

    def _reported(self, card: str) -> ShareNodeCard | None:
        return self.share_node.card(card) if self.share_node else None

    def _is_of_another_unit(self, holder: Holder) -> bool:
        return bool(self._meanings) and not holder.meanings <= {None, *self._meanings}

    def _in_node_unit(self, holder: Holder, card: str, units: int) -> int:
        """Rounded up. Not less than ``units`` before the kubelet is known to have the pod: to one that was
        bound while the unit changed it gives as many units of the size that they have by then."""
        meaning = holder.meaning_of(card)
        if meaning is None or not self._meanings or meaning in self._meanings:
            return units
        own = next((each for each in self._meanings if each[0] is meaning[0]), self._meanings[0])
        converted = convert_units(units, meaning, own)
        if converted is None:  # no card serves two classes
            reported = self._reported(card)
            return max(units, reported.units if reported else 0)
        return converted if self.is_reported(holder.uid) else max(units, converted)

    def _book(self, holder: Holder) -> None:
        for card in holder.cards:
            own = self._in_node_unit(holder, card.card, card.units)
            self._set_bookings(card.card, with_units(self._booked.get(card.card), holder.uid, own))

    def _set_bookings(self, card: str, bookings: Bookings) -> None:
        if bookings is None:
            self._booked.pop(card, None)
        else:
            self._booked[card] = bookings

    def _changed(self) -> None:
        """What was derived from the sums is to be derived anew."""
        self._seen = None

    def _count(self, card: str) -> None:
        self._changed()
        self._set_use(card, self._use(card))

    def _set_use(self, card: str, use: CardUse | None) -> None:
        if use:
            self._uses[card] = use
        else:
            self._uses.pop(card, None)

    def _use(self, card: str, gone: Collection[str] = ()) -> CardUse | None:
        """Returns what is in use of a card, holds included, once the pods ``gone`` (UIDs) have nothing."""
        return self._use_of(card, self._reported(card), gone)

    def _use_of(
        self, card: str, reported: ShareNodeCard | None, gone: Collection[str] = ()
    ) -> CardUse | None:
        booked = self._taken(card, gone)
        if reported and gone:
            reported = reported.without(gone, self.booked_of(card))
        allocated = reported.units_in_use(booked) if reported else sum(booked.values())
        if allocated or (reported and reported.lock and self._is_mixed):
            return card_use(self._lock(card, booked, reported), allocated)
        return None

    def _taken(self, card: str, gone: Collection[str]) -> Mapping[str, int]:
        """Returns pod UID -> units of a card that are booked or held."""
        booked = self.booked_of(card)
        if not self.holds and not gone:
            return booked
        held = {
            hold.uid: self._in_node_unit(hold.holder, card, units)
            for hold in self.holds.values()
            if (units := hold.holder.units_of(card))
        }
        return {uid: units for uid, units in (held | booked).items() if uid not in gone}

    def _lock(
        self, card: str, booked: Mapping[str, int], reported: ShareNodeCard | None
    ) -> ResourceClass | None:
        """Returns the class as which a card is in use; None where there are two, or it is not known."""
        if not self._is_mixed:
            return self._classes[0]
        meanings = (holder.meaning_of(card) for holder in self._having(card, booked))
        classes = {meaning[0] if meaning else None for meaning in meanings}
        if reported and (reported.lock or reported.allocated or reported.holders):
            classes.add(reported.lock)
        return classes.pop() if len(classes) == 1 else None

    def _having(self, card: str, units: Mapping[str, int]) -> Iterator[Holder]:
        """Yields who has ``units`` (by pod UID) of ``card`` booked, or else held: a pod can have other cards
        held for it."""
        booked = self.booked_of(card)
        for uid in units:
            if units[uid]:
                yield self.holders[uid] if uid in booked else self.holds[uid].holder


def _named(share_node: ShareNode | None) -> Iterator[str]:
    """Yields the UIDs of the pods that ``share_node`` tells of, once for each of their cards."""
    cards = share_node.cards if share_node else ()
    return (holder.uid for card in cards for holder in card.holders)
