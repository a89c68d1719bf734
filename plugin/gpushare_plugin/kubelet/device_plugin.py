"""The device plugin API v1beta1 over gRPC."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

from gpushare_core.text.printable import REFUSAL_BYTES, printable
from gpushare_plugin.decide.admit.injection import ContainerAnswer
from gpushare_plugin.decide.admit.preferred_allocation import NothingFitsError, PreferenceRequest
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.isolation.folder import IsolationFilesError
from gpushare_plugin.kubelet.allocator import Allocator, NothingOfferedError
from gpushare_plugin.kubelet.device_stream import DeviceStream
from gpushare_plugin.kubelet.kubelet_requests import KubeletRequests
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api
from gpushare_plugin.kubelet.wire import preference_requests

SERVICE = "v1beta1.DevicePlugin"

ALLOCATE = "Allocate"
PREFERRED_ALLOCATION = "GetPreferredAllocation"
REFUSALS: Mapping[type[Exception], str] = {
    NothingFitsError: "NothingFits",
    NothingOfferedError: "NotServed",
    UnusableUnitsError: "UnusableUnits",
    IsolationFilesError: "IsolationFiles",
    TimeoutError: "TooLate",
}
"""The error -> its reason in metrics."""
ANSWER_SECONDS = 12.0
"""For one call. The kubelet sets no deadline, and starts no pod on its node while it waits."""
TOO_LATE_MESSAGE = (
    f"the gpushare plugin found no answer within {ANSWER_SECONDS:g} s; its log says what it waited for"
)
DEFECT = "Error"
"""The reason of any other error."""

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletRequest:
    """One call that was answered."""

    verb: str
    seconds: float
    refusal: str
    """One of ``REFUSALS`` or ``DEFECT``; empty where the kubelet got what it asked for."""


class DevicePlugin:
    """What the kubelet calls. Refusals reach the user as the reason of the failed pod."""

    def __init__(
        self,
        allocator: Allocator,
        stream: DeviceStream,
        *,
        calls: KubeletRequests,
        called: Callable[[KubeletRequest], None] = lambda _: None,
        clock: Callable[[], float] = time.perf_counter,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """``calls``: where those that take units count as under way. ``called`` is called after each;
        ``clock`` is in steady seconds."""
        self._allocator = allocator
        self._stream = stream
        self._calls = calls
        self._called = called
        self._clock = clock
        self._answer_seconds = answer_seconds

    async def options(self, _: api.Empty, __: Context) -> api.DevicePluginOptions:
        """GetDevicePluginOptions: we want to be asked which units to take."""
        return api.DevicePluginOptions(get_preferred_allocation_available=True)

    async def list_and_watch(self, _: api.Empty, context: Context) -> None:
        """ListAndWatch: writes the list of devices, encoded, whenever it changes. Never returns.

        gRPC would keep the last message that a generator gives it.
        """
        async with aclosing(self._stream.serve()) as messages:
            async for message in messages:
                await context.write(message)
                del message

    async def preferred_allocation(
        self, request: Sequence[PreferenceRequest], context: Context
    ) -> api.PreferredAllocationResponse:
        """GetPreferredAllocation: which units the kubelet shall take. Refuses with RESOURCE_EXHAUSTED."""
        async with self._answering(PREFERRED_ALLOCATION, context, grpc.StatusCode.RESOURCE_EXHAUSTED):
            ids = [await self._allocator.prefer(container) for container in request]
        responses = [api.ContainerPreferredAllocationResponse(deviceIDs=identifier) for identifier in ids]
        return api.PreferredAllocationResponse(container_responses=responses)

    async def allocate(self, request: api.AllocateRequest, context: Context) -> api.AllocateResponse:
        """Allocate: what comes with the units that the kubelet took. Refuses with FAILED_PRECONDITION."""
        async with self._answering(ALLOCATE, context, grpc.StatusCode.FAILED_PRECONDITION):
            asked = (container_request.devices_ids for container_request in request.container_requests)
            answers = [await self._allocator.allocate(ids) for ids in asked]
        return api.AllocateResponse(container_responses=[_response(answer) for answer in answers])

    @asynccontextmanager
    async def _answering(self, verb: str, context: Context, code: grpc.StatusCode) -> AsyncIterator[None]:
        """While entered a request is under way. It is refused with ``code``, or where it takes too long."""
        begun, refusal = self._clock(), ""
        try:
            with self._calls.one():
                async with asyncio.timeout(self._answer_seconds):
                    yield
        except Exception as error:
            refusal = REFUSALS.get(type(error), DEFECT)
            if isinstance(error, TimeoutError):
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, TOO_LATE_MESSAGE)
            if refusal == DEFECT:
                raise
            # The kubelet puts it into the status of the pod.
            await context.abort(code, printable(str(error), max_bytes=REFUSAL_BYTES))
        finally:
            self._called(KubeletRequest(verb=verb, seconds=self._clock() - begun, refusal=refusal))

    async def pre_start(self, _: api.PreStartContainerRequest, __: Context) -> api.PreStartContainerResponse:
        """PreStartContainer: never called, because the options do not ask for it."""
        return api.PreStartContainerResponse()


def _response(answer: ContainerAnswer) -> api.ContainerAllocateResponse:
    nodes, mounts = answer.device_nodes, answer.mounts
    return api.ContainerAllocateResponse(
        envs=answer.variables,
        devices=[
            api.DeviceSpec(
                container_path=node.container_path, host_path=node.host_path, permissions=node.permissions
            )
            for node in nodes
        ],
        mounts=[
            api.Mount(
                container_path=mount.container_path, host_path=mount.host_path, read_only=mount.read_only
            )
            for mount in mounts
        ],
        cdi_devices=[api.CDIDevice(name=cdi_device) for cdi_device in answer.cdi_devices],
    )


def grpc_handler(plugin: DevicePlugin) -> grpc.GenericRpcHandler:
    """Returns what a gRPC server serves ``plugin`` by; lists of devices pass as the bytes that they are."""
    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            "GetDevicePluginOptions": grpc.unary_unary_rpc_method_handler(
                plugin.options, api.Empty.FromString, api.DevicePluginOptions.SerializeToString
            ),
            "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                plugin.list_and_watch, api.Empty.FromString, None
            ),
            "GetPreferredAllocation": grpc.unary_unary_rpc_method_handler(
                plugin.preferred_allocation,
                preference_requests,
                api.PreferredAllocationResponse.SerializeToString,
            ),
            "Allocate": grpc.unary_unary_rpc_method_handler(
                plugin.allocate, api.AllocateRequest.FromString, api.AllocateResponse.SerializeToString
            ),
            "PreStartContainer": grpc.unary_unary_rpc_method_handler(
                plugin.pre_start,
                api.PreStartContainerRequest.FromString,
                api.PreStartContainerResponse.SerializeToString,
            ),
        },
    )
