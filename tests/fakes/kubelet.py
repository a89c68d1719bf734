"""A kubelet on real sockets, as far as plugins see it: registration, admission, PodResources, restarts.

Its device manager follows ``pkg/kubelet/cm/devicemanager`` of Kubernetes 1.36: it dials back within Register,
takes the newest registration, lists a pod that is being admitted without devices, lends an ordinary init
container's devices to the containers after it, and removes all plugins' sockets when it starts. Then it lists
nobody, and one pod more with each answer: it hears of them from the API server.

Like Kubernetes 1.37 at bad moments, it refuses for ever an endpoint to which it was connected before.
"""

import asyncio
import base64
import json
import random
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from tests.fakes.patience import PATIENCE

from gpushare_core.placement.requests import ResourceClass, read_request
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api
from gpushare_plugin.kubelet.proto import podresources_pb2 as resources

Call = Callable[..., Any]

PLUGIN = "/v1beta1.DevicePlugin/"

_OWN_CONNECTION = (("grpc.use_local_subchannel_pool", 1),)
"""Connects to the process that listens at the path now; a shared channel may lead to an earlier one."""


class AdmissionError(Exception):
    """UnexpectedAdmissionError: the pod fails; the text is what the user sees."""


@dataclass(slots=True)
class Plugin:
    """One registration: the connection that the kubelet dialled back."""

    channel: grpc.aio.Channel
    request: api.RegisterRequest
    watching: asyncio.Task[None] | None = None
    listed: bool = False
    """Whether its first list of devices has come."""

    def call(self, method: str, request: type[Any], response: type[Any]) -> Call:
        return self.channel.unary_unary(
            PLUGIN + method,
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )


@dataclass(slots=True)
class Admitted:
    """A pod that the kubelet knows, and what its containers hold."""

    spec: Json
    uid: str = ""
    """A static pod's is not that of its mirror."""
    held: dict[str, list[str]] = field(default_factory=dict)
    variables: dict[str, dict[str, str]] = field(default_factory=dict)
    resources: dict[str, str] = field(default_factory=dict)
    """What each container holds units of."""
    answers: dict[str, api.ContainerAllocateResponse] = field(default_factory=dict)
    """The plugin's last one for each container, variables and all."""

    def shown(self) -> Iterable[str]:
        """Containers that PodResources list."""
        for init in self.spec.get("initContainers") or ():
            if init.get("restartPolicy") == "Always":
                yield init["name"]
        for container in self.spec["containers"]:
            yield container["name"]


