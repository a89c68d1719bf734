"""A node without sockets: the plugin's real reconciler and allocator, and a kubelet that does what a test
says.

Nothing runs by itself: each step is a call, and is over when it returns.
"""

from array import array
from collections.abc import AsyncIterator, Collection, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol, TypeVar

from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.kube.response import Page
from gpushare_core.placement.requests import PodRequest, read_request
from gpushare_core.text.json_object import Json
from gpushare_plugin.cluster.container_names import ContainerNames
from gpushare_plugin.cluster.event_writer import EventWriter
from gpushare_plugin.decide.admit.preferred_allocation import NothingFitsError, PreferenceRequest
from gpushare_plugin.decide.health.card_health import MAX_QUIET
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry, StoredUnits, read_answer
from gpushare_plugin.decide.held.pods import PodName, read_pod
from gpushare_plugin.decide.report.conditions import RegistrationState
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.decide.units.unit_ids import known_numbers
from gpushare_plugin.devices.card import PhysicalCard, Reading
from gpushare_plugin.kubelet.allocator import Allocator, NothingOfferedError
from gpushare_plugin.kubelet.assignment_reader import AssignmentReader
from gpushare_plugin.kubelet.pod_resources import PodResourcesUnavailableError, read_assigned
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api
from gpushare_plugin.kubelet.proto import podresources_pb2 as resources
from gpushare_plugin.kubelet.reservations import UnitReservations
from gpushare_plugin.kubelet.wire import preference_requests
from gpushare_plugin.reconcile.reconciler import NodeReconciler
from gpushare_plugin.reconcile.use_meter import UseMeter
from gpushare_plugin.state import PluginState

T = TypeVar("T")

NOW = datetime(2026, 11, 21, tzinfo=UTC)
LONG = 100.0
"""Seconds after which no reservation for a request of the kubelet is left."""


class RefusedError(Exception):
    """The kubelet does not admit the pod; the text says why."""


