"""Who has how much of which card of one node. Pure."""

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from gpushare_core.placement.card_choice import Card
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import Meaning, convert_units
from gpushare_core.scheduling.ledger.booking import (
    Booking,
    Bookings,
    units_booked,
    units_by_pod,
    with_units,
    without_pod,
)
from gpushare_core.scheduling.ledger.hold import Hold
from gpushare_core.scheduling.objects.holder import Holder
from gpushare_core.scheduling.objects.share_node import ShareNode, ShareNodeCard

GONE_SECONDS = 60.0
"""In which a plugin stops reporting a pod that is gone. Where it does not, the pod was deleted by force and
hangs, as in its driver: nobody knows when it ends."""


class CardUse(NamedTuple):
    lock: ResourceClass | None
    """The class that the card serves alone; None where two classes use it by mistake: it serves nobody else
    then."""
    units: int
    """Booked, or given out by the kubelet, whichever is more for each pod."""


@lru_cache(maxsize=4096)
def card_use(lock: ResourceClass | None, units: int) -> CardUse:
    """Returns a shared one: the cards of a whole cluster have few different ones."""
    return CardUse(lock, units)


class Share(NamedTuple):
    namespace: str
    name: str
    uid: str
    units: int


@dataclass(slots=True)
class NodeSums:
    """Holders survive the loss of the GPUShareNode: the pods still run, and the policy may come back."""

    share_node: ShareNode | None = None
    holders: dict[str, Holder] = field(default_factory=dict)
    """By pod UID; also those that are gone and still count."""
    holds: dict[str, Hold] = field(default_factory=dict)
    """By the UID of the pod that they are for."""
    _booked: dict[str, Booking] = field(default_factory=dict)
    """Card UUID -> units by annotation or reservation, in the node's unit. Also of cards that the
    GPUShareNode does not name (yet)."""
    _uses: dict[str, CardUse] = field(default_factory=dict)
    """By UUID, of the cards of which anything is in use."""
    _reported_gone: dict[str, float] = field(default_factory=dict)
    """UID of a pod that is gone, and that the GPUShareNode still names -> since when it is gone."""
    _given_back: frozenset[str] = frozenset()
    """UIDs of the holders that a GPUShareNode reported in full, and that the next one did not name."""
    _seen: Mapping[ResourceClass, tuple[Card, ...]] | None = None
    """The cards as those classes see them for which one was chosen since the last change: of few nodes."""

    def set_share_node(self, share_node: ShareNode | None) -> None:
        named = set(_named(share_node))
        missing = self.holders.keys() & set(_named(self.share_node)).difference(named)
        if given_back := {uid for uid in missing if self.is_reported_in_full(uid)}:
            self._given_back |= given_back
        for uid in self._reported_gone.keys() - named:
            del self._reported_gone[uid]
        before, self.share_node = self._meanings, share_node
        if before != self._meanings or any(map(self._is_of_another_unit, self.holders.values())):
            self._booked.clear()
            for holder in self.holders.values():
                self._book(holder)
        self._uses.clear()
        self._seen = None
        cards = {card.uuid: card for card in reversed(share_node.cards)} if share_node else {}
        held = (units.card for hold in self.holds.values() for units in hold.holder.cards)
        for card in {*self._booked, *cards, *held}:
            self._set_use(card, self._use_of(card, cards.get(card)))

    def put(self, holder: Holder) -> None:
        """Replaces what the same pod had before."""
        self._unbook(holder.uid)
        self._reported_gone.pop(holder.uid, None)
        self.holders[holder.uid] = holder
        self._book(holder)
        for card in holder.cards:
            self._count(card.card)

    def replace(self, holder: Holder) -> None:
        """Replaces what the same pod had before, which counts as it does."""
        self.holders[holder.uid] = holder

    def remove(self, uid: str) -> None:
        """What the kubelet has not released yet stays in use."""
        self._unbook(uid)
        if uid in self._given_back:
            self._given_back -= {uid}

    def delete(self, uid: str, *, now: float) -> None:
        """Removes a pod that is gone: the GPUShareNode will not name it for long."""
        self.remove(uid)
        if self.is_reported(uid):
            self._reported_gone[uid] = now

    @property
    def reported_gone(self) -> Set[str]:
        """The UIDs of pods that are gone, and that the GPUShareNode still names."""
        return self._reported_gone.keys()

    def forget_gone(self, *, now: float) -> None:
        """Pods that are gone for ``GONE_SECONDS`` are not waited for any more."""
        for uid in [uid for uid, since in self._reported_gone.items() if now - since >= GONE_SECONDS]:
            del self._reported_gone[uid]

    def is_reported(self, uid: str) -> bool:
        """Returns whether the GPUShareNode says that the kubelet has given units to the pod."""
        return uid in _named(self.share_node)

    def is_reported_in_full(self, uid: str) -> bool:
        """Returns whether the GPUShareNode reports as many units as the pod has booked: the kubelet gives
        each container its own."""
        cards = self.share_node.cards if self.share_node else ()
        reported = sum(card.surely_given(uid) for card in cards)
        return reported >= max(1, sum(units_booked(bookings, uid) for bookings in self._booked.values()))

    def was_reported(self, uid: str) -> bool:
        """Returns whether some GPUShareNode has reported all that the kubelet has given to a holder."""
        return uid in self._given_back or self.is_reported_in_full(uid)

    def put_hold(self, hold: Hold) -> None:
        self.holds[hold.uid] = hold
        for card in hold.holder.cards:
            self._count(card.card)

    def remove_hold(self, uid: str) -> None:
        for card in self.holds.pop(uid).holder.cards:
            self._count(card.card)

    def lock_of(self, card: str) -> ResourceClass | None:
        """Returns the class that ``card`` (UUID) serves alone while anything of it is in use."""
        return self._uses[card].lock if card in self._uses else None

    def booked(self, uid: str, card: str) -> int:
        """Returns what the pod has of ``card`` (UUID) by annotation or reservation, in the node's unit."""
        return units_booked(self._booked.get(card), uid)

    def booked_of(self, card: str) -> dict[str, int]:
        """Returns pod UID -> units of ``card`` (UUID), as ``booked``."""
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
        """Rounded up. Not less than ``units`` before the kubelet is known to have the pod: to a pod that was
        bound while the unit changed it gives as many units, of the size that they have by then."""
        meaning = holder.meaning_of(card)
        if meaning is None or not self._meanings or meaning in self._meanings:
            return units
        own = next((own for own in self._meanings if own[0] is meaning[0]), self._meanings[0])
        converted = convert_units(units, meaning, own)
        if converted is None:  # no card serves two classes
            reported = self._reported(card)
            return max(units, reported.units if reported else 0)
        return converted if self.is_reported(holder.uid) else max(units, converted)

    def _book(self, holder: Holder) -> None:
        for card in holder.cards:
            own = self._in_node_unit(holder, card.card, card.units)
            self._set_bookings(card.card, with_units(self._booked.get(card.card), holder.uid, own))

    def _unbook(self, uid: str) -> None:
        for card in self.holders.pop(uid).cards if uid in self.holders else ():
            self._set_bookings(card.card, without_pod(self._booked.get(card.card), uid))
            self._count(card.card)

    def _set_bookings(self, card: str, bookings: Bookings) -> None:
        if bookings is None:
            self._booked.pop(card, None)
        else:
            self._booked[card] = bookings

    def _count(self, card: str) -> None:
        self._seen = None
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
        taken = self._taken(card, gone)
        if reported and gone:
            reported = reported.without(gone, self.booked_of(card))
        allocated = reported.units_in_use(taken) if reported else sum(taken.values())
        if allocated or (reported and reported.lock and self._is_mixed):
            return card_use(self._lock(card, taken, reported), allocated)
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
        self, card: str, taken: Mapping[str, int], reported: ShareNodeCard | None
    ) -> ResourceClass | None:
        """Returns the class as which a card is in use; None where there are two, or it is not known."""
        if not self._is_mixed:
            return self._classes[0]
        meanings = (holder.meaning_of(card) for holder in self._having(card, taken))
        classes = {meaning[0] if meaning else None for meaning in meanings}
        if reported and (reported.lock or reported.allocated or reported.holders):
            classes.add(reported.lock)
        return classes.pop() if len(classes) == 1 else None

    def _having(self, card: str, units: Mapping[str, int]) -> Iterator[Holder]:
        """Yields who has ``units`` (by pod UID) of ``card``: booked, or else held."""
        booked = self.booked_of(card)
        for uid in units:
            if units[uid]:
                yield self.holders[uid] if uid in booked else self.holds[uid].holder


def _named(share_node: ShareNode | None) -> Iterator[str]:
    """Yields the UIDs of the pods that ``share_node`` names, once for each of their cards."""
    cards = share_node.cards if share_node else ()
    return (holder.uid for card in cards for holder in card.holders)
