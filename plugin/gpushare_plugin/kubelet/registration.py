"""Registration with the kubelet, kept up over restarts of the kubelet and absences of any length."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

import grpc
import grpc.aio

from gpushare_core.kube.backoff import Backoff
from gpushare_plugin.decide.report.conditions import RegistrationState
from gpushare_plugin.kubelet.device_stream import DeviceStream
from gpushare_plugin.kubelet.plugin_server import PluginServer
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api

KUBELET_SOCKET = "kubelet.sock"
API_VERSION = "v1beta1"
REGISTER = "/v1beta1.Registration/Register"

CONNECT_TIMEOUT = 5.0
"""Seconds."""
REGISTER_TIMEOUT = 15.0
"""Seconds; the kubelet dials back within the call and gives that 10."""
STREAM_TIMEOUT = 10.0
"""Seconds after a registration within which the kubelet calls ListAndWatch."""
WATCHDOG_PERIOD = 2.0
"""Seconds between looks at our own socket."""
STABLE_AFTER = 10.0
"""Seconds after which a registration counts as one that lasted."""

_CONNECT_OPTIONS = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000))

_log = logging.getLogger(__name__)


class KubeletUnreachableError(Exception):
    """The kubelet is away, or refused the registration."""


class DisplacedError(Exception):
    """Another plugin has registered on this node since."""


class Registrar:
    """Keeps ``server`` registered with the kubelet in whose folder its socket lies.

    A starting kubelet removes all plugins' sockets before it listens on its own. So the order is always:
    reach the kubelet, then make sure that our socket is there, then register. Of two plugins on a node, as
    when it moves to another policy, the newer one serves.
    """

    def __init__(
        self,
        server: PluginServer,
        *,
        resource: str,
        stream: DeviceStream,
        notify: Callable[[], None],
        backoff: Backoff | None = None,
    ) -> None:
        """``notify`` is called when ``state`` has changed."""
        self._kubelet = server.socket.parent / KUBELET_SOCKET
        self._server = server
        self._resource = resource
        self._stream = stream
        self._notify = notify
        self._backoff = backoff or Backoff(most=5.0)
        self.state = RegistrationState(registered=False, message="not registered with the kubelet yet")

    async def run(self) -> None:
        """Never returns; when cancelled, leaves nothing behind in the kubelet's directory."""
        try:
            while True:
                await self._wait_until(lambda: self._stream.is_offering)  # else it is another plugin's affair
                await self._register_and_stay()
                await self._backoff.wait()
        finally:
            await self._server.stop()

    async def _register_and_stay(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            await self._register()
        except (KubeletUnreachableError, grpc.aio.AioRpcError, TimeoutError, OSError) as error:
            self._set_state(RegistrationState(registered=False, message=_message(error)))
            return
        except DisplacedError as error:
            self._set_state(RegistrationState(registered=False, message=str(error), displaced=True))
            return
        since = loop.time()
        self._set_state(RegistrationState(registered=True))
        self._set_state(RegistrationState(registered=False, message=await self._wait_until_lost()))
        if loop.time() - since > STABLE_AFTER:
            self._backoff.reset()

    async def _register(self) -> None:
        if not self._kubelet.exists():
            raise KubeletUnreachableError(f"{self._kubelet} does not exist: is the kubelet running?")
        async with grpc.aio.insecure_channel(f"unix://{self._kubelet}", options=_CONNECT_OPTIONS) as channel:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await channel.channel_ready()
            if await self._server.is_displaced():
                raise DisplacedError("another plugin serves this node; standing by until it leaves")
            await self._server.ensure_reachable()
            register = channel.unary_unary(
                REGISTER,
                request_serializer=api.RegisterRequest.SerializeToString,
                response_deserializer=api.Empty.FromString,
            )
            before = self._stream.opened
            with self._server.new_endpoint() as endpoint:  # the kubelet connects to it before answering
                await register(self._request(endpoint), timeout=REGISTER_TIMEOUT)
        async with asyncio.timeout(STREAM_TIMEOUT):  # it may have ended by now: that is a loss to notice
            await self._wait_until(lambda: self._stream.opened > before)

    def _request(self, endpoint: str) -> api.RegisterRequest:
        return api.RegisterRequest(
            version=API_VERSION,
            endpoint=endpoint,
            resource_name=self._resource,
            options=api.DevicePluginOptions(get_preferred_allocation_available=True),
        )

    async def _wait_until_lost(self) -> str:
        """Returns why, when the kubelet stops listening to us or cannot reach us any more."""
        while self._stream.is_open:
            if not self._server.is_reachable:
                return f"{self._server.socket} was removed"
            with suppress(TimeoutError):
                async with asyncio.timeout(WATCHDOG_PERIOD):
                    await self._stream.changed()
        return "the kubelet closed the list of devices: it restarts, or somebody else registered"

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._stream.changed()

    def _set_state(self, state: RegistrationState) -> None:
        if state != self.state:
            self.state = state
            text = "registered" if state.registered else f"not registered: {state.message}"
            _log.info("%s %s", self._resource, text)
            self._notify()


def _message(error: Exception) -> str:
    if isinstance(error, grpc.aio.AioRpcError):
        return f"the kubelet refused: {error.details()}"
    return str(error) or "the kubelet does not answer on its socket"