def run_now(coroutine: Coroutine[Any, Any, T]) -> T:
    """Returns the result of ``coroutine``, which must not have to wait."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError(f"{coroutine} waits")


@dataclass(slots=True)
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class Pod:
    """One pod as the API server has it."""

    body: Json
    phase: str = "Pending"
    foreign: bool = False
    """Bound by somebody else."""

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def node(self) -> str:
        return str(self.body["spec"].get("nodeName", ""))

    @property
    def name(self) -> PodName:
        return PodName("default", self.body["metadata"]["name"])

    @property
    def request(self) -> PodRequest:
        return read_request(self.body["spec"], RESOURCES)


@dataclass(slots=True)
class Given:
    """What the kubelet gave to one container."""

    resource: str
    """Name."""
    ids: list[str]
    variables: dict[str, str]

    def cards(self) -> Iterator[tuple[str, str]]:
        """Yields card UUID and unit ID, by the environment of the container."""
        numbers = sorted(self.ids, key=lambda unit_id: list(known_numbers([unit_id])))
        uuids = self.variables["GPUSHARE_CARD"].split(",")
        each = len(numbers) // len(uuids)
        for place, uuid in enumerate(uuids):
            yield from ((uuid, unit) for unit in numbers[place * each : (place + 1) * each])


@dataclass(slots=True)
class Kubelet:
    """Admits as ``devicemanager.ManagerImpl`` does, and forgets a pod when it is told to."""

    devices: dict[str, dict[str, str]] = field(default_factory=dict)
    """Name of a resource -> ID -> health, as of the last list."""
    pods: dict[PodName, tuple[Pod, dict[str, list[Given]]]] = field(default_factory=dict)
    """Every pod that it knows, and what its containers have."""
    stored: list[CheckpointEntry] = field(default_factory=list)
    """The checkpoint as it was written last: pods that ended since are in it."""
    forgotten: set[PodName] = field(default_factory=set)
    """Pods that run on although their units were lost with a checkpoint."""
    silent: bool = False
    """Whether PodResources do not answer."""
    forgetful: bool = False
    """Whether units that are held are offered again, as after ``UpdateAllocatedDevices`` at a bad moment."""
    starts: int = 0
    unheard: set[PodName] = field(default_factory=set)
    """Pods that the kubelet has not heard of since its start: it lists them later."""

    def restart(self) -> None:
        """It lists nobody until it has heard from the API server."""
        self.starts += 1
        self.unheard = {*self.pods}

    starts_without_unknown: bool = False
    """Whether it starts containers without the resources that no plugin has ever registered, as the real
    kubelet does."""

    def take_list(self, name: str, message: bytes) -> None:
        listed = api.ListAndWatchResponse.FromString(message)
        self.devices[name] = {device.ID: device.health for device in listed.devices}

    def lose_plugin(self) -> None:
        self.devices = {name: dict.fromkeys(ids, "Unhealthy") for name, ids in self.devices.items()}

    def free(self, name: str) -> list[str]:
        taken = {
            unit
            for pod, containers in self.pods.values()
            if pod.name not in self.forgotten and not self.forgetful
            for given in containers.values()
            for grant in given
            if grant.resource == name
            for unit in grant.ids
        }
        ids = self.devices.get(name, {})
        return [unit for unit, health in ids.items() if health == "Healthy" and unit not in taken]

    def write_checkpoint(self) -> None:
        self.stored = [
            read_answer(StoredUnits(pod.uid, container, grant.resource, _numbers(grant.ids)), grant.variables)
            for pod, containers in self.pods.values()
            if pod.name not in self.forgotten
            for container, given in containers.items()
            for grant in given
        ]

    def lose_checkpoint(self) -> None:
        """The kubelet loses its checkpoint: its containers run on, and it asks again only for those that
        restart."""
        self.forgotten |= self.pods.keys()
        self.write_checkpoint()

    def end(self, name: PodName) -> None:
        """The pod's containers have ended: its units are free."""
        self.pods.pop(name, None)
        self.forgotten.discard(name)

    def listed(self) -> resources.ListPodResourcesResponse:
        return resources.ListPodResourcesResponse(
            pod_resources=[
                self._listed(pod, {} if pod.name in self.forgotten else given)
                for pod, given in self.pods.values()
                if pod.name not in self.unheard
            ]
        )

    def _listed(self, pod: Pod, given: Mapping[str, Sequence[Given]]) -> resources.PodResources:
        ordinary = pod.request.init_containers
        spec = pod.body["spec"]
        names = [init_container["name"] for init_container in (*spec["initContainers"], *spec["containers"])]
        return resources.PodResources(
            name=pod.name.name,
            namespace=pod.name.namespace,
            containers=[
                resources.ContainerResources(
                    name=name,
                    devices=[
                        resources.ContainerDevices(resource_name=grant.resource, device_ids=grant.ids)
                        for grant in given.get(name, ())
                    ],
                )
                for name in names
                if name not in ordinary
            ],
        )


def _numbers(ids: Sequence[str]) -> "array[int]":
    return array("I", sorted(known_numbers(ids)))


@dataclass(slots=True)
class Listing:
    """Stands for a stream: the kubelet takes a list as soon as it is offered."""

    kubelet: Kubelet
    name: str
    is_offering: bool = False

    def offer(self, message: bytes) -> None:
        self.is_offering = True
        self.kubelet.take_list(self.name, message)

    def withdraw(self, message: bytes) -> None:
        self.offer(message)
        self.is_offering = False

    def offer_later(self, message: bytes) -> None:
        raise AssertionError(f"no other plugin serves {self.name}: {message!r}")


@dataclass(slots=True)
class KubeletClient:
    """Stands for PodResources and the checkpoint."""

    kubelet: Kubelet

    async def assigned_devices(self, *, timeout: float) -> AssignedDevices:
        assert timeout
        if self.kubelet.silent:
            raise PodResourcesUnavailableError("no answer")
        return changed(
            read_assigned(self.kubelet.listed().SerializeToString(), RESOURCES),
            kubelet=str(self.kubelet.starts),
        )

    def read(self, names: Collection[str]) -> tuple[CheckpointEntry, ...]:
        assert RESOURCES.keys() >= set(names)
        return tuple(self.kubelet.stored)


