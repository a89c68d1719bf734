"""Writes the status of the GPUShareNode where it has changed, and the Events that follow from it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

import msgspec

from gpushare_core.api.conditions import ConditionState
from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import GPUShareNode, NodeStatus
from gpushare_core.audit.difference import Difference
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import SHARE_NODES
from gpushare_core.text.json_object import Json
from gpushare_plugin.cluster.event_writer import EventWriter
from gpushare_plugin.cluster.share_node_watch import store_share_node
from gpushare_plugin.decide.health.card_health import faults_of, recorded_health
from gpushare_plugin.decide.health.fault_events import fault_events
from gpushare_plugin.decide.held.allocations import (
    lost_allocations,
    lost_assignments_without_pod,
    node_locks,
)
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.isolation.conditions import isolation_conditions
from gpushare_plugin.decide.isolation.node_isolation import NOT_DECIDED, given_kinds
from gpushare_plugin.decide.memo import Memo
from gpushare_plugin.decide.offer.offering import NOT_KEPT, NOT_RECORDED, Offering, is_recorded
from gpushare_plugin.decide.offer.replaced_plugin_units import doubtful_units
from gpushare_plugin.decide.report.conditions import AnnotationState, RegistrationState, node_conditions
from gpushare_plugin.decide.report.self_audit import AuditInput, NodeAudit
from gpushare_plugin.decide.report.status import (
    ReportedIsolation,
    kept_status,
    node_status,
    with_conditions,
)
from gpushare_plugin.decide.use.excess import excess_conditions, excess_events
from gpushare_plugin.decide.use.lasting_excess import recorded_excess
from gpushare_plugin.decide.use.reported_use import ReportedUse, recorded_use, reported_use
from gpushare_plugin.devices.card import Reading
from gpushare_plugin.kubelet.reservations import UnitReservations
from gpushare_plugin.reconcile.annotation_writer import AnnotationWriter
from gpushare_plugin.state import PluginState

ATTEMPTS = 5
"""Of one write, while others change the GPUShareNode at the same time."""

_log = logging.getLogger(__name__)
T = TypeVar("T")


class _OutdatedError(Exception):
    """The status was not written: others had changed the GPUShareNode, whose newest version is known now."""


@dataclass(slots=True, kw_only=True)
class StatusWriter:
    """Writes one status after the other: none is overtaken by an older one."""

    state: PluginState
    client: KubeClient
    events: EventWriter
    registration: Callable[[], RegistrationState]
    reservations: UnitReservations
    annotations: AnnotationWriter
    now: Callable[[], datetime]
    clock: Callable[[], float]
    """In steady seconds."""
    audit: NodeAudit = field(default_factory=NodeAudit, init=False)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _kept: tuple[NodeStatus, NodeStatus] | None = field(default=None, init=False)
    """The status as it was written last, and what a CRD of another version left of it."""
    _without_conditions: Memo[NodeStatus] = field(default_factory=Memo, init=False)

    async def write(self) -> bool:
        """Returns whether the status is as it has to be."""
        return await self._repeated(self._write_changed, otherwise=False)

    async def _write_changed(self) -> bool:
        share_node = self.state.share_node
        if share_node is None or self.registration().displaced:
            self.audit.nothing_known()
            return True
        status = self._status(share_node, self.state.offering)
        if status == share_node.status or (status, share_node.status) == self._kept:
            return True
        written = await self._write(share_node, status, dry_run=False)
        self._kept = (status, written.status) if written else None
        return written is not None

    async def record(self, offering: Offering) -> Problem | None:
        """Returns why the GPUShareNode does not say what the IDs of ``offering`` mean, or None when it does.

        A CRD of another version may leave out what a later start has to know: a dry run shows what would be
        kept, before anything that was recorded is overwritten.
        """
        return await self._repeated(lambda: self._record(offering), otherwise=NOT_RECORDED)

    async def _record(self, offering: Offering) -> Problem | None:
        share_node, layout = self.state.share_node, offering.layout
        if layout is None or share_node is None or is_recorded(offering, share_node):
            return None
        status = self._status(share_node, offering)
        for dry_run in (True, False):
            written = await self._write(share_node, status, dry_run=dry_run)
            if written is None:
                return NOT_RECORDED
            if not is_recorded(offering, written):
                return NOT_KEPT
        return None

    async def _repeated(self, attempt: Callable[[], Awaitable[T]], *, otherwise: T) -> T:
        """Returns the result of ``attempt`` at the newest GPUShareNode, or ``otherwise`` where others changed
        it each time."""
        async with self._writing:
            for _ in range(ATTEMPTS):
                with suppress(_OutdatedError):
                    return await attempt()
        _log.warning("cannot write the status: others keep changing the GPUShareNode")
        return otherwise

    async def _write(
        self, share_node: GPUShareNode, status: NodeStatus, *, dry_run: bool
    ) -> GPUShareNode | None:
        """Returns what the API server keeps of it, or None when it is not written.

        Raises:
            _OutdatedError: it has to be worked out anew.
        """
        path = f"{SHARE_NODES}/{share_node.metadata.name}/status"
        try:
            answer = await self.client.merge(path, in_place_of(share_node, status), dry_run=dry_run)
            written = GPUShareNode.from_json(answer)
        except (ApiError, UnreachableError, msgspec.ValidationError) as error:
            if isinstance(error, ApiError) and error.is_conflict:
                await self._read_newer(share_node)
            _log.warning("cannot write the status: %s", error, extra={"node": self.state.name})
            return None
        if self.state.share_node is share_node and not dry_run:
            self.state.put_written(written)
        if not dry_run:
            # They follow from two statuses, so that a plugin restarted in between writes none twice.
            before, requested = (
                share_node.status,
                self.state.measured.requested if self.state.measured else {},
            )
            await self.events.write(fault_events(before, status))
            await self.events.write(excess_events(recorded_use(before), recorded_use(status), requested))
        return written

    async def _read_newer(self, share_node: GPUShareNode) -> None:
        """The watch may be silent for more than a minute after its connection broke.

        Raises:
            _OutdatedError: one that is newer than ``share_node`` is known now.
        """
        selector = f"metadata.name={share_node.metadata.name}"
        try:
            async for page in self.client.pages(SHARE_NODES, limit=1, field_selector=selector):
                # What the watch has shown meanwhile may be newer than this page.
                if self.state.share_node is share_node:
                    store_share_node(self.state, next(iter(page.items), None))
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot read the GPUShareNode: %s", error)
        if self.state.share_node is not share_node:
            raise _OutdatedError

    def _status(self, share_node: GPUShareNode, offering: Offering) -> NodeStatus:
        state, use = self.state, self._use(share_node)
        faults = faults_of(state.health or recorded_health(share_node))
        waits = offering.layout is not None and bool(state.unshown_holders)
        if offering.layout_unknown or (waits and is_recorded(offering, share_node)):
            conditions = self._conditions(share_node, offering, use, self._audited(offering, None))
            word = self._isolation_word(share_node)
            return kept_status(share_node, conditions, faults=faults, isolation=word, now=self.now())
        assignments = state.node_assignments(offering)
        allocations = state.allocations(assignments)
        locks = node_locks(assignments, state.pods, allocations) if assignments else {}
        isolation = self._isolation(share_node, allocations)
        status = self._without_conditions.value(
            (share_node, allocations, offering, locks, use, faults, isolation),
            lambda _: node_status(
                share_node,
                offering,
                allocations,
                locks=locks,
                use=use,
                faults=faults,
                isolation=isolation,
                now=self.now(),
            ),
        )
        conditions = self._conditions(share_node, offering, use, self._audited(offering, status))
        return with_conditions(status, share_node, conditions, now=self.now())

    def _isolation(self, share_node: GPUShareNode, allocations: Sequence[PodAllocation]) -> ReportedIsolation:
        state = self.state
        recorded = recorded_excess(share_node.status) if share_node.spec.isolation else {}
        return ReportedIsolation(
            word=self._isolation_word(share_node),
            given=given_kinds(state.assigned, allocations, share_node.status),
            excess_since=recorded if state.excess_since is None else state.excess_since,
        )

    def _isolation_word(self, share_node: GPUShareNode) -> str:
        isolation = self.state.isolation
        return share_node.status.isolation if isolation is NOT_DECIDED else isolation.word

    def _use(self, share_node: GPUShareNode) -> ReportedUse:
        recorded, measured = recorded_use(share_node.status), self.state.measured
        cards = self.state.reading.cards if self.state.reading else ()
        memory = {card.uuid: card.memory for card in cards}
        return reported_use(recorded, measured, memory) if measured else recorded

    def _audited(self, offering: Offering, status: NodeStatus | None) -> list[Difference]:
        """Returns the differences of this node's records.

        ``status``: the one to be written; None where it is not known what units in use mean.
        """
        state = self.state
        if status is None or offering.layout is None or not state.pod_resources_available:
            self.audit.nothing_known()
            return []
        given = AuditInput(
            node=state.name,
            status=status,
            pods=state.pods,
            assigned=state.assigned,
            cards=state.reading.cards if state.reading else (),
        )
        return self.audit.look(given, now=self.clock(), admitting=self.reservations.remaining > 0)

    def _conditions(
        self,
        share_node: GPUShareNode,
        offering: Offering,
        use: ReportedUse,
        differences: Sequence[Difference],
    ) -> list[ConditionState]:
        state, assignments = self.state, self.state.node_assignments(offering)
        lost = lost_allocations(assignments, state.pods.values()) if assignments else []
        lost += lost_assignments_without_pod(state.assigned, state.pods)
        annotations = AnnotationState(
            state.pod_resources_available,
            self.annotations.differing,
            state.assigned.checkpoint_problem,
            [str(allocation.pod.name) for allocation in lost],
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
            isolation=isolation_conditions(
                state.isolation,
                state.isolation_findings,
                [condition.type for condition in share_node.status.conditions],
            ),
        )


def in_place_of(share_node: GPUShareNode, status: NodeStatus) -> Json:
    """Returns the merge patch that replaces the status of this very version of ``share_node``.

    The API server may carry out a write long after its connection broke, also one of a former process: it
    must not undo a newer one. The UID would be no precondition: the API server ignores it in a write of a
    status. Source: ``statusStrategy`` of ``registry/customresource`` of apiextensions-apiserver (1.36).
    """
    return {
        "metadata": {"resourceVersion": share_node.metadata.resource_version},
        "status": status.to_json(),
    }
