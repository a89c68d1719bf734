"""The client of a cluster's supervisor: HTTP on a Unix socket."""

import http.client
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpushare_localcluster.errors import LocalClusterError, NotRunningError

# Much longer than the supervisor waits for a node to shut down: the machine may be busy.
TIMEOUT_SECONDS = 180.0
# The apiserver and the controller manager end, one after the other, and come again.
UPGRADE_SECONDS = 300.0


@dataclass(frozen=True)
class MachineStatus:
    """A node as a machine.

    `pid` is that of its process 1 within the cluster, 0 while it is off. `failure` says why it went off
    unasked.
    """

    name: str
    address: str
    control_plane: bool
    pid: int
    failure: str

    @property
    def is_on(self) -> bool:
        return self.pid != 0


@dataclass(frozen=True)
class ClusterStatus:
    """The state of a cluster, with PIDs by component; it is ready when `missing` is empty."""

    missing: Sequence[str]
    components: Mapping[str, int]
    nodes: Sequence[MachineStatus]

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "ClusterStatus":
        return cls(
            missing=content["missing"],
            components=content["components"],
            nodes=[
                MachineStatus(
                    name=node["name"],
                    address=node["address"],
                    control_plane=node["controlPlane"],
                    pid=node["pid"],
                    failure=node["failure"],
                )
                for node in content["nodes"]
            ],
        )


class SupervisorClient:
    """A client of the socket at `path`. Methods raise NotRunningError when nobody listens there."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def status(self) -> ClusterStatus:
        return ClusterStatus.from_json(json.loads(self._request("GET", "/status")))

    def post(
        self, path: str, content: Mapping[str, Any] | None = None, *, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        """Sends a command. Raises LocalClusterError with the supervisor's reason if it is refused."""
        body = json.dumps(content) if content is not None else None
        self._request("POST", path, body=body, timeout=timeout)

    def _request(
        self, method: str, path: str, *, body: str | None = None, timeout: float = TIMEOUT_SECONDS
    ) -> bytes:
        connection = _UnixConnection(self._path, timeout)
        try:
            connection.request(method, path, body=body)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise NotRunningError(f"no cluster is running in {self._path.parent} ({error})") from error
        finally:
            connection.close()
        if response.status >= http.client.BAD_REQUEST:
            raise LocalClusterError(content.decode().strip())
        return content


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localcluster", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))