@dataclass(slots=True)
class Cards:
    """A source of devices whose cards fail and return."""

    present: dict[str, PhysicalCard]
    """By UUID."""

    async def read(self) -> Reading:
        return Reading(cards=tuple(self.present.values()))

    granted: dict[str, int] = field(default_factory=dict)
    """Card UUID -> bytes of the card when units of it were given out."""

    def sizes(self, in_use: Collection[str]) -> dict[str, int]:
        """Returns card UUID -> bytes: for cards ``in_use`` the bytes when their units were given out."""
        self.granted = {uuid: size for uuid, size in self.granted.items() if uuid in in_use}
        present = {uuid: card.memory for uuid, card in self.present.items()}
        for uuid in in_use:
            self.granted.setdefault(uuid, present.get(uuid, 0))
        return present | {uuid: size for uuid, size in self.granted.items() if size}

    def set_health(self, uuid: str, *, healthy: bool) -> None:
        reason = "" if healthy else "Xid 79"
        self.present[uuid] = changed(self.present[uuid], healthy=healthy, reason=reason)


class NodeApi(Protocol):
    """What a plugin finds in the API server, and writes there."""

    share_nodes: dict[str, Json]

    def bound_to(self, node: str) -> Iterator[Pod]:
        """Yields the node's pods."""

    async def merge(self, path: str, body: Json, *, dry_run: bool = False) -> Json:
        """As ``KubeClient.merge``."""

    def pages(self, path: str, *, limit: int, field_selector: str) -> AsyncIterator[Page]:
        """As ``KubeClient.pages``."""


class Unheard:
    """An API server to which Events go."""

    async def create(self, _path: str, _body: Json) -> None:
        """Nobody reads it."""


