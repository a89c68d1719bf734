"""The sums of one node: its cards, and which pods have how much of them. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gpushare_core.placement.card_choice import Card
from gpushare_core.placement.node_ranking import Candidate
from gpushare_core.placement.requests import ResourceRequest
from gpushare_core.placement.sharing_mode import Room, SharingMode
from gpushare_core.placement.units import Meaning, convert_units
from gpushare_extender.ledger.hold import Hold
from gpushare_extender.ledger.holder import Holder
from gpushare_extender.ledger.share_node import ShareNode, ShareNodeCard


class ResourceRoom(NamedTuple):
    """What a node offers of one resource to one request."""

    name: str
    """Of the extended resource."""
    mode: SharingMode
    room: Room


NodeRoom = tuple[ResourceRoom, ...]
"""What a node offers of each resource that it serves.

Tuples, for a filter hashes them for every node that fails.
"""


def room_of(name: str, rooms: NodeRoom) -> ResourceRoom | None:
    """Returns what ``rooms`` offer of the resource ``name``, or None where it is not served."""
    return next((each for each in rooms if each.name == name), None)


class Share(NamedTuple):
    """What one pod has of one card."""

    namespace: str
    name: str
    uid: str
    units: int


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
    _booked: dict[str, dict[str, int]] = field(default_factory=dict)
    """Card UUID -> pod UID -> units by annotation or reservation, in the node's unit; cards that the
    GPUShareNode does not name (yet) are in it, too."""
    _allocated: dict[str, int] = field(default_factory=dict)
    """Card UUID -> units in use: booked, or given out by the kubelet, whichever is more for each pod."""
    _given_back: set[str] = field(default_factory=set)
    """UIDs of the holders that a GPUShareNode named, and the next one did not."""

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
        mode, cards = self.open_share_node.mode, list(self.cards())
        return tuple(ResourceRoom(name, mode, mode.room(cards)) for name in self.open_share_node.resources)

    def set_share_node(self, share_node: ShareNode | None) -> None:
        reported = set(self._reported_uids())
        before, self.share_node = self._unit_meaning, share_node
        self._given_back |= self.holders.keys() & reported.difference(self._reported_uids())
        if before != self._unit_meaning or any(map(self._is_of_another_unit, self.holders.values())):
            self._booked.clear()
            for holder in self.holders.values():
                self._book(holder)
        self._allocated.clear()
        named = (card.uuid for card in share_node.cards) if share_node else ()
        for card in {*self._booked, *named}:
            self._count(card)

    def put(self, holder: Holder) -> None:
        """Takes the place of what the same pod had before."""
        self._unbook(holder.uid)
        self.holders[holder.uid] = holder
        self._book(holder)
        for card, _ in holder.cards:
            self._count(card)

    def remove(self, uid: str) -> None:
        """What the kubelet has not released yet stays in use."""
        self._unbook(uid)
        self._given_back.discard(uid)

    def _unbook(self, uid: str) -> None:
        for card, _ in self.holders.pop(uid).cards if uid in self.holders else ():
            self._booked[card].pop(uid, None)
            self._count(card)

    def is_reported(self, uid: str) -> bool:
        """Whether the GPUShareNode says that the kubelet has given units to the pod."""
        return uid in self._reported_uids()

    def was_reported(self, uid: str) -> bool:
        """Whether some GPUShareNode has said so of a holder: what the kubelet has of it is known."""
        return uid in self._given_back or self.is_reported(uid)

    def _reported_uids(self) -> Iterator[str]:
        cards = self.share_node.cards if self.share_node else ()
        return (holder.uid for card in cards for holder in card.holders)

    def cards(self, without: Collection[str] = ()) -> Iterator[Card]:
        """Yields the cards of the GPUShareNode with what is allocated or held of them, in order of index.

        ``without``: UIDs of pods that are left out, as if they were gone.
        """
        for card in self.share_node.cards if self.share_node else ():
            allocated = self._in_use(card, without) if without else self._allocated.get(card.uuid, 0)
            allocated += self._held(card.uuid, without)
            yield Card(card.uuid, card.index, card.units, allocated, card.healthy, card.numa_node)

    def choose(
        self, request: ResourceRequest, *, without: Collection[str] = (), only: str = ""
    ) -> Mapping[str, int]:
        """Returns card UUID -> units that ``request`` would get now; empty when it does not fit.

        ``without``: as in ``cards``. ``only``: of no other card than the one with this UUID.
        """
        share_node = self.open_share_node
        if share_node is None or request.name not in share_node.resources:
            return {}
        cards = (card for card in self.cards(without) if only in ("", card.uuid))
        return share_node.mode.choose(cards, request.total, share_node.strategy)

    def passed_holds(self, uid: str, priority: int) -> set[str]:
        """Returns the UIDs of the pods whose holds do not count for a pod with ``uid`` and ``priority``."""
        return {hold.uid for hold in self.holds.values() if not hold.counts_for(uid, priority)}

    def candidate(self, request: ResourceRequest) -> Candidate | None:
        """Returns what ranking needs to know, or None when ``request`` does not fit."""
        share_node, chosen = self.open_share_node, self.choose(request)
        if share_node is None or not chosen:
            return None
        left_over = sum(card.free - chosen[card.uuid] for card in self.cards() if card.uuid in chosen)
        return Candidate(share_node.compute_score, sum(self._allocated.values()), left_over)

    def shares(self, card: str) -> Iterator[Share]:
        """Yields what each pod has of ``card`` (UUID), in the node's unit, in no particular order."""
        booked = self._booked.get(card, {})
        reported = self._reported(card)
        given = reported.given(booked) if reported else {}
        for uid, units in booked.items():
            holder = self.holders[uid]
            yield Share(holder.namespace, holder.name, uid, max(units, given.get(uid, 0)))
        for other in reported.holders if reported else ():
            if other.uid not in booked:
                yield Share(other.namespace, other.name, other.uid, other.units)

    @property
    def _unit_meaning(self) -> Meaning | None:
        return self.share_node.unit_meaning if self.share_node else None

    def _reported(self, card: str) -> ShareNodeCard | None:
        return self.share_node.card(card) if self.share_node else None

    def _is_of_another_unit(self, holder: Holder) -> bool:
        meanings = (holder.unit_meaning, self._unit_meaning)
        return None not in meanings and holder.unit_meaning != self._unit_meaning

    def _in_node_unit(self, holder: Holder, card: str, units: int) -> int:
        """Rounded up. Not less than ``units`` before the kubelet is known to have the pod: to one that was
        bound while the unit changed it gives as many units of the size that they have by then."""
        if holder.unit_meaning is None or self._unit_meaning is None:
            return units
        converted = convert_units(units, holder.unit_meaning, self._unit_meaning)
        if converted is None:  # no card serves two classes
            reported = self._reported(card)
            return max(units, reported.units if reported else 0)
        return converted if self.is_reported(holder.uid) else max(units, converted)

    def _book(self, holder: Holder) -> None:
        for card, units in holder.cards:
            booked = self._booked.setdefault(card, {})
            booked[holder.uid] = booked.get(holder.uid, 0) + self._in_node_unit(holder, card, units)

    def _held(self, card: str, without: Collection[str]) -> int:
        return sum(hold.holder.units_of(card) for hold in self.holds.values() if hold.uid not in without)

    def _in_use(self, card: ShareNodeCard, without: Collection[str]) -> int:
        booked = self._booked.get(card.uuid, {})
        left = {uid: units for uid, units in booked.items() if uid not in without}
        return card.without(without, booked).units_in_use(left)

    def _count(self, card: str) -> None:
        booked = self._booked.get(card, {})
        reported = self._reported(card)
        allocated = reported.units_in_use(booked) if reported else sum(booked.values())
        if allocated:
            self._allocated[card] = allocated
        else:
            self._allocated.pop(card, None)
        if not booked:
            self._booked.pop(card, None)