@dataclass(slots=True)
class FakeKubelet:
    """``busy``: so many List calls are refused, as at the rate limit. ``deaf``: List never responds."""

    directory: Path
    resource: str = "gpushare.io/memory"
    """The latest registration; ``plugin`` and ``devices`` belong to it."""
    plugins: dict[str, Plugin] = field(default_factory=dict)
    """Every resource that is registered."""
    offered: dict[str, dict[str, str]] = field(default_factory=dict)
    """Resource -> ID -> health, as of the last list of each."""
    seed: int = 7
    plugin: Plugin | None = None
    devices: dict[str, str] = field(default_factory=dict)
    """ID -> health, as of the last list."""
    lists: list[int] = field(default_factory=list)
    """Bytes of each list that came."""
    registrations: int = 0
    endpoints: set[str] = field(default_factory=set)
    """The endpoints of all registrations since the start."""
    pods: dict[PodName, Admitted] = field(default_factory=dict)
    busy: int = 0
    deaf: bool = False
    aligns: bool = False
    """Set: it takes all units that are left without asking which, as with a topology manager."""
    forgetful: bool = False
    """Set: units that are held are offered again, as after ``UpdateAllocatedDevices`` at a bad moment."""
    refuse: str = ""
    """Set: Register fails with this text."""
    writes_checkpoint: bool = True
    unheard: list[PodName] = field(default_factory=list)
    """Pods that the kubelet has on disk, and has not heard of since its start."""
    hears: bool = True
    """Unset: the API server does not answer it."""
    listings: int = 0
    """Answers of PodResources."""
    _closing: asyncio.Task[None] | None = None
    _registration_server: grpc.aio.Server | None = None
    _resources_server: grpc.aio.Server | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _admission: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def device_plugins(self) -> Path:
        return self.directory / "device-plugins"

    @property
    def checkpoint(self) -> Path:
        return self.device_plugins / "kubelet_internal_checkpoint"

    @property
    def pod_resources(self) -> Path:
        return self.directory / "pod-resources.sock"

    # Life

    async def start(self) -> None:
        self.unheard = [*self.pods]
        self.endpoints.clear()
        self.device_plugins.mkdir(exist_ok=True)
        for path in self.device_plugins.iterdir():
            if path.is_socket():
                path.unlink(missing_ok=True)
        self._registration_server = await _serve(
            self.device_plugins / "kubelet.sock",
            "v1beta1.Registration",
            Register=(self._register, api.RegisterRequest, api.Empty),
        )
        self._resources_server = await _serve(
            self.pod_resources,
            "v1.PodResourcesLister",
            List=(self._list, resources.ListPodResourcesRequest, resources.ListPodResourcesResponse),
        )

    async def stop(self) -> None:
        """As when the process ends: connections break, what is assigned stays on disk."""
        for server in (self._registration_server, self._resources_server):
            if server is not None:
                await server.stop(None)
        for plugin in {
            id(plugin): plugin for plugin in (*self.plugins.values(), self.plugin) if plugin
        }.values():
            await self._forget(plugin)
        self.plugin, self.devices = None, {}
        self.plugins.clear()
        self.offered.clear()
        (self.device_plugins / "kubelet.sock").unlink(missing_ok=True)

    async def _forget(self, plugin: Plugin) -> None:
        if plugin.watching is not None:
            plugin.watching.cancel()
            with suppress(asyncio.CancelledError):
                await plugin.watching
        await plugin.channel.close()

    # Registration

    async def _register(self, request: api.RegisterRequest, context: Any) -> api.Empty:
        if self.refuse:
            await context.abort(grpc.StatusCode.UNKNOWN, self.refuse)
        if request.endpoint in self.endpoints:
            await context.abort(
                grpc.StatusCode.UNKNOWN, f"device plugin already connected: {request.endpoint}"
            )
        self.endpoints.add(request.endpoint)
        socket = self.device_plugins / request.endpoint
        channel = grpc.aio.insecure_channel(f"unix://{socket}", options=_OWN_CONNECTION)
        async with asyncio.timeout(30):
            await channel.channel_ready()
        plugin = Plugin(channel, request)
        await plugin.call("GetDevicePluginOptions", api.Empty, api.DevicePluginOptions)(api.Empty())
        self.plugin, self.resource = plugin, request.resource_name
        self.plugins[request.resource_name] = plugin
        plugin.watching = asyncio.create_task(self._watch(plugin))
        self.registrations += 1
        self._notify()
        return api.Empty()

    async def _watch(self, plugin: Plugin) -> None:
        listen: Call = plugin.channel.unary_stream(
            PLUGIN + "ListAndWatch", request_serializer=api.Empty.SerializeToString
        )
        stream = listen(api.Empty())
        try:
            async for message in stream:
                self.lists.append(len(message))
                listed = api.ListAndWatchResponse.FromString(message)
                devices = {device.ID: device.health for device in listed.devices}
                plugin.listed = True
                self.offered[plugin.request.resource_name] = devices
                if plugin.request.resource_name == self.resource:
                    self.devices = devices
                self._write_checkpoint()
                self._notify()
        except grpc.aio.AioRpcError:
            self._disconnect(plugin.request.resource_name)

    def _disconnect(self, resource: str) -> None:
        """As ``server.runClient``: disconnects the latest registration, whichever plugin has gone."""
        newest = self.plugins.pop(resource, None)
        self.offered[resource] = dict.fromkeys(self.offered.get(resource, {}), "Unhealthy")
        if resource == self.resource:
            self.plugin, self.devices = None, self.offered[resource]
        if newest and newest.watching is not asyncio.current_task():
            self._closing = asyncio.create_task(self._forget(newest))
        self._notify()

    # Admission

    async def admit(self, pod: Json) -> Admitted:
        """Admit ``pod``, one at a time. Raises ``AdmissionError``, and forgets it, when it is refused."""
        name = PodName(pod["metadata"]["namespace"], pod["metadata"]["name"])
        async with self._admission:
            if self.hears:  # those that it has on disk come first
                self.unheard.clear()
            admitted = self.pods[name] = Admitted(pod["spec"], _uid(pod))
            reusable: dict[str, list[str]] = {}
            try:
                for container, resource, units in self._asked(pod["spec"]):
                    admitted.resources[container] = resource
                    lent = reusable.setdefault(resource, [])
                    await self._allocate(admitted, container, units, lent)
                    self._write_checkpoint()
            except AdmissionError:
                del self.pods[name]
                raise
        return admitted

    def served_by_another_plugin(
        self, pod: Json, held: dict[str, list[str]], variables: dict[str, str], resource: str
    ) -> None:
        """Adds a pod that was admitted earlier: ``held`` has the IDs of its containers, ``variables`` the
        environment of all."""
        name = PodName(pod["metadata"]["namespace"], pod["metadata"]["name"])
        answers, resources = dict.fromkeys(held, variables), dict.fromkeys(held, resource)
        self.pods[name] = Admitted(pod["spec"], _uid(pod), held, answers, resources)
        self._write_checkpoint()

    def _asked(self, spec: Json) -> list[tuple[str, str, int]]:
        """Returns the requests of each container for registered resources, in the order in which they
        start."""
        served = dict.fromkeys([*self.plugins, self.resource], ResourceClass.MEMORY)
        request = read_request(spec, served)
        order = [
            init_container["name"]
            for init_container in (*(spec.get("initContainers") or ()), *spec["containers"])
        ]
        asked = (
            (name, resource.name, units)
            for resource in request.resources
            for name, units in resource.containers.items()
        )
        return sorted(asked, key=lambda item: order.index(item[0]))

    @property
    def awaits_devices(self) -> bool:
        """Whether a registered plugin has sent no list yet: no pod is admitted so early."""
        return not all(plugin.listed for plugin in self.plugins.values())

    def devices_of(self, resource: str) -> dict[str, str]:
        return self.devices if resource == self.resource else self.offered.get(resource, {})

    async def allocate(self, resource: str, units: list[str]) -> None:
        """Call Allocate without having asked which units to take."""
        await self._call(resource, "Allocate", _allocate_request(units), api.AllocateResponse)

    def forget_units(self, name: PodName) -> None:
        """As after the loss of the checkpoint: the pod runs on and is listed without devices."""
        self.pods[name].held.clear()
        self.pods[name].variables.clear()
        self._write_checkpoint()

    async def restart_container(self, name: PodName, container: str, units: int) -> Mapping[str, str]:
        """Allocate once more for a container that ran; returns its environment."""
        async with self._admission:
            await self._allocate(self.pods[name], container, units, [])
            self._write_checkpoint()
        return self.pods[name].variables[container]

    def _write_checkpoint(self) -> None:
        """Writes the checkpoint anew, with what is assigned now: pods that end later stay in it."""
        if self.writes_checkpoint:
            entries = [entry for pod in self.pods.values() for entry in self._entries(pod)]
            data = {
                "PodDeviceEntries": entries or None,
                "RegisteredDevices": {
                    name: [*self.devices_of(name)] for name in (*self.plugins, self.resource)
                },
            }
            written = self.checkpoint.with_suffix(".new")
            written.write_text(json.dumps({"Data": data, "Checksum": 1}))
            written.rename(self.checkpoint)

    def _entries(self, pod: Admitted) -> Iterable[Json]:
        for container, units in pod.held.items():
            given = api.ContainerAllocateResponse(envs=pod.variables[container])
            if found := pod.answers.get(container):
                given.mounts.extend(found.mounts)
            answer = given.SerializeToString()
            yield {
                "PodUID": pod.uid,
                "ContainerName": container,
                "ResourceName": pod.resources.get(container, self.resource),
                "DeviceIDs": {"-1": units},
                "AllocResp": base64.b64encode(answer).decode(),
            }

    async def _allocate(self, pod: Admitted, container: str, units: int, reusable: list[str]) -> None:
        resource = pod.resources.setdefault(container, self.resource)
        reused = reusable[:units]
        chosen = list(reused)
        if len(chosen) < units:
            chosen = await self._choose(resource, units, reused)
        answer = await self._call(resource, "Allocate", _allocate_request(chosen), api.AllocateResponse)
        pod.held[container] = chosen
        pod.answers[container] = answer.container_responses[0]
        pod.variables[container] = dict(answer.container_responses[0].envs)
        if container in set(pod.shown()):
            reusable[:] = [unit for unit in reusable if unit not in chosen]
        else:
            reusable.extend(unit for unit in chosen if unit not in reusable)

    async def _choose(self, resource: str, units: int, reused: list[str]) -> list[str]:
        pods = () if self.forgetful else self.pods.values()
        taken = {
            unit
            for pod in pods
            for container, held in pod.held.items()
            if pod.resources.get(container, self.resource) == resource
            for unit in held
        }
        devices = self.devices_of(resource)
        free = [unit for unit, health in devices.items() if health == "Healthy" and unit not in taken]
        if len(free) + len(reused) < units:
            raise AdmissionError(f"Requested: {units}, Available: {len(free)}")
        if self.aligns and len(free) + len(reused) == units:
            return [*reused, *free]
        random.Random(self.seed).shuffle(free)  # noqa: S311  # any order will do
        container = api.ContainerPreferredAllocationRequest(
            available_deviceIDs=[*free, *reused], must_include_deviceIDs=reused, allocation_size=units
        )
        request = api.PreferredAllocationRequest(container_requests=[container])
        answer = await self._call(
            resource, "GetPreferredAllocation", request, api.PreferredAllocationResponse
        )
        given = dict.fromkeys([*reused, *answer.container_responses[0].deviceIDs, *free])
        usable = {*reused, *free}
        return [unit for unit in given if unit in usable][:units]

    async def _call(self, resource: str, method: str, request: Any, response: type[Any]) -> Any:
        plugin = self.plugin if resource == self.resource else self.plugins.get(resource)
        if plugin is None:
            raise AdmissionError("cannot allocate unregistered device")
        try:
            return await plugin.call(method, type(request), response)(request)
        except grpc.aio.AioRpcError as error:
            raise AdmissionError(error.details()) from error

    # PodResources

    async def _list(self, _: resources.ListPodResourcesRequest, context: Any) -> Any:
        if self.deaf:
            await asyncio.Event().wait()
        if self.busy > 0:
            self.busy -= 1
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        heard = [(name, pod) for name, pod in self.pods.items() if name not in self.unheard]
        self.listings += 1
        if self.hears and self.unheard:
            self.unheard.pop(0)
        return resources.ListPodResourcesResponse(
            pod_resources=[self._shown(name, pod) for name, pod in heard]
        )

    def _shown(self, name: PodName, pod: Admitted) -> resources.PodResources:
        return resources.PodResources(
            name=name.name,
            namespace=name.namespace,
            containers=[
                resources.ContainerResources(
                    name=container,
                    devices=[
                        resources.ContainerDevices(
                            resource_name=pod.resources.get(container, self.resource), device_ids=[unit]
                        )
                        for unit in pod.held.get(container, ())
                    ],
                )
                for container in pod.shown()
            ],
        )

    # Waiting

    def _notify(self) -> None:
        self._changed.set()

    async def until(
        self, what: str, condition: Callable[["FakeKubelet"], bool], within: float = PATIENCE
    ) -> None:
        deadline = asyncio.get_running_loop().time() + within
        while not condition(self):
            left = deadline - asyncio.get_running_loop().time()
            assert left > 0, f"waited {within} s for {what}"
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, 0.05)):
                    await self._changed.wait()


def _uid(pod: Json) -> str:
    annotations = pod["metadata"].get("annotations") or {}
    return str(annotations.get("kubernetes.io/config.mirror", pod["metadata"]["uid"]))


def _allocate_request(chosen: list[str]) -> api.AllocateRequest:
    return api.AllocateRequest(container_requests=[api.ContainerAllocateRequest(devices_ids=chosen)])


async def _serve(socket: Path, service: str, **methods: tuple[Call, type[Any], type[Any]]) -> grpc.aio.Server:
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(answer, request.FromString, response.SerializeToString)
        for name, (answer, request, response) in methods.items()
    }
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    server.add_insecure_port(f"unix://{socket}")
    await server.start()
    return server
