"""The gRPC server of the device plugin on its own socket in the kubelet's folder."""

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import grpc.aio

from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api

OPTIONS = "/v1beta1.DevicePlugin/GetDevicePluginOptions"
"""The call that costs least."""
ANSWER_TIMEOUT = 5.0
"""Seconds."""


class PluginServer:
    """Serves ``handler`` on ``socket``. The kubelet may remove the socket at any time."""

    def __init__(self, socket: Path, handler: grpc.GenericRpcHandler) -> None:
        self.socket = socket
        self._handler = handler
        self._server: grpc.aio.Server | None = None
        self._inode = 0

    @property
    def is_reachable(self) -> bool:
        """Whether it serves, and the socket is still the one that it made."""
        try:
            return self._server is not None and self.socket.stat().st_ino == self._inode
        except OSError:
            return False

    async def is_displaced(self) -> bool:
        """Whether another process serves on the socket since this one did."""
        if self._server is None or self.is_reachable or not self.socket.exists():
            return False
        try:
            _, writer = await asyncio.open_unix_connection(self.socket)
        except OSError:  # it was killed and left its socket behind
            return False
        writer.close()
        return True

    async def answers(self) -> bool:
        """Whether a call is answered, as the kubelet would hear it; true where there is nothing to call."""
        if not self.is_reachable:
            return True
        async with grpc.aio.insecure_channel(f"unix://{self.socket}") as channel:
            options = channel.unary_unary(
                OPTIONS,
                request_serializer=api.Empty.SerializeToString,
                response_deserializer=api.DevicePluginOptions.FromString,
            )
            try:
                await options(api.Empty(), timeout=ANSWER_TIMEOUT)
            except grpc.aio.AioRpcError:
                return not self.is_reachable
        return True

    async def ensure_reachable(self) -> None:
        """Starts it, anew where the socket is gone or somebody else's. Raises ``OSError``."""
        if self.is_reachable:
            return
        await self.stop()
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((self._handler,))
        # gRPC unlinks the path that it was given when it stops, whoever has a socket there by then. So it is
        # given another one, and the socket is moved to where the kubelet looks for it.
        own = self._new_path()
        try:
            server.add_insecure_port(f"unix://{own}")
        except RuntimeError as error:
            folder = own.parent
            raise OSError(f"cannot listen on {own}: is {folder} there, and has its disk room?") from error
        await server.start()
        self._server, self._inode = server, own.stat().st_ino
        own.rename(self.socket)

    @contextmanager
    def new_endpoint(self) -> Iterator[str]:
        """Gives the socket a second name, for one registration. Raises ``OSError``.

        The kubelet of Kubernetes 1.37 tells connections of a resource apart by the names of their sockets. If
        one ends while the next one of the same name begins, the kubelet forgets that it is connected to the
        next one, and refuses that name from then on. It takes no second connection of a name that it is
        connected to, either. Source: ``runClient`` and ``PluginConnected`` of its device manager.
        """
        endpoint = self._new_path()
        endpoint.hardlink_to(self.socket)
        try:
            yield endpoint.name
        finally:
            endpoint.unlink(missing_ok=True)

    def _new_path(self) -> Path:
        return self.socket.with_name(f".gpushare-{secrets.token_hex(4)}")

    async def stop(self) -> None:
        """Leaves no socket of its own behind, and another plugin's alone."""
        if self.is_reachable:
            self.socket.unlink(missing_ok=True)
        if self._server is not None:
            await self._server.stop(grace=None)
        self._server = None