@dataclass(slots=True)
class Node:
    """A kubelet, its cards, and the plugin, which can be restarted."""

    cluster: "NodeApi"
    name: str
    cards: Cards
    kubelet: Kubelet = field(default_factory=Kubelet)
    disturbed: bool = False
    """Whether the kubelet may refuse a pod that the extender has bound: a card failed, or others bind."""
    clock: Clock = field(default_factory=Clock)
    registration: RegistrationState = field(default_factory=lambda: RegistrationState(registered=True))
    state: PluginState = field(init=False)
    reconciler: NodeReconciler = field(init=False)
    reader: AssignmentReader = field(init=False)
    reservations: UnitReservations = field(init=False)

    def start_plugin(self) -> None:
        """Starts a new process of the plugin: it knows what the API server has, and has offered nothing
        yet."""
        self.kubelet.lose_plugin()
        client: Any = KubeletClient(self.kubelet)
        streams: Any = {name: Listing(self.kubelet, name) for name in RESOURCES}
        self.state = PluginState(self.name)
        self.reservations = UnitReservations(self.clock)
        self.reader = AssignmentReader(
            self.state,
            client,
            client,
            reservations=self.reservations,
            after_reading=_nothing,
            clock=self.clock,
        )
        self.reconciler = NodeReconciler(
            state=self.state,
            client=self.cluster,  # type: ignore[arg-type]
            assignment_reader=self.reader,
            reservations=self.reservations,
            streams=streams,
            registration=lambda: self.registration,
            now=self.now,
            open_source=lambda _: self.cards,
            meter=UseMeter(self.state, ContainerNames(self.cluster), open_use=lambda _: None),  # type: ignore[arg-type]
            events=EventWriter(Unheard(), self.name, now=self.now),  # type: ignore[arg-type]
        )
        self.state.share_node = GPUShareNode.from_json(self.cluster.share_nodes[self.name])
        self.state.pods_known = True
        for pod in self.cluster.bound_to(self.name):
            self.state.put_pod(read_pod(pod.body, GPUSHARE.allocation_annotation, RESOURCES))

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.clock.now)

    @property
    def offers(self) -> bool:
        return any("Healthy" in ids.values() for ids in self.kubelet.devices.values())

    def let_cards_return(self) -> None:
        """Lets cards that are healthy again stay so for longer than the longest quiet time."""
        self.look()
        self.clock.now += MAX_QUIET.total_seconds()
        self.look()

    def look(self) -> None:
        """The plugin reads the kubelet's books, decides what to offer, repairs, reports."""
        self.clock.now += LONG
        run_now(self.reader.read())
        if not self.state.listed_since_restart.complete:  # pods of a kubelet that lists nobody are waited for
            self.clock.now += LONG
            run_now(self.reader.read())
        if not any(self.try_round() for _ in range(3)):
            raise AssertionError(f"{self.name} does not come to rest: {self.state.offering}")

    def try_round(self) -> bool:
        """Returns whether all could be written that had to be."""
        return run_now(self.reconciler.reconcile())

    async def read_specs(self, _names: object, *, timeout: float) -> None:
        """Stands for the pod watch: every spec was read when its pod came."""
        assert timeout

    def admit(self, pod: Pod) -> None:
        """Raises ``RefusedError``; the kubelet then has nothing of the pod."""
        given: dict[str, list[Given]] = {}
        self.kubelet.pods[pod.name] = (pod, given)
        self.clock.now += LONG
        try:
            self._admit_containers(pod, given)
        except (RefusedError, NothingFitsError, NothingOfferedError, UnusableUnitsError) as error:
            del self.kubelet.pods[pod.name]
            raise RefusedError(str(error)) from error

    def admit_container(self, pod: Pod, container: str) -> None:
        """Just one of them, each of which asks for one resource."""
        _, given = self.kubelet.pods.setdefault(pod.name, (pod, {}))
        self.clock.now += LONG
        for asked in pod.request.resources:
            if amount := asked.containers.get(container, 0):
                given[container] = [self._allocate(asked.name, amount, [])]
        self.kubelet.write_checkpoint()

    def _admit_containers(self, pod: Pod, given: dict[str, list[Given]]) -> None:
        request = pod.request
        lent: dict[str, list[str]] = {resource.name: [] for resource in request.resources}
        names = dict.fromkeys(name for resource in request.resources for name in resource.containers)
        for container in names:
            for asked in request.resources:
                if self.kubelet.starts_without_unknown and asked.name not in self.kubelet.devices:
                    continue
                if amount := asked.containers.get(container, 0):
                    given.setdefault(container, []).append(
                        self._allocate(asked.name, amount, lent[asked.name])
                    )
                    ids = given[container][-1].ids
                    ordinary = container in request.init_containers
                    kept = [unit for unit in lent[asked.name] if unit not in ids]
                    lent[asked.name] = [*kept, *ids] if ordinary else kept
            self.kubelet.write_checkpoint()

    def _allocate(self, name: str, amount: int, lent: list[str]) -> Given:
        reused = lent[:amount]
        allocator = Allocator(
            state=self.state,
            assignment_reader=self.reader,
            reservations=self.reservations,
            pod_watch=self,  # type: ignore[arg-type]
            resource=RESOURCES[name],
            name=name,
        )
        ids = list(reused)
        if len(reused) < amount:
            free = self.kubelet.free(name)
            if len(free) + len(reused) < amount:
                raise RefusedError(f"{name}: Requested: {amount}, Available: {len(free)}")
            asked = preference_request([*free, *reused], reused, amount)
            ids = run_now(allocator.prefer(asked))
        return Given(name, ids, run_now(allocator.allocate(ids)).variables)


def preference_request(free: Sequence[str], reused: Sequence[str], amount: int) -> PreferenceRequest:
    """Returns it as it comes from the kubelet's message."""
    asked = api.ContainerPreferredAllocationRequest(
        available_deviceIDs=free, must_include_deviceIDs=reused, allocation_size=amount
    )
    message = api.PreferredAllocationRequest(container_requests=[asked])
    return preference_requests(message.SerializeToString())[0]


async def _nothing() -> None:
    """Nobody has to be told."""
