"""A kubelet as the plugin sees it, of one resource: registration, admission, PodResources, checkpoint.

Of an admission only the plugin's own time is measured: requests are encoded before, answers decoded after.
"""

import asyncio
import base64
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import msgspec

from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api
from gpushare_plugin.kubelet.proto import podresources_pb2 as resources

PLUGIN = "/v1beta1.DevicePlugin/"
LARGEST = (
    ("grpc.max_receive_message_length", 64 * 2**20),
    ("grpc.max_send_message_length", 64 * 2**20),
)
CALL_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Admitted:
    """What the kubelet shows of one pod. It is encoded once: the real kubelet takes no second for it either,
    and the plugin waits for it."""

    listed: bytes
    """A ``PodResources`` message, as a field of the answer."""
    stored: bytes = b""
    """An entry of the checkpoint; none while it is being admitted."""


@dataclass(slots=True)
class Kubelet:
    """Use as an asynchronous context manager. ``resource``: the one whose devices are counted."""

    directory: Path
    resource: str
    pods: dict[str, Admitted] = field(default_factory=dict)
    """By name, all in namespace ``default``."""
    devices: tuple[str, ...] = ()
    """Healthy ones, as of the last list."""
    _taken: set[str] = field(default_factory=set)
    _registered: bytes = b"[]"
    """The devices as the checkpoint has them."""
    _plugin: grpc.aio.Channel | None = None
    _channels: list[grpc.aio.Channel] = field(default_factory=list)
    _servers: list[grpc.aio.Server] = field(default_factory=list)
    _watching: list["asyncio.Task[None]"] = field(default_factory=list)
    _listed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def device_plugins(self) -> Path:
        return self.directory / "device-plugins"

    @property
    def pod_resources(self) -> Path:
        return self.directory / "pod-resources.sock"

    async def __aenter__(self) -> "Kubelet":
        self.device_plugins.mkdir()
        self._write_checkpoint()
        register = _handler(self._register, api.RegisterRequest, api.Empty)
        listing: Any = grpc.unary_unary_rpc_method_handler(self._list)
        socket = self.device_plugins / "kubelet.sock"
        await self._serve(socket, "v1beta1.Registration", {"Register": register})
        await self._serve(self.pod_resources, "v1.PodResourcesLister", {"List": listing})
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        for channel in self._channels:
            await channel.close()
        for server in self._servers:
            await server.stop(None)

    async def until_listed(self, seconds: float) -> None:
        """Returns once the devices are there. Raises ``TimeoutError``."""
        try:
            async with asyncio.timeout(seconds):
                await self._listed.wait()
        except TimeoutError:
            raise TimeoutError(f"the plugin did not list its devices within {seconds:g} s") from None

    async def admit(self, name: str, uid: str, units: int) -> float:
        """Has the plugin choose and allocate ``units``. Returns the milliseconds that both calls took.

        Raises:
            grpc.aio.AioRpcError: the plugin refuses.
        """
        self.pods[name] = Admitted(self._shown(name, ()))
        free = [unit for unit in self.devices if unit not in self._taken]
        wanted = api.ContainerPreferredAllocationRequest(available_deviceIDs=free, allocation_size=units)
        asked = api.PreferredAllocationRequest(container_requests=[wanted]).SerializeToString()
        begun = time.perf_counter()
        preferred = await self._call("GetPreferredAllocation", asked)
        choosing = time.perf_counter() - begun
        chosen = api.PreferredAllocationResponse.FromString(preferred).container_responses[0].deviceIDs
        container = api.ContainerAllocateRequest(devices_ids=chosen)
        allocate = api.AllocateRequest(container_requests=[container]).SerializeToString()
        begun = time.perf_counter()
        allocated = await self._call("Allocate", allocate)
        allocating = time.perf_counter() - begun
        answer = api.AllocateResponse.FromString(allocated).container_responses[0]
        self._taken.update(chosen)
        self.pods[name] = Admitted(self._shown(name, chosen), self._entry(uid, chosen, answer))
        self._write_checkpoint()
        return 1e3 * (choosing + allocating)

    async def _call(self, method: str, request: bytes) -> bytes:
        assert self._plugin is not None, "nobody has registered"
        call: Any = self._plugin.unary_unary(PLUGIN + method)
        answer: bytes = await call(request, timeout=CALL_SECONDS)
        return answer

    async def _register(self, request: api.RegisterRequest, _: Any) -> api.Empty:
        channel = grpc.aio.insecure_channel(f"unix://{self.device_plugins / request.endpoint}", LARGEST)
        self._channels.append(channel)
        async with asyncio.timeout(5):
            await channel.channel_ready()
        options: Any = channel.unary_unary(PLUGIN + "GetDevicePluginOptions")
        await options(b"", timeout=5)
        if request.resource_name == self.resource:
            self._plugin = channel
        self._watching.append(asyncio.create_task(self._watch(channel, request.resource_name)))
        return api.Empty()

    async def _watch(self, channel: grpc.aio.Channel, resource: str) -> None:
        listen: Any = channel.unary_stream(PLUGIN + "ListAndWatch")
        stream = listen(b"")
        with suppress(grpc.aio.AioRpcError):  # the plugin has ended
            async for message in stream:
                listed = api.ListAndWatchResponse.FromString(message)
                if resource == self.resource:
                    self.devices = tuple(device.ID for device in listed.devices if device.health == "Healthy")
                    self._registered = msgspec.json.encode(self.devices)
                    self._listed.set() if self.devices else self._listed.clear()

    async def _list(self, _: bytes, __: Any) -> bytes:
        return b"".join(pod.listed for pod in self.pods.values())

    def _shown(self, name: str, units: Iterable[str]) -> bytes:
        """One answer that has only this pod: answers one after the other are one that has all pods."""
        held = [
            resources.ContainerDevices(resource_name=self.resource, device_ids=[unit])
            for unit in sorted(units, key=hash)  # the real one lists them in no order
        ]
        container = resources.ContainerResources(name="main", devices=held)
        pod = resources.PodResources(name=name, namespace="default", containers=[container])
        answer: bytes = resources.ListPodResourcesResponse(pod_resources=[pod]).SerializeToString()
        return answer

    def _entry(self, uid: str, units: Iterable[str], answer: Any) -> bytes:
        entry = {
            "PodUID": uid,
            "ContainerName": "main",
            "ResourceName": self.resource,
            "DeviceIDs": {"-1": [*units]},
            "AllocResp": base64.b64encode(answer.SerializeToString()).decode(),
        }
        return msgspec.json.encode(entry)

    def _write_checkpoint(self) -> None:
        entries = b",".join(pod.stored for pod in self.pods.values() if pod.stored)
        written = self.device_plugins / "new"
        written.write_bytes(
            b'{"Data":{"PodDeviceEntries":[%s],"RegisteredDevices":{"%s":%s}},"Checksum":1}'
            % (entries, self.resource.encode(), self._registered)
        )
        written.rename(self.device_plugins / "kubelet_internal_checkpoint")

    async def _serve(self, socket: Path, service: str, handlers: dict[str, Any]) -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        server.add_insecure_port(f"unix://{socket}")
        await server.start()
        self._servers.append(server)


def _handler(answer: Callable[..., Any], request: type[Any], response: type[Any]) -> Any:
    return grpc.unary_unary_rpc_method_handler(answer, request.FromString, response.SerializeToString)
