"""A kubelet that runs kube-scheduler as an HTTPS server in a thread, a new one for each manifest."""

import re
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from tests.samples.hostctl import DATA


class HttpsServer:
    """One process of kube-scheduler: answers each path with its status, shows certificate 1 or 2."""

    def __init__(self, *, port: int = 0, process: int = 1, statuses: dict[str, int]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(statuses.get(self.path, 404))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Keep the test's output readable."""

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(DATA / f"process-{process}.pem")
        self._server = HTTPServer(("127.0.0.1", port), Handler)
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Kubelet:
    """Starts another process of kube-scheduler for every change of the manifest, unless that is broken."""

    def __init__(self, path: Path, *, port: int) -> None:
        self._path = path
        self._port = port
        self._stop = threading.Event()
        self._server: HttpsServer | None = None
        self._running = b""
        self._process = 0
        self.broken = b"never"
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.02):
            content = self._path.read_bytes()
            if content != self._running:
                self._restart(content)
        self._end()

    def _restart(self, content: bytes) -> None:
        self._end()
        self._running = content
        self._process += 1
        for path in re.findall(rb"--config=/(\S+)", content)[-1:]:
            (self._path.parents[3] / path.decode()).read_bytes()
        if self.broken not in content:
            process = 1 + self._process % 2
            self._server = HttpsServer(port=self._port, process=process, statuses={"/readyz": 200})

    def _end(self) -> None:
        if self._server:
            self._server.stop()
            self._server = None

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def free_port() -> int:
    """A port of the loopback address where nobody listens."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
