"""What the kubelet is offered: decided, recorded in the GPUShareNode, and then sent."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain

from gpushare_core.api.served import Problem
from gpushare_plugin.decide.health.cordon import kept_units
from gpushare_plugin.decide.memo import Memo
from gpushare_plugin.decide.offer.device_list import device_lists
from gpushare_plugin.decide.offer.offering import (
    POD_RESOURCES_UNAVAILABLE,
    NodeSnapshot,
    Offering,
    decide_offering,
    known_dialect,
    known_layout,
    postponed,
    unreadable,
    without_cards,
)
from gpushare_plugin.decide.units.locks import Locks
from gpushare_plugin.kubelet.assignment_reader import AssignmentReader
from gpushare_plugin.kubelet.device_stream import DeviceStream
from gpushare_plugin.kubelet.reservations import UnitReservations
from gpushare_plugin.reconcile.status_writer import StatusWriter
from gpushare_plugin.state import PluginState

NO_DEVICES = b""
"""A list of devices without any, as protobuf."""

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class KubeletOffer:
    """Keeps ``state.offering`` and the lists of devices."""

    state: PluginState
    assignment_reader: AssignmentReader
    reservations: UnitReservations
    streams: Mapping[str, DeviceStream]
    """By the name of the extended resource."""
    status: StatusWriter
    _decided: Memo[Offering] = field(default_factory=Memo, init=False)
    _sent_locks: Locks = field(default_factory=dict, init=False)
    """Cards that are in the lists of one class only."""
    _sent_kept: frozenset[int] = field(default=frozenset(), init=False)
    """Units of cordoned cards that are healthy in the lists."""

    async def update(self) -> bool:
        """Decides, records, and sends the kubelet the list if it is another one.

        The kubelet remembers IDs for longer than this process lives, so what they mean is written down first.
        Returns False where that cannot be decided or recorded yet: what was offered before stays.
        """
        state = self.state
        if state.share_node_problem:
            return self._postpone(unreadable(state.share_node_problem))
        if state.reading and (unknown := state.reading.unknown):
            return self._keep(without_cards(state.offering, unknown))
        offering = self.decide()
        changes_meaning = self._changes_meaning(offering)
        if changes_meaning or self._lacks_foreign():
            if not await self._read_assigned():
                return self._postpone(POD_RESOURCES_UNAVAILABLE)
            offering = self.decide()
        if problem := await self.status.record(offering):
            return self._postpone(problem)
        if changes_meaning:
            # Not where a container was just told what its units mean, or something else would be decided now.
            is_known = await self._read_assigned() and not self.reservations.remaining
            if not is_known or self.decide() != offering:
                return False
        self._put(offering)
        return True

    def decide(self) -> Offering:
        """Returns what to offer by what is known now; nothing of it is applied."""
        return self._decided.value(self._snapshot(), decide_offering)

    def withdraw(self) -> None:
        """Sends the kubelet empty lists when it next connects: another plugin serves it."""
        for stream in self.streams.values():
            if stream.is_offering:
                stream.offer_later(NO_DEVICES)

    def _snapshot(self) -> NodeSnapshot:
        state = self.state
        return NodeSnapshot(
            share_node=state.share_node,
            cards=state.reading.cards if state.reading else None,
            last_layout=state.last_layout,
            last_dialect=state.last_dialect,
            assigned=state.assigned,
            assigned_known=state.assigned_known and not self._lacks_granted_units(),
            pods=dict(state.pods),
        )

    def _lacks_granted_units(self) -> bool:
        """Whether pods hold units of which neither the kubelet nor its checkpoint says anything yet."""
        state = self.state
        unshown = {*state.unshown_holders, *state.unshown_starters} & state.pods.keys()
        return any(not state.assigned.stored_of(state.pods[name]) for name in unshown)

    def _changes_meaning(self, offering: Offering) -> bool:
        """Whether IDs would mean something else than what was offered before, also before a restart."""
        snapshot = self._snapshot()
        known, dialect = known_layout(snapshot), known_dialect(snapshot)
        if known is None or offering.layout is None:
            return False
        return dialect is not offering.dialect or not offering.layout.means_the_same(known)

    def _lacks_foreign(self) -> bool:
        """Whether foreign units of the dialect were not read yet: the GPUShareNode says which to read."""
        state = self.state
        return state.pod_resources_available and not state.dialect_names <= state.assigned.foreign_names

    async def _read_assigned(self) -> bool:
        """Returns whether it is known what is assigned right now.

        IDs are about to change their meaning, and a pod may have been admitted since the last reading. A
        kubelet that was restarted shows its pods a moment later.
        """
        await self.assignment_reader.read()
        state = self.state
        return state.pod_resources_available and not (state.unshown_holders or state.unshown_starters)

    def _postpone(self, problem: Problem) -> bool:
        """Returns False. What is offered stays, but no new pod gets a card that is closed by now."""
        cards = self.state.reading.cards if self.state.reading else None
        return self._keep(postponed(self.state.offering, problem, cards=cards))

    def _keep(self, offering: Offering) -> bool:
        """Returns False. What is offered still follows the pods: cards get free, others are locked."""
        before, self.state.offering = self.state.offering, offering
        if before.layout:
            self._send_changes(before)
        return False

    def _put(self, offering: Offering) -> None:
        before, self.state.offering = self.state.offering, offering
        if offering.layout:
            self.state.last_layout, self.state.last_dialect = offering.layout, offering.dialect
            self.state.refresh_requests()
        self._send_changes(before)

    def _send_changes(self, before: Offering) -> None:
        offering = self.state.offering
        holdings = chain(self.state.assigned.holdings(), self.reservations.holdings())
        locks, kept = self.state.locks(offering), kept_units(offering.layout, holdings)
        if (*offering.lists, locks, kept) != (*before.lists, self._sent_locks, self._sent_kept):
            self._send(offering, locks, kept)

    def _send(self, offering: Offering, locks: Locks, kept: frozenset[int]) -> None:
        layout, self._sent_locks, self._sent_kept = offering.layout, locks, kept
        lists: Mapping[str, bytes] = {}
        if layout:
            replaced = offering.devices_of_replaced_plugin
            lists = device_lists(layout, offering.dialect, locks, replaced, kept=kept)
        for name, stream in self.streams.items():
            if stream.is_offering and name not in lists:
                stream.withdraw(NO_DEVICES)
                _log.info("no longer offering %s", name)
        for name, message in lists.items():
            self.streams[name].offer(message)
        if layout:
            text = "offering %d units of %s on %d cards as %s"
            _log.info(text, layout.units, layout.unit.text, len(layout.cards), ", ".join(lists))
