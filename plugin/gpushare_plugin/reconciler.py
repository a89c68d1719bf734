"""Makes true what follows from the state: the list of devices, the annotations, the status."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gpushare_core.api.share_node import GPUShareNode, NodeStatus
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_plugin.cluster.node_watch import NODES_PATH
from gpushare_plugin.cluster.pod_watch import pod_path
from gpushare_plugin.decide.conditions import Ledger, Registration, conditions
from gpushare_plugin.decide.device_list import encode_devices
from gpushare_plugin.decide.effective import parse_unit
from gpushare_plugin.decide.offering import Offering, Snapshot, decide_offering
from gpushare_plugin.decide.repairs import Repair, Truth, plan_repairs, settled
from gpushare_plugin.decide.status import node_status
from gpushare_plugin.devices.source import open_source
from gpushare_plugin.kubelet.bookkeeper import Bookkeeper
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
    bookkeeper: Bookkeeper
    stream: DeviceStream
    registration: Callable[[], Registration]
    now: Callable[[], datetime] = utc_now
    wrong: tuple[str, ...] = ()
    """Pods whose annotation could not be set right in the last round."""

    async def reconcile(self) -> None:
        await self._find_cards()
        if await self._offer():
            await self._repair()
            await self._write_status()

    async def _find_cards(self) -> None:
        node = self.state.node
        source = open_source(self.state.name, node.spec.devices) if node else None
        self.state.found = tuple(await source.cards()) if source else None

    async def _offer(self) -> bool:
        """Decide, and send the kubelet the list if it is another one. False: it cannot be decided yet.

        Before units change their size the books are read again: since they were read last a pod may have
        been admitted. Without them the size stays.
        """
        offering = self._decide()
        if self._changes_unit(offering):
            await self.bookkeeper.refresh()
            if not self.state.books_readable:
                return self.state.last_layout is not None
            offering = self._decide()
        before, self.state.offering = self.state.offering, offering
        if offering.layout:
            self.state.last_layout = offering.layout
        if offering.layout != before.layout:
            self._send(offering)
        return True

    def _changes_unit(self, offering: Offering) -> bool:
        last, node = self.state.last_layout, self.state.node
        served = last.unit if last else parse_unit(node.status.memory_unit) if node else None
        return bool(served and offering.layout and served.size != offering.layout.unit.size)

    def _decide(self) -> Offering:
        state = self.state
        snapshot = Snapshot(
            node=state.node, found=state.found, last=state.last_layout, books=state.books, pods=state.pods
        )
        return decide_offering(snapshot)

    def _send(self, offering: Offering) -> None:
        if offering.layout:
            self.stream.offer(encode_devices(offering.layout))
            told = "offering %d units of %s on %d cards"
            _log.info(told, offering.layout.units, offering.layout.unit.text, len(offering.layout.cards))
        elif self.stream.is_offering:
            self.stream.offer(NO_DEVICES)
            _log.info("offering nothing any more")

    def _truth(self) -> Truth | None:
        state = self.state
        if state.last_layout is None:
            return None
        return Truth(node=state.name, books=state.books, layout=state.last_layout, grants=state.grants)

    async def _repair(self) -> None:
        """Also for a node that is not shared any more: its pods still hold what they hold."""
        truth = self._truth()
        planned = plan_repairs(truth, self.state.pods, now=self.now()) if truth else []
        self.wrong = tuple([str(each.name) for each in planned if not await self._apply(each)])

    async def _apply(self, repair: Repair) -> bool:
        """Whether there is nothing left to do about it."""
        annotations = {self.state.dialect.allocation_annotation: repair.allocation}
        body = {"metadata": {"uid": repair.uid, "annotations": annotations}}
        try:
            await self.client.patch(pod_path(repair.name), body)
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot set an annotation right: %s", error, extra={"pod": str(repair.name)})
            return isinstance(error, ApiError) and (error.is_not_found or error.is_conflict)
        told = "the annotation now says what the kubelet's books say: %s"
        _log.info(told, repair.allocation, extra={"pod": str(repair.name)})
        pod = self.state.pods.get(repair.name)
        if pod and pod.uid == repair.uid:
            self.state.pods[repair.name] = replace(pod, annotation=repair.allocation)
        return True

    async def _write_status(self) -> None:
        node = self.state.node
        if node is None:
            return
        status = self._status(node)
        if status == node.status:
            return
        body = {"metadata": {"uid": node.metadata.uid}, "status": status.to_json()}
        try:
            written = await self.client.patch(f"{NODES_PATH}/{node.metadata.name}/status", body)
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot write the status: %s", error, extra={"node": self.state.name})
            return
        if self.state.node is node:
            self.state.node = GPUShareNode.model_validate(written)

    def _status(self, node: GPUShareNode) -> NodeStatus:
        truth, offering = self._truth(), self.state.offering
        ledger = Ledger(self.state.books_readable, self.wrong)
        found = conditions(node, offering, self.registration(), ledger, now=self.now())
        holders = list(settled(truth, self.state.pods.values())) if truth else []
        return node_status(node, offering.layout, holders, found)
