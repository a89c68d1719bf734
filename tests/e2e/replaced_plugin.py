"""A stand-in for the device plugin of Aliyun's gpushare, as far as a kubelet sees it.

``replaced_plugin.py CARDS UNITS [INDEX ...]``: registers ``aliyun.com/gpu-mem`` with ``CARDS`` times
``UNITS`` devices ``<UUID>-_-<n>`` and gives one container after the other the card ``INDEX``. Without
preferences, as that plugin: the kubelet takes any devices. Ends when its standard input does.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api

FOLDER = Path("/var/lib/kubelet/device-plugins")
SOCKET = FOLDER / "aliyungpushare.sock"
RESOURCE = "aliyun.com/gpu-mem"


class Plugin:
    """What the kubelet calls."""

    def __init__(self, cards: int, units: int, indexes: Iterator[str]) -> None:
        self._ids = [f"GPU-{card:08d}-_-{number}" for card in range(cards) for number in range(units)]
        self._units = units
        self._indexes = indexes

    async def options(self, _: api.Empty, __: Any) -> api.DevicePluginOptions:
        return api.DevicePluginOptions()

    async def list_and_watch(self, _: api.Empty, __: Any) -> AsyncIterator[api.ListAndWatchResponse]:
        devices = [api.Device(ID=identifier, health="Healthy") for identifier in self._ids]
        yield api.ListAndWatchResponse(devices=devices)
        await asyncio.Event().wait()

    async def allocate(self, request: api.AllocateRequest, _: Any) -> api.AllocateResponse:
        (container,) = request.container_requests
        index, units = next(self._indexes), str(len(container.devices_ids))
        variables = {
            "NVIDIA_VISIBLE_DEVICES": index,
            "ALIYUN_COM_GPU_MEM_IDX": index,
            "ALIYUN_COM_GPU_MEM_POD": units,
            "ALIYUN_COM_GPU_MEM_CONTAINER": units,
            "ALIYUN_COM_GPU_MEM_DEV": str(self._units),
        }
        return api.AllocateResponse(container_responses=[api.ContainerAllocateResponse(envs=variables)])

    def handler(self) -> grpc.GenericRpcHandler:
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        answer = api.ListAndWatchResponse.SerializeToString
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "GetDevicePluginOptions": unary(
                self.options, api.Empty.FromString, api.DevicePluginOptions.SerializeToString
            ),
            "ListAndWatch": stream(self.list_and_watch, api.Empty.FromString, answer),
            "Allocate": unary(
                self.allocate, api.AllocateRequest.FromString, api.AllocateResponse.SerializeToString
            ),
        }
        return grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", methods)


async def serve(plugin: Plugin) -> None:
    """Registers, says so, and stays until standard input ends."""
    SOCKET.unlink(missing_ok=True)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((plugin.handler(),))
    server.add_insecure_port(f"unix://{SOCKET}")
    await server.start()
    async with grpc.aio.insecure_channel(f"unix://{FOLDER / 'kubelet.sock'}") as channel:
        register = channel.unary_unary(
            "/v1beta1.Registration/Register",
            request_serializer=api.RegisterRequest.SerializeToString,
            response_deserializer=api.Empty.FromString,
        )
        named = api.RegisterRequest(version="v1beta1", endpoint=SOCKET.name, resource_name=RESOURCE)
        await register(named, timeout=240)
    sys.stdout.write("registered\n")
    sys.stdout.flush()
    await asyncio.to_thread(os.read, sys.stdin.fileno(), 1)
    await server.stop(grace=None)
    SOCKET.unlink(missing_ok=True)  # its name has ours in it: other modules look for what we leave


def main() -> None:
    cards, units, *indexes = sys.argv[1:]
    asyncio.run(serve(Plugin(int(cards), int(units), iter(indexes))))


if __name__ == "__main__":
    main()
