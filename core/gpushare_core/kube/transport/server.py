"""A server that speaks HTTP/1.1: its address, and the bytes of a request to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from gpushare_core.kube.server_url import checked_server
from gpushare_core.kube.tls import TlsSource

_PATH = "/%:@!$&'()*+,;=~"
"""Characters that stay as they are in a path; callers quote names themselves."""


@dataclass(frozen=True, slots=True)
class HttpServer:
    """Where it listens, and how it is recognized."""

    host: str
    port: int
    authority: str
    """The header ``Host`` of a request."""
    folder: str = ""
    """Where all paths begin."""
    tls: TlsSource | None = None
    name: str | None = None
    """What the server's certificate has to name, where that is not ``host``."""

    @classmethod
    def at(cls, url: str, tls: TlsSource, name: str | None = None) -> "HttpServer":
        """Raises ``ValueError`` for what is no URL of a server."""
        host, parts = checked_server(url)
        is_encrypted = parts.scheme == "https"
        return cls(
            host=host,
            port=parts.port or (443 if is_encrypted else 80),
            authority=parts.netloc.rpartition("@")[2],
            folder=parts.path.rstrip("/"),
            tls=tls if is_encrypted else None,
            name=name if is_encrypted else None,
        )

    def message(self, method: str, target: str, headers: Mapping[str, str], content: bytes | None) -> bytes:
        """Returns the bytes of a request. ``target`` is a path, with a query or without.

        Raises:
            ValueError: a header is more than one line.
        """
        path, mark, query = target.partition("?")
        length = {} if content is None else {"Content-Length": str(len(content))}
        lines = [
            f"{method} {self.folder}{quote(path, safe=_PATH)}{mark}{query} HTTP/1.1",
            *(f"{name}: {value}" for name, value in {"Host": self.authority, **headers, **length}.items()),
        ]
        text = "\r\n".join(lines)
        if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1:
            raise ValueError("a header has to be one line")
        return text.encode() + b"\r\n\r\n" + (content or b"")
