"""The gRPC server of the device plugin on its own socket in the kubelet's folder."""

from pathlib import Path

import grpc
import grpc.aio


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

    async def ensure_reachable(self) -> None:
        """Starts it, again where the socket is gone or somebody else's."""
        if self.is_reachable:
            return
        await self.stop()
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((self._handler,))
        server.add_insecure_port(f"unix://{self.socket}")
        await server.start()
        self._server, self._inode = server, self.socket.stat().st_ino

    async def stop(self) -> None:
        """Leaves no socket behind."""
        if self._server is not None:
            await self._server.stop(grace=None)
        self._server = None
        self.socket.unlink(missing_ok=True)
