"""A registry of images on the loopback address, as far as its API v2 tells which manifest a tag names.

Source: https://distribution.github.io/distribution/spec/api/
"""

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
TOKEN = "a-token"  # noqa: S105 - opens nothing


def index(*platforms: str, note: str = "") -> bytes:
    """Returns the manifest of an image for ``platforms``, and of what attests to where it comes from."""
    listed = [dict(zip(("os", "architecture"), platform.split("/"), strict=True)) for platform in platforms]
    manifests = [
        {"digest": f"sha256:{number}", "platform": platform} for number, platform in enumerate(listed)
    ]
    return json.dumps(
        {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": manifests, "annotations": {"note": note}}
    ).encode()


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@dataclass
class Registry:
    """``manifests``: path -> content."""

    manifests: dict[str, bytes] = field(default_factory=dict)
    wants_token: bool = False
    refuses_with: int = 0
    challenge: str = 'Bearer realm="{address}/token",service="registry.test",scope="repository:{scope}:pull"'
    told: str = ""
    """Instead of the digest."""
    redirects_to: str = ""
    asked: list[str] = field(default_factory=list)
    address: str = ""

    @property
    def host(self) -> str:
        return self.address.removeprefix("http://")


@contextlib.contextmanager
def serving(registry: Registry) -> Iterator[Registry]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            registry.asked.append(self.path)
            status, headers, content = _answer(registry, self.path, self.headers)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing: it is no test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(registry: Registry, path: str, headers: Any) -> tuple[int, dict[str, str], bytes]:
    if path.startswith("/token?"):
        return 200, {}, json.dumps({"token": TOKEN}).encode()
    if registry.redirects_to:
        return 302, {"Location": registry.redirects_to}, b""
    if registry.refuses_with:
        return registry.refuses_with, {}, b"no"
    if registry.wants_token and headers.get("Authorization") != f"Bearer {TOKEN}":
        scope = path.removeprefix("/v2/").partition("/manifests/")[0]
        challenge = registry.challenge.format(address=registry.address, scope=scope)
        return 401, {"WWW-Authenticate": challenge}, b"{}"
    content = registry.manifests.get(path)
    if content is None or INDEX_TYPE not in headers.get("Accept", ""):
        return 404, {}, b"{}"
    return (
        200,
        {"Content-Type": INDEX_TYPE, "Docker-Content-Digest": registry.told or digest_of(content)},
        content,
    )
