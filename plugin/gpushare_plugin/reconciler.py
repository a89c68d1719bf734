"""Makes true what follows from the state: the list of devices, the annotations, the status."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from gpushare_core.api.share_node import GPUShareNode, NodeStatus
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import SHARE_NODES, pod_path
from gpushare_plugin.decide.allocations import NodeAssignments, admitted_allocations
from gpushare_plugin.decide.annotation_repairs import Repair, plan_repairs
from gpushare_plugin.decide.conditions import AnnotationState, RegistrationState, node_conditions
from gpushare_plugin.decide.device_list import encode_devices
from gpushare_plugin.decide.offering import Offering, Snapshot, decide_offering
from gpushare_plugin.decide.status import node_status
from gpushare_plugin.decide.unit_change import parse_unit
from gpushare_plugin.devices.source import open_source
from gpushare_plugin.kubelet.assignment_reader import AssignmentReader
from gpushare_plugin.kubelet.device_stream import DeviceStream
from gpushare_plugin.state import NodeState

NO_DEVICES = b""
"""A list of devices without any, as protobuf."""

_log = logging.getLogger(__name__)


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True, kw_only=True)
class Reconciler:
    """One round is ``reconcile``; repeating it changes nothing."""

    state: NodeState
    client: KubeClient
    assignment_reader: AssignmentReader
    stream: DeviceStream
    registration: Callable[[], RegistrationState]
    now: Callable[[], datetime] = utc_now
    _differing: tuple[str, ...] = field(default=(), init=False)
    """Pods whose annotation could not be repaired in the last round."""

    async def reconcile(self) -> None:
        """Looks at the cards, decides what to offer, repairs annotations, writes the status."""
        await self._find_cards()
        if await self._offer():
            await self._repair_annotations()
            await self._write_status()

    async def _find_cards(self) -> None:
        share_node = self.state.share_node
        source = open_source(self.state.name, share_node.spec.devices) if share_node else None
        self.state.cards = tuple(await source.cards()) if source else None

    async def _offer(self) -> bool:
        """Decides, and sends the kubelet the list if it is another one. False: it cannot be decided yet.

        Before units change their size PodResources are read again: since they were read last a pod may have
        been admitted. Without them the size stays.
        """
        offering = self._decide()
        if self._changes_unit(offering):
            await self.assignment_reader.read()
            if not self.state.pod_resources_available:
                return self.state.last_layout is not None
            offering = self._decide()
        before, self.state.offering = self.state.offering, offering
        if offering.layout:
            self.state.last_layout = offering.layout
        if offering.layout != before.layout:
            self._send(offering)
        return True

    def _changes_unit(self, offering: Offering) -> bool:
        last, share_node = self.state.last_layout, self.state.share_node
        served = last.unit if last else parse_unit(share_node.status.memory_unit) if share_node else None
        return bool(served and offering.layout and served.size != offering.layout.unit.size)

    def _decide(self) -> Offering:
        state = self.state
        return decide_offering(
            Snapshot(
                share_node=state.share_node,
                cards=state.cards,
                last_layout=state.last_layout,
                assigned=state.assigned,
                pods=state.pods,
            )
        )

    def _send(self, offering: Offering) -> None:
        if layout := offering.layout:
            self.stream.offer(encode_devices(layout))
            message = "offering %d units of %s on %d cards"
            _log.info(message, layout.units, layout.unit.text, len(layout.cards))
        elif self.stream.is_offering:
            self.stream.offer(NO_DEVICES)
            _log.info("offering nothing any more")

    def _node_assignments(self) -> NodeAssignments | None:
        """None before anything was offered: no unit can have been assigned by us."""
        state = self.state
        if state.last_layout is None:
            return None
        return NodeAssignments(
            node=state.name,
            assigned=state.assigned,
            layout=state.last_layout,
            preferred=state.preferred,
        )

    async def _repair_annotations(self) -> None:
        """Also for a node that is not shared any more: its pods still hold what they hold."""
        assignments = self._node_assignments()
        repairs = plan_repairs(assignments, self.state.pods.values(), now=self.now()) if assignments else []
        self._differing = tuple([str(repair.pod) for repair in repairs if not await self._apply(repair)])

    async def _apply(self, repair: Repair) -> bool:
        """Returns whether there is nothing left to do about it."""
        annotations = {self.state.dialect.allocation_annotation: repair.annotation}
        body = {"metadata": {"uid": repair.uid, "annotations": annotations}}
        try:
            await self.client.merge(pod_path(*repair.pod), body)
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot set an annotation right: %s", error, extra={"pod": str(repair.pod)})
            return isinstance(error, ApiError) and (error.is_not_found or error.is_conflict)
        message = "the annotation now says what the kubelet's books say: %s"
        _log.info(message, repair.annotation, extra={"pod": str(repair.pod)})
        pod = self.state.pods.get(repair.pod)
        if pod and pod.uid == repair.uid:
            self.state.pods[repair.pod] = replace(pod, annotation=repair.annotation)
        return True

    async def _write_status(self) -> None:
        share_node = self.state.share_node
        if share_node is None:
            return
        status = self._status(share_node)
        if status == share_node.status:
            return
        body = {"metadata": {"uid": share_node.metadata.uid}, "status": status.to_json()}
        try:
            written = await self.client.merge(f"{SHARE_NODES}/{share_node.metadata.name}/status", body)
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot write the status: %s", error, extra={"node": self.state.name})
            return
        if self.state.share_node is share_node:
            self.state.share_node = GPUShareNode.model_validate(written)

    def _status(self, share_node: GPUShareNode) -> NodeStatus:
        state, assignments = self.state, self._node_assignments()
        annotations = AnnotationState(state.pod_resources_available, self._differing)
        conditions = node_conditions(share_node.spec, state.offering, self.registration(), annotations)
        allocations = list(admitted_allocations(assignments, state.pods.values())) if assignments else []
        return node_status(share_node, state.offering.layout, allocations, conditions, now=self.now())
