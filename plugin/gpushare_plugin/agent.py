"""Wires the parts of the process together and runs them; if one fails, all end."""

import asyncio
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from gpushare_core.api.names import NAMESPACE
from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.health_server import HealthServer, health_pages, text_page
from gpushare_core.kube.backoff import BOOKKEEPING_RETRY, Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.process.clock import utc_now
from gpushare_core.process.metrics import new_registry
from gpushare_plugin.cluster.container_names import ContainerNames
from gpushare_plugin.cluster.event_writer import EventWriter
from gpushare_plugin.cluster.node_lease import NodeLease
from gpushare_plugin.cluster.pod_watch import PodWatch
from gpushare_plugin.cluster.share_node_watch import ShareNodeWatch
from gpushare_plugin.decide.admit.pod_being_admitted import pods_without_units
from gpushare_plugin.decide.isolation.hook import LIBRARY
from gpushare_plugin.decide.report.conditions import STOPPING, RegistrationState
from gpushare_plugin.devices.card import DeviceSource
from gpushare_plugin.devices.source import DeviceSources
from gpushare_plugin.devices.use import LimitSource, UseSource
from gpushare_plugin.heartbeat import Heartbeat, Watchdog
from gpushare_plugin.isolation.folder import IsolationFolder
from gpushare_plugin.isolation.keeper import IsolationKeeper
from gpushare_plugin.isolation.read_back import CGROUPS, DriverReader
from gpushare_plugin.kubelet.allocator import Allocator
from gpushare_plugin.kubelet.assignment_reader import AssignmentReader
from gpushare_plugin.kubelet.checkpoint import CheckpointFile
from gpushare_plugin.kubelet.device_plugin import DevicePlugin, grpc_handler
from gpushare_plugin.kubelet.device_stream import DeviceStream
from gpushare_plugin.kubelet.kubelet_requests import KubeletRequests
from gpushare_plugin.kubelet.plugin_server import PluginServer
from gpushare_plugin.kubelet.pod_resources import PodResources
from gpushare_plugin.kubelet.registration import Registrar
from gpushare_plugin.kubelet.reservations import UnitReservations
from gpushare_plugin.metrics import PluginMetrics, ProcessState
from gpushare_plugin.reconcile.reconciler import NodeReconciler
from gpushare_plugin.reconcile.use_meter import UseMeter
from gpushare_plugin.state import PluginState

PERIOD = 10.0
"""Seconds between two rounds although nothing has changed."""
DEBOUNCE = 0.1
"""Seconds in which changes are collected for one round."""
PHASES_TIMEOUT = 2.0
"""Seconds for reading which of the pods without units run."""
STOPPING_TIMEOUT = 2.0
"""Seconds for writing into the GPUShareNode that this plugin stops."""
STUCK_AFTER = 60.0
"""Seconds without a reading of PodResources after which the process counts as dead."""


HOOK_FOLDER = Path("/usr/share/gpushare/hook")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    node: str
    device_plugins: Path
    """The folder in which the kubelet and its plugins have their sockets."""
    pod_resources: Path
    """The socket of the kubelet's PodResources API."""
    health_port: int
    namespace: str = NAMESPACE
    """Of the Lease that the plugin renews."""
    log_level: str = "info"
    """Unless a policy asks for another one."""
    isolation_folder: Path | None = None
    """Of the node's files for isolation, at the same path on the node and in this pod; None: no container
    can get the hook."""
    hook_folder: Path = HOOK_FOLDER
    """In the plugin's image: the hook's library by architecture."""
    cgroups: Path = CGROUPS
    """Where the node's cgroups are mounted."""

    @property
    def isolation_files(self) -> IsolationFolder | None:
        if self.isolation_folder is None:
            return None
        return IsolationFolder(self.isolation_folder, self.hook_folder / platform.machine() / LIBRARY)


