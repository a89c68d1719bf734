"""Makes true what follows from the state: the list of devices, the annotations, the status."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

import msgspec

from gpushare_core.api.conditions import ConditionState
from gpushare_core.api.enums import Mode
from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import GPUShareNode, NodeStatus
from gpushare_core.audit.difference import Difference
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import SHARE_NODES
from gpushare_core.process.clock import utc_now
from gpushare_plugin.annotation_writer import AnnotationWriter
from gpushare_plugin.cluster.event_writer import EventWriter
from gpushare_plugin.decide.health.card_health import (
    examine,
    faults_of,
    judged,
    recorded_health,
    seconds_until_due,
)
from gpushare_plugin.decide.health.cordon import NO_CORDON, cordoned, kept_units, read_cordon
from gpushare_plugin.decide.health.fault_events import fault_events
from gpushare_plugin.decide.held.allocations import (
    PodAllocations,
    allocations_of,
    forgotten_allocations,
    lost_assignments_without_pod,
    node_locks,
    with_orphans,
)
from gpushare_plugin.decide.held.assigned_devices import NodeAssignments
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pods import Pods
from gpushare_plugin.decide.memo import LastAnswer
from gpushare_plugin.decide.offer.device_list import device_lists
from gpushare_plugin.decide.offer.offering import (
    KUBELET_SILENT,
    NOT_KEPT,
    NOT_RECORDED,
    Offering,
    Snapshot,
    decide_offering,
    is_recorded,
    known_dialect,
    known_layout,
    postponed,
    unreadable,
    without_cards,
)
from gpushare_plugin.decide.offer.replaced_plugin_units import doubtful_units
from gpushare_plugin.decide.pod_answers import PodAnswers
from gpushare_plugin.decide.report.annotation_repairs import Repair, RepairPlanner
from gpushare_plugin.decide.report.audit import AuditInput, NodeAudit
from gpushare_plugin.decide.report.conditions import AnnotationState, RegistrationState, node_conditions
from gpushare_plugin.decide.report.status import kept_status, node_status, with_conditions
from gpushare_plugin.decide.units.locks import NO_LOCKS, Locks
from gpushare_plugin.decide.use.excess import excess_conditions, excess_events
from gpushare_plugin.decide.use.reported_use import ReportedUse, recorded_use, reported_use
from gpushare_plugin.devices.card import DeviceSource, Reading
from gpushare_plugin.kubelet.assignment_reader import AssignmentReader
from gpushare_plugin.kubelet.device_stream import DeviceStream
from gpushare_plugin.kubelet.reservations import Reservations
from gpushare_plugin.state import NodeState
from gpushare_plugin.use_meter import UseMeter

NO_DEVICES = b""
"""A list of devices without any, as protobuf."""

_log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Reconciler:
    """One round is ``reconcile``; repeating it changes nothing."""

    state: NodeState
    client: KubeClient
    assignment_reader: AssignmentReader
    reservations: Reservations
    streams: Mapping[str, DeviceStream]
    """By the name of the extended resource."""
    registration: Callable[[], RegistrationState]
    open_source: Callable[[GPUShareNode], DeviceSource]
    meter: UseMeter
    events: EventWriter
    now: Callable[[], datetime] = utc_now
    clock: Callable[[], float] = time.monotonic
    """In steady seconds."""
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Held while a status is made and written: none is overtaken by an older one."""
    _kept: tuple[NodeStatus, NodeStatus] | None = field(default=None, init=False)
    """The status as it was written last, and what a CRD of another version left of it."""
    _sent_locks: Locks = field(default_factory=dict, init=False)
    """Cards that are in the lists of one class only."""
    _sent_kept: frozenset[int] = field(default=frozenset(), init=False)
    """Units of cordoned cards that are healthy in the lists."""
    _annotations: AnnotationWriter = field(init=False)
    _audit: NodeAudit = field(default_factory=NodeAudit, init=False)
    _decided: LastAnswer[Offering] = field(default_factory=LastAnswer, init=False)
    _planned: LastAnswer[Sequence[Repair]] = field(default_factory=LastAnswer, init=False)
    _planner: RepairPlanner = field(default_factory=RepairPlanner, init=False)
    _allocations: LastAnswer[Sequence[PodAllocation]] = field(default_factory=LastAnswer, init=False)
    _told: LastAnswer[NodeStatus] = field(default_factory=LastAnswer, init=False)
    """The status, its conditions apart."""
    _of_pods: PodAnswers[PodAllocations] = field(default_factory=PodAnswers, init=False)

    def __post_init__(self) -> None:
        self._annotations = AnnotationWriter(self.state, self.client, self.events)

    async def reconcile(self) -> bool:
        """Looks at the cards, decides what to offer, repairs annotations, writes the status.

        Does nothing while another plugin serves the node. Returns False where something could not be
        written: it has to be tried again soon.
        """
        if self.registration().displaced:
            self._stand_by()
            return True
        self.state.remember_record()
        await self._find_cards()
        offered = await self._offer()
        await self._repair_annotations()
        await self._measure()
        return await self.write_status() and offered

    async def prepare(self, yield_to_kubelet: Callable[[], Awaitable[None]]) -> None:
        """Works out what the next round is likely to ask for, and awaits ``yield_to_kubelet`` in between: the kubelet
        need not wait for all of it. Nothing is made true here, and what changes meanwhile the round works
        out anew."""
        if self.state.share_node is None or self.registration().displaced:
            return
        self._decide()
        await yield_to_kubelet()
        assignments = self._certain_assignments()
        self._repairs(assignments, self.state.last_dialect or self.state.offering.dialect)
        await yield_to_kubelet()
        self._every_allocation(self._certain_assignments())
        await yield_to_kubelet()

    def _certain_assignments(self) -> NodeAssignments | None:
        """None also where it is not known whether IDs mean the cards that containers were told."""
        offering = self.state.offering
        return None if offering.layout_unknown else self._node_assignments(offering)

    def seconds_until_due(self) -> float | None:
        """Returns the seconds until a round may find something by time alone, such as a card fit or sick, or
        books that have differed for long; None: none will."""
        health = self.state.health
        dues = (
            seconds_until_due(health, now=self.now()) if health else None,
            self._audit.seconds_until_due(now=self.clock()),
        )
        return min((due for due in dues if due is not None), default=None)

    def _stand_by(self) -> None:
        """What IDs mean is the other plugin's affair now: once that leaves, what it has recorded."""
        self.state.stand_by()
        self._audit.nothing_known()
        for stream in self.streams.values():
            if stream.is_offering:
                stream.offer_later(NO_DEVICES)

    async def _find_cards(self) -> None:
        """What a source cannot tell now it can at a later round: nothing that is held depends on it."""
        share_node, source = self.state.share_node, None
        if share_node and share_node.spec.mode is not Mode.OFF:
            source = self.open_source(share_node)
        reading = await source.read() if source else None
        if reading is None or share_node is None:
            self.state.reading, self.state.cordon = None, NO_CORDON
            return
        health = self.state.health or recorded_health(share_node)
        self.state.health = health = examine(health, reading, share_node, now=self.now())
        self.state.cordon = read_cordon(share_node, reading)
        self.state.reading = cordoned(judged(reading, health), self.state.cordon)

    async def _offer(self) -> bool:
        """Decides, records, and then sends the kubelet the list if it is another one.

        False: it cannot be decided yet, or not be recorded, and what was offered before stays. The kubelet
        remembers IDs for longer than this process lives, so what they mean has to be written down first.
        """
        if self.state.share_node_problem:
            return self._postpone(unreadable(self.state.share_node_problem))
        if self.state.reading and (unknown := self.state.reading.unknown):
            return self._keep(without_cards(self.state.offering, unknown))
        offering = self._decide()
        changes_meaning = self._changes_meaning(offering)
        if changes_meaning or self._lacks_foreign():
            if not await self._read_assigned():
                return self._postpone(KUBELET_SILENT)
            offering = self._decide()
        if problem := await self._record(offering):
            return self._postpone(problem)
        if changes_meaning and not (await self._read_assigned() and self._is_still(offering)):
            return False
        self._take(offering)
        return True

    def _lacks_foreign(self) -> bool:
        """Whether foreign units of the dialect were not read yet: the GPUShareNode says which to read."""
        state = self.state
        return state.pod_resources_available and not state.dialect_names <= state.assigned.foreign_names

    def _is_still(self, offering: Offering) -> bool:
        """Whether the same would be decided again, and nobody was told lately what his units mean."""
        return not self.reservations.remaining and self._decide() == offering

    def _postpone(self, problem: Problem) -> bool:
        """Returns False. What is offered stays, but nobody new comes to a card that is closed by now."""
        cards = self.state.reading.cards if self.state.reading else None
        return self._keep(postponed(self.state.offering, problem, cards=cards))

    def _keep(self, offering: Offering) -> bool:
        """Returns False. What is offered still follows the pods: cards get free, others are locked."""
        before, self.state.offering = self.state.offering, offering
        if before.layout:
            self._send_changes(before)
        return False

    def _take(self, offering: Offering) -> None:
        before, self.state.offering = self.state.offering, offering
        if offering.layout:
            self.state.last_layout, self.state.last_dialect = offering.layout, offering.dialect
            self.state.refresh_requests()
        self._send_changes(before)

    def _send_changes(self, before: Offering) -> None:
        offering = self.state.offering
        locks, kept = self._locks(offering), self._kept_units(offering)
        if (*offering.lists, locks, kept) != (*before.lists, self._sent_locks, self._sent_kept):
            self._send(offering, locks, kept)

    def _kept_units(self, offering: Offering) -> frozenset[int]:
        """Returns the units of cordoned cards that stay healthy, for pods have them."""
        holdings = chain(self.state.assigned.holdings(), self.reservations.holdings())
        return kept_units(offering.layout, holdings)

    def _locks(self, offering: Offering) -> Locks:
        """Returns the class that each card serves alone now."""
        assignments = self._node_assignments(offering)
        if assignments is None or not assignments.layout.is_mixed:
            return NO_LOCKS
        return node_locks(assignments, self.state.pods, self._every_allocation(assignments))

    async def _read_assigned(self) -> bool:
        """Returns whether it is known what is assigned right now.

        Read before IDs change their meaning: since the last time a pod may have been admitted. A kubelet that
        was restarted shows its pods a moment later.
        """
        await self.assignment_reader.read()
        state = self.state
        return state.pod_resources_available and not (state.unshown_holders or state.unshown_starters)

    async def _record(self, offering: Offering) -> Problem | None:
        """Returns why the GPUShareNode does not say what the IDs of ``offering`` mean, or None when it does.

        A CRD of another version may leave out what a later start has to know. So what would be kept is looked
        at before anything that was recorded is overwritten.
        """
        share_node, layout = self.state.share_node, offering.layout
        if layout is None or share_node is None or is_recorded(offering, share_node):
            return None
        async with self._writing:
            status = self._status(share_node, offering)
            for dry_run in (True, False):
                written = await self._write(share_node, status, dry_run=dry_run)
                if written is None:
                    return NOT_RECORDED
                if not is_recorded(offering, written):
                    return NOT_KEPT
        return None

    def _changes_meaning(self, offering: Offering) -> bool:
        """Whether IDs would mean something else than what was offered before, also before a restart."""
        snapshot = self._snapshot()
        known, dialect = known_layout(snapshot), known_dialect(snapshot)
        if known is None or offering.layout is None:
            return False
        return dialect is not offering.dialect or not offering.layout.means_the_same(known)

    def _decide(self) -> Offering:
        snapshot = self._snapshot()
        same = snapshot.share_node, snapshot.last_dialect, snapshot.assigned
        pods = tuple(snapshot.pods.values())
        equal = snapshot.cards, snapshot.last_layout, snapshot.assigned_known, pods
        return self._decided.to(same, equal, decide=lambda: decide_offering(snapshot))

    def _snapshot(self) -> Snapshot:
        state = self.state
        return Snapshot(
            share_node=state.share_node,
            cards=state.reading.cards if state.reading else None,
            last_layout=state.last_layout,
            last_dialect=state.last_dialect,
            assigned=state.assigned,
            assigned_known=state.assigned_known and not self._lacks_witness(),
            pods=dict(state.pods),
        )

    def _lacks_witness(self) -> bool:
        """Whether pods hold units of which neither the kubelet nor its checkpoint says anything yet."""
        state = self.state
        unshown = {*state.unshown_holders, *state.unshown_starters} & state.pods.keys()
        return any(not state.assigned.stored_of(state.pods[name]) for name in unshown)

    def _send(self, offering: Offering, locks: Locks, kept: frozenset[int]) -> None:
        layout, self._sent_locks, self._sent_kept = offering.layout, locks, kept
        lists = (
            device_lists(layout, offering.dialect, locks, offering.devices_of_replaced_plugin, kept=kept)
            if layout
            else {}
        )
        for name, stream in self.streams.items():
            if stream.is_offering and name not in lists:
                stream.withdraw(NO_DEVICES)
                _log.info("offering nothing of %s any more", name)
        for name, message in lists.items():
            self.streams[name].offer(message)
        if layout:
            text = "offering %d units of %s on %d cards as %s"
            _log.info(text, layout.units, layout.unit.text, len(layout.cards), ", ".join(lists))

    def _every_allocation(self, assignments: NodeAssignments | None) -> Sequence[PodAllocation]:
        if assignments is None:
            return ()
        pods = dict(self.state.pods)
        return self._allocations.to(
            (assignments.assigned,),
            (assignments.layout, assignments.preferred, assignments.recorded, tuple(pods.values())),
            decide=lambda: with_orphans(self._allocations_of(assignments, pods), assignments, pods),
        )

    def _allocations_of(self, assignments: NodeAssignments, pods: Pods) -> Sequence[PodAllocations]:
        return self._of_pods.of(
            pods.values(), assignments, decide=lambda pod: allocations_of(pod, assignments)
        )

    def _node_assignments(self, offering: Offering) -> NodeAssignments | None:
        """None before anything was offered: no unit can have been assigned by us."""
        state = self.state
        layout = offering.layout or state.last_layout
        return state.assignments(layout) if layout else None

    async def _repair_annotations(self) -> None:
        """Also for a node that is not shared any more: its pods still hold what they hold.

        Never from a layout of which it is not known whether its IDs mean the cards that containers were told.
        """
        dialect = self.state.last_dialect or self.state.offering.dialect
        await self._annotations.write(self._repairs(self._certain_assignments(), dialect))

    def _repairs(self, assignments: NodeAssignments | None, dialect: Dialect) -> Sequence[Repair]:
        """The time alone is no reason for one: what could not be written is tried again as it was."""
        if assignments is None:
            return ()
        pods = dict(self.state.pods)
        return self._planned.to(
            (assignments.assigned, dialect),
            (assignments.layout, assignments.preferred, tuple(pods.values())),
            decide=lambda: self._planner.plan(assignments, pods.values(), dialect, now=self.now()),
        )

    async def _measure(self) -> None:
        allocations = self._every_allocation(self._certain_assignments())
        await self.meter.measure(self.state.offering.layout, allocations)

    async def write_status(self) -> bool:
        """Returns whether the status is as it has to be."""
        async with self._writing:
            share_node = self.state.share_node
            if share_node is None or self.registration().displaced:
                self._audit.nothing_known()
                return True
            status = self._status(share_node, self.state.offering)
            if status == share_node.status or (status, share_node.status) == self._kept:
                return True
            written = await self._write(share_node, status, dry_run=False)
            self._kept = (status, written.status) if written else None
            return written is not None

    async def _write(
        self, share_node: GPUShareNode, status: NodeStatus, *, dry_run: bool
    ) -> GPUShareNode | None:
        """Returns what the API server keeps of it, or None when it is not written."""
        path = f"{SHARE_NODES}/{share_node.metadata.name}/status"
        body = {"metadata": {"uid": share_node.metadata.uid}, "status": status.to_json()}
        try:
            answer = await self.client.merge(path, body, dry_run=dry_run)
            written = GPUShareNode.from_json(answer)
        except (ApiError, UnreachableError, msgspec.ValidationError) as error:
            _log.warning("cannot write the status: %s", error, extra={"node": self.state.name})
            return None
        if self.state.share_node is share_node and not dry_run:
            self.state.put_written(written)
        if not dry_run:
            await self.events.write(fault_events(share_node.status, status))
            await self._tell_excesses(share_node.status, status)
        return written

    async def _tell_excesses(self, before: NodeStatus, after: NodeStatus) -> None:
        """What follows from two statuses is told once, also by a plugin that was restarted in between."""
        requested = self.state.measured.requested if self.state.measured else {}
        await self.events.write(excess_events(recorded_use(before), recorded_use(after), requested))

    def _use(self, share_node: GPUShareNode) -> ReportedUse:
        recorded, measured = recorded_use(share_node.status), self.state.measured
        cards = self.state.reading.cards if self.state.reading else ()
        memory = {card.uuid: card.memory for card in cards}
        return reported_use(recorded, measured, memory) if measured else recorded

    def _status(self, share_node: GPUShareNode, offering: Offering) -> NodeStatus:
        state, use = self.state, self._use(share_node)
        faults = faults_of(state.health or recorded_health(share_node))
        waits = offering.layout is not None and bool(state.unshown_holders)
        if offering.layout_unknown or (waits and is_recorded(offering, share_node)):
            conditions = self._conditions(share_node, offering, use, self._audited(offering, None))
            return kept_status(share_node, conditions, faults=faults, now=self.now())
        assignments = self._node_assignments(offering)
        allocations = self._every_allocation(assignments)
        locks = node_locks(assignments, state.pods, allocations) if assignments else {}
        status = self._told.to(
            (share_node, allocations),
            (offering, locks, use, faults),
            decide=lambda: node_status(
                share_node, offering, allocations, locks=locks, use=use, faults=faults, now=self.now()
            ),
        )
        conditions = self._conditions(share_node, offering, use, self._audited(offering, status))
        return with_conditions(status, share_node, conditions, now=self.now())

    def _audited(self, offering: Offering, status: NodeStatus | None) -> list[Difference]:
        """Returns where the books of this node differ; ``status``: as it is to be written, None where it is
        not known what units in use mean."""
        state = self.state
        if status is None or offering.layout is None or not state.pod_resources_available:
            self._audit.nothing_known()
            return []
        given = AuditInput(
            node=state.name,
            status=status,
            pods=state.pods,
            assigned=state.assigned,
            cards=state.reading.cards if state.reading else (),
        )
        return self._audit.look(given, now=self.clock(), admitting=self.reservations.remaining > 0)

    def _conditions(
        self,
        share_node: GPUShareNode,
        offering: Offering,
        use: ReportedUse,
        differences: Sequence[Difference],
    ) -> list[ConditionState]:
        state, assignments = self.state, self._node_assignments(offering)
        forgotten = forgotten_allocations(assignments, state.pods.values()) if assignments else []
        forgotten += lost_assignments_without_pod(state.assigned, state.pods)
        annotations = AnnotationState(
            state.pod_resources_available,
            self._annotations.differing,
            state.assigned.checkpoint_problem,
            [str(each.pod.name) for each in forgotten],
            doubtful_units(offering.layout, state.assigned),
            differences,
        )
        return node_conditions(
            share_node.spec,
            offering,
            self.registration(),
            annotations,
            reading=state.reading or Reading(),
            cordon=state.cordon,
            excess=excess_conditions(share_node.spec, state.measured, use),
        )
