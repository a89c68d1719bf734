"""One round: gathers what is known of the node, decides, and applies."""

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gpushare_core.api.enums import Mode
from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.kube.client import KubeClient
from gpushare_core.process.clock import utc_now
from gpushare_plugin.cluster.event_writer import EventWriter
from gpushare_plugin.decide.health.card_health import examine, judged, recorded_health, seconds_until_due
from gpushare_plugin.decide.health.cordon import NO_CORDON, cordoned, read_cordon
from gpushare_plugin.decide.isolation.node_isolation import beside_inventory, closed_without_isolation
from gpushare_plugin.decide.report.conditions import RegistrationState
from gpushare_plugin.devices.card import DeviceSource
from gpushare_plugin.isolation.driver_limits import DriverLimits, NoDriverLimits
from gpushare_plugin.isolation.keeper import IsolationKeeper
from gpushare_plugin.kubelet.assignment_reader import AssignmentReader
from gpushare_plugin.kubelet.device_stream import DeviceStream
from gpushare_plugin.kubelet.reservations import UnitReservations
from gpushare_plugin.reconcile.annotation_writer import AnnotationWriter
from gpushare_plugin.reconcile.isolation_round import IsolationRound
from gpushare_plugin.reconcile.kubelet_offer import KubeletOffer
from gpushare_plugin.reconcile.status_writer import StatusWriter
from gpushare_plugin.reconcile.use_meter import UseMeter
from gpushare_plugin.state import PluginState


@dataclass(slots=True, kw_only=True)
class NodeReconciler:
    """A round that is repeated changes nothing."""

    state: PluginState
    client: KubeClient
    assignment_reader: AssignmentReader
    reservations: UnitReservations
    streams: Mapping[str, DeviceStream]
    """By the name of the extended resource."""
    registration: Callable[[], RegistrationState]
    open_source: Callable[[GPUShareNode], DeviceSource]
    meter: UseMeter
    events: EventWriter
    files: IsolationKeeper = field(default_factory=IsolationKeeper)
    driver: DriverLimits = field(default_factory=NoDriverLimits)
    now: Callable[[], datetime] = utc_now
    clock: Callable[[], float] = time.monotonic
    """In steady seconds."""
    _annotations: AnnotationWriter = field(init=False)
    _status: StatusWriter = field(init=False)
    _offer: KubeletOffer = field(init=False)
    _isolation: IsolationRound = field(init=False)

    def __post_init__(self) -> None:
        self._annotations = AnnotationWriter(self.state, self.client, self.events, self.now)
        self._status = StatusWriter(
            state=self.state,
            client=self.client,
            events=self.events,
            registration=self.registration,
            reservations=self.reservations,
            annotations=self._annotations,
            now=self.now,
            clock=self.clock,
        )
        self._isolation = IsolationRound(
            state=self.state, events=self.events, now=self.now, files=self.files, driver=self.driver
        )
        self._offer = KubeletOffer(
            state=self.state,
            assignment_reader=self.assignment_reader,
            reservations=self.reservations,
            streams=self.streams,
            status=self._status,
        )

    async def reconcile(self) -> bool:
        """Does one round, or nothing while another plugin serves the node.

        Returns False where something could not be written, which has to be tried again soon.
        """
        if self.registration().displaced:
            # The other plugin decides what IDs mean now; once it leaves, what it has recorded counts.
            self.state.stand_by()
            self._status.audit.nothing_known()
            self._offer.withdraw()
            return True
        self.state.remember_record()
        await self._isolation.decide()
        await self._find_cards()
        offered = await self._offer.update()
        # Also for a node that is not shared any more: its pods still hold what they hold.
        await self._annotations.repair(self.state.certain_assignments())
        allocations = self.state.allocations(self.state.certain_assignments())
        await self.meter.measure(self.state.offering.layout, allocations)
        await self._isolation.inspect()
        self._isolation.note_excess()
        await self._isolation.tidy()
        is_written = await self.write_status()
        await self._annotations.write_events()
        return is_written and offered

    async def write_status(self) -> bool:
        return await self._status.write()

    async def prepare(self, yield_to_kubelet: Callable[[], Awaitable[None]]) -> None:
        """Works out in advance what the next round needs, and lets the kubelet's calls in between.

        Applies nothing. The round works out anew what has changed by then.
        """
        if self.state.share_node is None or self.registration().displaced:
            return
        self._offer.decide()
        await yield_to_kubelet()
        self._annotations.plan(self.state.certain_assignments())
        await yield_to_kubelet()
        self.state.allocations(self.state.certain_assignments())
        await yield_to_kubelet()

    def seconds_until_due(self) -> float | None:
        """Returns the seconds until time alone may change something, or None: a card has been sick or quiet
        for long enough, or a difference of the records has lasted."""
        health = self.state.health
        dues = (
            seconds_until_due(health, now=self.now()) if health else None,
            self._status.audit.seconds_until_due(now=self.clock()),
        )
        return min((due for due in dues if due is not None), default=None)

    async def _find_cards(self) -> None:
        """What a source cannot tell now it is asked again later: nothing that is held depends on it."""
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
        usable = cordoned(judged(reading, health), self.state.cordon)
        self.state.isolation = beside_inventory(self.state.isolation, usable)
        self.state.reading = closed_without_isolation(usable, self.state.isolation)