class Agent:
    """The plugin of one node."""

    def __init__(
        self,
        settings: Settings,
        client: KubeClient,
        resources: PodResources,
        *,
        open_source: Callable[[GPUShareNode], DeviceSource] | None = None,
        open_use: Callable[[GPUShareNode], UseSource | None] | None = None,
        open_limits: Callable[[GPUShareNode], LimitSource | None] | None = None,
        give_back: Callable[[], None] = lambda: None,
        watchdog: Watchdog | None = None,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``give_back`` returns free memory to the system. It is called after each reading of the kubelet's
        books, the longest messages, and after each round: the next one is 10 s away."""
        self.state = PluginState(settings.node)
        self.registry = new_registry("gpushare-plugin")
        self._settings, self._client, self._give_back = settings, client, give_back
        self._now, self._clock, self._time = now, clock, asyncio.get_running_loop().time
        self._stopping = False
        self._metrics = PluginMetrics(self.registry, self._process_state)
        self._streams = {name: DeviceStream() for name in RESOURCES}
        self._files = IsolationKeeper(settings.isolation_files, clock)
        reservations = UnitReservations(self._time)
        self._calls = KubeletRequests(reservations)
        self._assignment_reader = AssignmentReader(
            self.state,
            resources,
            CheckpointFile(settings.device_plugins),
            reservations=reservations,
            after_reading=self._after_reading,
        )
        self._pod_watch = PodWatch(self.state, client, ended=self._assignment_reader.read_soon)
        self._share_node_watch = ShareNodeWatch(self.state, client, level=settings.log_level)
        self._servers: list[PluginServer] = []
        self._registrars = {name: self._new_registrar(name, reservations) for name in RESOURCES}
        services = [server.answers for server in self._servers]
        self._heartbeat = Heartbeat(watchdog, services, clock=self._time)
        sources = DeviceSources(self.state.changed.set)
        self._reconciler = self._new_reconciler(
            reservations,
            open_source or sources.open,
            UseMeter(self.state, ContainerNames(client), open_use or sources.open_use, clock),
            self._new_driver_reader(open_limits or sources.open_limits),
        )

    def _new_reconciler(
        self,
        reservations: UnitReservations,
        open_source: Callable[[GPUShareNode], DeviceSource],
        meter: UseMeter,
        driver: DriverReader,
    ) -> NodeReconciler:
        return NodeReconciler(
            state=self.state,
            client=self._client,
            assignment_reader=self._assignment_reader,
            reservations=reservations,
            streams=self._streams,
            registration=self._registration,
            open_source=open_source,
            meter=meter,
            events=EventWriter(self._client, self._settings.node, now=self._now),
            files=self._files,
            driver=driver,
            now=self._now,
            clock=self._clock,
        )

    def _new_driver_reader(self, open_limits: Callable[[GPUShareNode], LimitSource | None]) -> DriverReader:
        state = self.state
        return DriverReader(
            names=ContainerNames(self._client),
            open_limits=lambda: open_limits(state.share_node) if state.share_node else None,
            devices=lambda: state.devices,
            kubelet_uids=lambda: {
                pod.uid: pod.kubelet_uid for pod in state.pods.values() if pod.uid != pod.kubelet_uid
            },
            cgroups=self._settings.cgroups,
        )

    def _new_registrar(self, name: str, reservations: UnitReservations) -> Registrar:
        allocator = Allocator(
            state=self.state,
            assignment_reader=self._assignment_reader,
            reservations=reservations,
            pod_watch=self._pod_watch,
            name=name,
            resource=RESOURCES[name],
            files=self._files,
        )
        socket = self._settings.device_plugins / f"gpushare-{name.replace('/', '-')}.sock"
        stream = self._streams[name]
        plugin = DevicePlugin(allocator, stream, calls=self._calls, called=self._metrics.called)
        server = PluginServer(socket, grpc_handler(plugin))
        self._servers.append(server)
        return Registrar(server, resource=name, stream=stream, notify=self._registration_changed)

    async def run(self) -> None:
        """Never returns. Raises ``ExceptionGroup`` when a part fails.

        When it is cancelled, it writes into the GPUShareNode that it stops while its parts still work.
        """
        parts = asyncio.ensure_future(self._run_parts())
        try:
            await asyncio.shield(parts)
        except asyncio.CancelledError:
            await self._report_stopping()
            raise
        finally:
            parts.cancel()
            await asyncio.wait([parts])

    async def _run_parts(self) -> None:
        pages = health_pages(
            liveness=text_page(self.liveness_problem),
            readiness=text_page(self.readiness_problem),
            registry=self.registry,
        )
        server = HealthServer(self._settings.health_port, pages)
        lease = NodeLease(
            self.state,
            self._client,
            self._settings.namespace,
            serves=lambda: not self._registrar_state().displaced,
            now=self._now,
        )
        async with server, asyncio.TaskGroup() as group:
            group.create_task(self._heartbeat.run(), name="heartbeat")
            group.create_task(lease.run(), name="Lease")
            group.create_task(self._share_node_watch.run(), name="GPUShareNode watch")
            group.create_task(self._pod_watch.run(), name="pod watch")
            group.create_task(self._pod_watch.run_spec_reader(), name="pod specs")
            # Also while the API server is away: its readings show that the process is not stuck.
            group.create_task(self._assignment_reader.run(), name="assignment reader")
            group.create_task(self._keep_reconciled(), name="reconciler")
            for name, registrar in self._registrars.items():
                group.create_task(registrar.run(), name=f"registrar of {name}")

    async def _report_stopping(self) -> None:
        """So that the scheduler sends no more pods, which the kubelet would have to refuse."""
        self._stopping = True
        with suppress(TimeoutError):
            async with asyncio.timeout(STOPPING_TIMEOUT):
                await self._reconciler.write_status()

    def _process_state(self) -> ProcessState:
        share_node = self.state.share_node
        return ProcessState(
            node=self.state.name,
            cards=self.state.reading.cards if self.state.reading else (),
            spec=share_node.spec if share_node else None,
            status=share_node.status if share_node else None,
            measured=self.state.measured,
            isolated=self.state.isolation_findings or (),
            listed={
                "pods": self._pod_watch.synced.is_set(),
                "gpusharenodes": self._share_node_watch.synced.is_set(),
            },
            registered=self.is_registered,
            assignments_age=self._time() - self._assignment_reader.last_round,
        )

    def _registration(self) -> RegistrationState:
        state = self._registrar_state()
        return STOPPING if self._stopping and not state.displaced else state

    def _registrar_state(self) -> RegistrationState:
        """Returns the state of one resource, the first that applies:

        1. one that another plugin serves, which has displaced this one;
        2. one that is offered, or was, and is not registered;
        3. the first that is offered, or was; before there were any, the memory's.
        """
        layout = self.state.offering.layout or self.state.last_layout
        classes = layout.classes if layout else (ResourceClass.MEMORY,)
        names = map(self.state.offering.dialect.resource_name, classes)
        states = {name: registrar.state for name, registrar in self._registrars.items()}
        displaced = (state for state in states.values() if state.displaced)
        offered = [states[name] for name in names]
        missing = (state for state in offered if not state.registered)
        return next(displaced, next(missing, offered[0]))

    @property
    def is_registered(self) -> bool:
        return self._registrar_state().registered

    def liveness_problem(self) -> str:
        """Returns how the process is stuck, or an empty text.

        A process that cannot reach the API server or the kubelet is not stuck: it goes on with what it knows,
        which a restart would lose.
        """
        age = self._time() - self._assignment_reader.last_round
        stuck = f"the kubelet's assignments were read {age:.0f} s ago" if age > STUCK_AFTER else ""
        return stuck or self._heartbeat.problem()

    def readiness_problem(self) -> str:
        """Returns why the plugin is not ready, or an empty text; also where the node is not to be shared."""
        if not (self._share_node_watch.synced.is_set() and self._pod_watch.synced.is_set()):
            return "waiting for the API server"
        offering, registration = self.state.offering, self._registrar_state()
        if offering.layout is None and not registration.displaced:
            return offering.postponed.message if offering.postponed else ""
        return registration.message

    async def _after_reading(self) -> None:
        self._give_back()
        names = pods_without_units(self.state.assigned, self.state.pods)
        await self._pod_watch.read_specs(names, timeout=PHASES_TIMEOUT)
        await self._pod_watch.forget_ended(timeout=PHASES_TIMEOUT)

    def _registration_changed(self) -> None:
        self.state.changed.set()
        self._assignment_reader.read_soon()

    async def _keep_reconciled(self) -> None:
        """Decides nothing before everything was read once, except from the kubelet, which may be away."""
        await self._share_node_watch.synced.wait()
        await self._reconciler.write_status()  # a plugin that was killed left there that it is registered
        await self._pod_watch.synced.wait()
        await self._assignment_reader.read()
        backoff = Backoff(most=BOOKKEEPING_RETRY)
        while True:
            await self._calls.until_over()
            self.state.changed.clear()
            await self._reconciler.prepare(self._calls.yield_to_kubelet)
            is_done = await self._reconciler.reconcile()
            if not self._calls.pending:  # a pod that is being admitted would wait for pages
                self._give_back()
            if is_done:
                backoff.reset()
                due = self._reconciler.seconds_until_due()
                await self._wait_until_changed(PERIOD if due is None else min(PERIOD, due))
            else:
                await self._wait_until_changed(backoff.next_delay(self._client.asked_to_wait))

    async def _wait_until_changed(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.state.changed.wait()
            await asyncio.sleep(DEBOUNCE)
