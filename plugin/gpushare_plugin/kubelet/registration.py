"""Registration with the kubelet, kept up over restarts of the kubelet and absences of any length."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import grpc.aio

from gpushare_core.kube.follow import Backoff
from gpushare_plugin.decide.conditions import Registration
from gpushare_plugin.kubelet.device_stream import DeviceStream
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api

KUBELET_SOCKET = "kubelet.sock"
API_VERSION = "v1beta1"
REGISTER = "/v1beta1.Registration/Register"

CONNECT_TIMEOUT = 5.0
REGISTER_TIMEOUT = 15.0
"""Seconds; the kubelet dials back within the call and gives that 10."""
STREAM_TIMEOUT = 10.0
WATCHDOG_PERIOD = 2.0
"""Seconds between looks at our own socket."""
STABLE_AFTER = 10.0
"""Seconds after which a registration counts as one that lasted."""

_CONNECT_OPTIONS = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000))

_log = logging.getLogger(__name__)


class KubeletUnreachableError(Exception):
    """The kubelet is away, or refused the registration."""


class Registrar:
    """Serves ``handler`` on a socket of its own and keeps it registered with the kubelet.

    A starting kubelet removes all plugins' sockets before it listens on its own. So the order is always:
    reach the kubelet, then make sure that our socket is there, then register.
    """

    def __init__(
        self,
        *,
        directory: Path,
        endpoint: str,
        resource: str,
        handler: grpc.GenericRpcHandler,
        stream: DeviceStream,
        notify: Callable[[], None],
        backoff: Backoff | None = None,
    ) -> None:
        self._kubelet = directory / KUBELET_SOCKET
        self._socket = directory / endpoint
        self._resource = resource
        self._handler = handler
        self._stream = stream
        self._notify = notify
        self._backoff = backoff or Backoff(most=5.0)
        self._server: grpc.aio.Server | None = None
        self._inode = 0
        self.state = Registration(registered=False, message="not registered with the kubelet yet")

    async def run(self) -> None:
        """Never returns; when cancelled, leaves nothing behind in the kubelet's directory."""
        try:
            await self._until(lambda: self._stream.is_offering)
            while True:
                await self._register_and_stay()
                await self._backoff.pause()
        finally:
            await self._stop_serving()

    async def _register_and_stay(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await self._register()
        except (KubeletUnreachableError, grpc.aio.AioRpcError, TimeoutError, OSError) as error:
            self._tell(Registration(registered=False, message=_reason(error)))
            return
        since = loop.time()
        self._tell(Registration(registered=True))
        self._tell(Registration(registered=False, message=await self._lost()))
        if loop.time() - since > STABLE_AFTER:
            self._backoff.reset()

    async def _register(self) -> None:
        if not self._kubelet.exists():
            raise KubeletUnreachableError(f"{self._kubelet} does not exist: is the kubelet running?")
        async with grpc.aio.insecure_channel(f"unix://{self._kubelet}", options=_CONNECT_OPTIONS) as channel:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await channel.channel_ready()
            await self._ensure_serving()
            register = channel.unary_unary(
                REGISTER,
                request_serializer=api.RegisterRequest.SerializeToString,
                response_deserializer=api.Empty.FromString,
            )
            await register(self._request(), timeout=REGISTER_TIMEOUT)
        async with asyncio.timeout(STREAM_TIMEOUT):
            await self._until(lambda: self._stream.is_open)

    def _request(self) -> api.RegisterRequest:
        return api.RegisterRequest(
            version=API_VERSION,
            endpoint=self._socket.name,
            resource_name=self._resource,
            options=api.DevicePluginOptions(get_preferred_allocation_available=True),
        )

    async def _lost(self) -> str:
        """Wait until the kubelet stops listening to us, or cannot reach us any more; say which."""
        while self._stream.is_open:
            if not self._is_serving():
                return f"{self._socket} was removed"
            await _within(WATCHDOG_PERIOD, self._stream.changed())
        return "the kubelet closed the list of devices: it restarts, or somebody else registered"

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._stream.changed()

    def _tell(self, state: Registration) -> None:
        if state != self.state:
            self.state = state
            text = "registered" if state.registered else f"not registered: {state.message}"
            _log.info("%s %s", self._resource, text)
            self._notify()

    def _is_serving(self) -> bool:
        try:
            return self._server is not None and self._socket.stat().st_ino == self._inode
        except OSError:
            return False

    async def _ensure_serving(self) -> None:
        if self._is_serving():
            return
        await self._stop_serving()
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((self._handler,))
        server.add_insecure_port(f"unix://{self._socket}")
        await server.start()
        self._server, self._inode = server, self._socket.stat().st_ino

    async def _stop_serving(self) -> None:
        if self._server is not None:
            await self._server.stop(grace=None)
        self._server = None
        self._socket.unlink(missing_ok=True)


async def _within(seconds: float, something: Awaitable[None]) -> None:
    try:
        async with asyncio.timeout(seconds):
            await something
    except TimeoutError:
        return


def _reason(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"the kubelet refused: {error.details()}"
    return str(error) or "the kubelet does not answer on its socket"
