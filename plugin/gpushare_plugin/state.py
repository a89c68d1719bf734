"""What the process knows of its node; the only mutable state, changed on the event loop only."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import msgspec

from gpushare_core.api.plugin_heartbeat import IsolationFiles
from gpushare_core.api.share_node import Devices, GPUShareNode
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.health.card_health import HealthRecord
from gpushare_plugin.decide.health.cordon import NO_CORDON, Cordon
from gpushare_plugin.decide.held.allocations import (
    PodAllocations,
    allocations_of,
    every_allocation,
    node_locks,
    with_orphans,
)
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices, NodeAssignments
from gpushare_plugin.decide.held.kubelet_restart import (
    PodsListedSinceRestart,
    recorded_locks,
    unshown_holders,
    unshown_starters,
)
from gpushare_plugin.decide.held.lost_assignments import Remembered, recorded_holdings
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pods import Pod, PodName, Pods
from gpushare_plugin.decide.held.preferred_cards import PreferredCard
from gpushare_plugin.decide.isolation.node_isolation import NOT_DECIDED, Findings, IsolationDecision
from gpushare_plugin.decide.memo import Memo
from gpushare_plugin.decide.offer.dialect_change import recorded_dialect
from gpushare_plugin.decide.offer.offering import STARTING, Offering
from gpushare_plugin.decide.units.layout import Layout
from gpushare_plugin.decide.units.locks import NO_LOCKS, Locks
from gpushare_plugin.decide.use.container_use import ContainerShare, MeasuredUse
from gpushare_plugin.decide.use.lasting_excess import ExcessSince
from gpushare_plugin.devices.card import Reading


@dataclass(slots=True)
class PluginState:
    """``changed`` is set by whoever changes something that the status or the offering follows from."""

    name: str
    share_node: GPUShareNode | None = None
    """None when the node is not shared (any more)."""
    share_node_problem: str = ""
    """Why the newest GPUShareNode cannot be read; ``share_node`` is then the one before."""
    pods: dict[PodName, Pod] = field(default_factory=dict)
    """As the API server has them."""
    ended: dict[PodName, Pod] = field(default_factory=dict)
    """Pods in the kubelet's list that had ended when they were read last."""
    listed_ended: frozenset[PodName] = frozenset()
    """Those that the kubelet listed after they had been read."""
    pods_known: bool = False
    """Whether the API server has ever listed the pods."""
    assigned: AssignedDevices = field(default_factory=AssignedDevices)
    """By the last answer of PodResources."""
    pod_resources_available: bool = False
    """Whether PodResources answered the last time."""
    assigned_known: bool = False
    """Whether PodResources or the checkpoint have ever been read."""
    listed_since_restart: PodsListedSinceRestart = field(default_factory=PodsListedSinceRestart)
    remembered: Remembered = field(default_factory=dict)
    """What pods had before the kubelet or this process started, unless the kubelet lists it again."""
    record_read: bool = False
    """Whether ``remembered`` has what the GPUShareNode said when this process started, or stood by."""
    reading: Reading | None = None
    """Of the cards. None where nothing is shared."""
    health: HealthRecord | None = None
    """Of the cards. None before the first reading: then the GPUShareNode's record counts."""
    cordon: Cordon = NO_CORDON
    measured: MeasuredUse | None = None
    isolation: IsolationDecision = NOT_DECIDED
    """What new containers get to keep them to their units."""
    isolation_findings: Findings | None = None
    """Whether what containers were given is in force. None before anybody has looked."""
    driver_use: Mapping[ContainerShare, int] = field(default_factory=dict)
    """Bytes that the driver counts for containers that it limits."""
    isolation_files: IsolationFiles | None = None
    """Which files of isolation are on the node; None where there are none."""
    isolation_files_known: bool = False
    """Whether anybody has looked."""
    excess_since: ExcessSince | None = None
    """None before the first round: then the GPUShareNode's record counts."""
    offering: Offering = field(default_factory=lambda: Offering(postponed=STARTING))
    last_layout: Layout | None = None
    """Kept when nothing is offered any more: pods may still hold units of it."""
    last_dialect: Dialect | None = None
    """The dialect in which ``last_layout`` was offered."""
    preferred: dict[str, PreferredCard] = field(default_factory=dict)
    """By pod UID."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    lease_due: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by whoever changes something that the Lease says."""
    _requested_names: frozenset[str] = frozenset()
    """The ``names`` for which the requests of ``pods`` were read."""
    _allocations: Memo[Sequence[PodAllocation]] = field(default_factory=Memo, init=False)
    _of_pods: Memo[PodAllocations] = field(default_factory=Memo, init=False)

    @property
    def strategy(self) -> Strategy:
        """How units are placed on cards where nothing else decides."""
        return self.share_node.spec.strategy if self.share_node else Strategy.BINPACK

    @property
    def devices(self) -> Devices:
        return self.share_node.spec.devices if self.share_node else Devices()

    @property
    def dialect_names(self) -> frozenset[str]:
        """Extended resources of the node's dialects: the one of the spec, and those in force."""
        if self.share_node is None:
            dialects = [self.last_dialect]
        else:
            recorded = recorded_dialect(self.share_node.status)
            dialects = [DIALECTS[self.share_node.spec.dialect], recorded, self.last_dialect]
        known = [dialect for dialect in dialects if dialect] or [GPUSHARE]
        return frozenset(chain.from_iterable(dialect.resources for dialect in known))

    @property
    def names(self) -> frozenset[str]:
        """Extended resources that this plugin serves here, and those of its units that pods have."""
        held = (assignment.names_of.values() for assignment in self.assigned.pods.values())
        return self.dialect_names.union(*chain.from_iterable(held))

    def assignments(self, layout: Layout) -> NodeAssignments:
        """Returns what the kubelet has assigned, with the meaning of IDs in ``layout``."""
        status = self.share_node.status if self.share_node else None
        return NodeAssignments(
            node=self.name,
            assigned=self.assigned,
            layout=layout,
            preferred=dict(self.preferred),
            recorded=recorded_locks(status, self.unshown_holders) if status and layout.is_mixed else {},
        )

    def node_assignments(self, offering: Offering) -> NodeAssignments | None:
        """None before anything was offered: then no unit can have been assigned by us."""
        layout = offering.layout or self.last_layout
        return self.assignments(layout) if layout else None

    def certain_assignments(self) -> NodeAssignments | None:
        """None also where it is not known whether IDs mean the cards that containers were told."""
        return None if self.offering.layout_unknown else self.node_assignments(self.offering)

    def allocations(self, assignments: NodeAssignments | None) -> Sequence[PodAllocation]:
        """Returns what all pods have, orphans included; worked out anew only where something has changed."""
        if assignments is None:
            return ()
        return self._allocations.value(
            (assignments, dict(self.pods)), lambda known: with_orphans(self._allocations_of(*known), *known)
        )

    def _allocations_of(self, assignments: NodeAssignments, pods: Pods) -> Sequence[PodAllocations]:
        return self._of_pods.values(
            {name: assignments.of_pod(pod) for name, pod in pods.items()},
            lambda known: allocations_of(known.pod, assignments),
        )

    def locks(self, offering: Offering) -> Locks:
        """Returns the class that each card serves alone now."""
        assignments = self.node_assignments(offering)
        if assignments is None or not assignments.layout.is_mixed:
            return NO_LOCKS
        return node_locks(assignments, self.pods, self.allocations(assignments))

    def refresh_requests(self) -> None:
        """Reads the pods' requests anew where ``names`` have changed: others are another plugin's."""
        names = self.names
        if names != self._requested_names:
            self._requested_names = names
            self.pods = {name: pod.asking_for(names) for name, pod in self.pods.items()}
            self.changed.set()

    def put_pod(self, pod: Pod) -> None:
        """Stores what was read of ``pod``, unless it is older than what is known.

        The watch and single reads overtake each other. Where only metadata was read, the rest is kept.
        Another version alone is no change: the kubelet writes a pod's status many times.
        """
        before = self.pods.get(pod.name)
        if before is not None and before.uid != pod.uid:
            if pod.version < before.version:
                return
            self.drop_pod(before.name, before.uid)
            before = None
        elif before is not None:
            pod = _newest(before, pod)
        self.refresh_requests()
        self.pods[pod.name] = pod = pod.asking_for(self._requested_names)
        if before is None or replace(before, version=pod.version) != pod:
            self.changed.set()

    def drop_pod(self, name: PodName, uid: str) -> None:
        """Forgets the pod, and not another one of the same name."""
        if name in self.pods and self.pods[name].uid == uid:
            del self.pods[name]
            self.preferred.pop(uid, None)
            self.changed.set()

    @property
    def known_pods(self) -> Pods:
        """The pods that the API server is known to have, also ended ones that the kubelet lists, but no pod
        whose name the kubelet may list for a static pod that it admits:

        1. an ended mirror, whose file may be another pod by now;
        2. a pod that was not listed before.
        """
        listed = (self.ended[name] for name in self.listed_ended if name in self.ended)
        return {**{pod.name: pod for pod in listed if not pod.static_uid}, **self.pods}

    def put_ended(self, pod: Pod) -> None:
        if pod.name in self.assigned.pods:
            self.ended[pod.name] = pod

    def note_listed_ended(self) -> None:
        """Called when the kubelet's list was read."""
        self.ended = {name: pod for name, pod in self.ended.items() if name in self.assigned.pods}
        self.listed_ended = frozenset(self.ended)

    def put_share_node(self, share_node: GPUShareNode | None) -> None:
        if share_node is not None and self.share_node is None:
            self.lease_due.set()
        if share_node != self.share_node or self.share_node_problem:
            self.share_node, self.share_node_problem = share_node, ""
            self.changed.set()
        self.refresh_requests()

    def put_unreadable(self, version: str, problem: str) -> None:
        """Stores why the newest GPUShareNode cannot be read. The one before stays in force; its status can
        only be written in place of the newest ``version``."""
        if self.share_node:
            metadata = msgspec.structs.replace(self.share_node.metadata, resource_version=version)
            self.share_node = msgspec.structs.replace(self.share_node, metadata=metadata)
        if problem != self.share_node_problem:
            self.share_node_problem = problem
            self.changed.set()

    def put_written(self, written: GPUShareNode) -> None:
        """Stores the GPUShareNode that answers a write of its status: beside that it is as it was."""
        self.share_node = written
        self.refresh_requests()

    def put_pods(self, pods: Iterable[Pod]) -> None:
        """Stores a whole list, whatever was read before. A pod that is not in the list is gone."""
        if not self.pods_known:
            self.pods_known = True
            self.changed.set()
        listed = {pod.name: pod for pod in pods}
        for name in self.pods.keys() - listed.keys():
            self.drop_pod(name, self.pods[name].uid)
        for name, pod in listed.items():
            if name in self.pods:
                self.pods[name] = replace(self.pods[name], version=0)
            self.put_pod(pod)

    def stand_by(self) -> None:
        """Forgets what was offered and what pods had: another plugin serves the node, and records both."""
        self.offering, self.last_layout, self.last_dialect = Offering(postponed=STARTING), None, None
        self.refresh_requests()
        self.measured, self.excess_since = None, None
        self.isolation, self.isolation_findings = NOT_DECIDED, None
        self.preferred.clear()
        self.remembered, self.record_read = {}, False

    @property
    def unshown_holders(self) -> frozenset[PodName]:
        """Pods that have units by the GPUShareNode alone: the kubelet has not listed them yet."""
        if self.share_node is None:
            return frozenset()
        return unshown_holders(self.share_node.status, self.assigned, self.listed_since_restart, self.pods)

    @property
    def unshown_starters(self) -> list[PodName]:
        """Pods that may hold units and that the kubelet has not listed yet."""
        return unshown_starters(self.assigned, self.listed_since_restart, self.pods)

    def put_isolation_files(self, files: IsolationFiles | None) -> None:
        if files != self.isolation_files or not self.isolation_files_known:
            self.isolation_files, self.isolation_files_known = files, True
            self.lease_due.set()

    def remember_record(self) -> None:
        """Keeps, once, what an earlier process of ours has recorded, before the record is overwritten."""
        if self.record_read or self.share_node is None or not self.pods_known:
            return
        self.record_read = True
        self.remembered = {**recorded_holdings(self.share_node.status, self.pods), **self.remembered}

    def remember_assigned(self) -> None:
        """Keeps what pods have: a kubelet that was restarted may not know it.

        Nothing is kept while it is not known whether IDs mean the cards that containers were told.
        """
        layout = self.offering.layout or self.last_layout
        if layout and not self.offering.layout_unknown:
            held = every_allocation(self.assignments(layout), self.pods)
            self.remembered = {**self.remembered, **{allocation.pod.name: allocation for allocation in held}}

    def put_assigned(self, assigned: AssignedDevices, listed: PodsListedSinceRestart) -> None:
        """Stores what PodResources answered, and the pods they have listed by now."""
        self.assigned_known = True
        if listed.complete != self.listed_since_restart.complete:
            self.changed.set()
        self.listed_since_restart = listed
        if assigned != self.assigned or not self.pod_resources_available:
            self.assigned, self.pod_resources_available = assigned, True
            self.refresh_requests()
            self.changed.set()

    def forget_lost(self, ended: Iterable[PodAllocation]) -> None:
        """Their pods have ended: nobody has what the kubelet does not list for them."""
        names = {known.pod.name for known in ended}
        if names:
            self.remembered = {name: known for name, known in self.remembered.items() if name not in names}
            lost = {name: known for name, known in self.assigned.lost.items() if name not in names}
            self.assigned = replace(self.assigned, lost=lost)
            self.changed.set()

    def lose_pod_resources(self, assigned: AssignedDevices) -> None:
        """PodResources do not answer. ``assigned``: their last answer with what the checkpoint says, or the
        checkpoint alone where they have never listed a pod."""
        known = self.assigned_known or not assigned.checkpoint_problem
        if (assigned, known) != (self.assigned, self.assigned_known):
            self.assigned, self.assigned_known = assigned, known
            self.changed.set()
        if self.pod_resources_available:
            self.pod_resources_available = False
            self.changed.set()

    def put_preferred(
        self, uid: str, cards: Sequence[str], resource: ResourceClass, *, reason: str = ""
    ) -> None:
        """Counts one more container of the pod whose preferred ``cards`` serve ``resource``."""
        before = self.preferred.get(uid, PreferredCard((), 0))
        named = tuple(dict.fromkeys([*before.cards, *cards]))
        classes = {**before.classes, **dict.fromkeys(cards, resource)}
        self.preferred[uid] = PreferredCard(named, before.containers + 1, classes, reason or before.reason)


def _newest(before: Pod, read: Pod) -> Pod:
    """Returns the pod with the newer metadata of two, and the rest of the last one that was read whole."""
    metadata = before if read.version < before.version else read
    whole = before if read.asked is None else read
    return replace(metadata, asked=whole.asked, running=whole.running, started=whole.started)
