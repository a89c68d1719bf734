"""A request and its response, whichever version of HTTP carries them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import msgspec

from gpushare_core import health_server
from gpushare_core.text.printable import printable

ENCODER = msgspec.json.Encoder()

Response = health_server.Response


@dataclass(frozen=True, slots=True)
class Request:
    """A request that has come in full. ``path`` is as the client sent it, without the query."""

    method: str
    path: str
    content: bytes = b""
    port: int = 0
    """The local port it came in on."""
    client_authenticated: bool = False
    """Whether the client has a certificate of our authority."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return unquote(self.path.rpartition("/")[2])


Handler = Callable[[Request], Response | Awaitable[Response]]
"""Responds at once where it need not wait: an asyncio task costs more than many a response. An exception
means a defect."""


def json_response(content: Any, *, status: int = HTTPStatus.OK) -> Response:
    """In one piece: after a chunked response kube-scheduler closes the connection."""
    return Response(ENCODER.encode(content), status)


def error_response(message: str, status: int) -> Response:
    return json_response({"error": printable(message)}, status=status)
