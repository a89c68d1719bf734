"""One look at the extender, the way kube-scheduler will call it."""

import contextlib
import http.client
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol
from urllib.parse import urlsplit

from gpushare_hostctl.decide.key_pairs import Keys

_TIMEOUT = 5.0
"""Seconds for each step."""

Answer = Literal["ready", "unready", "nobody", "stranger"]


@dataclass(frozen=True)
class ExtenderProbe:
    """What answers at the extender's address.

    ``unready``: the extender, which does not serve yet; ``nobody``: no answer; ``stranger``: something that
    does not know the keys. ``detail`` is the answer or the error, for people.
    """

    answer: Answer
    detail: str


class ExtenderProber(Protocol):
    """Looks at the extender once; whatever goes wrong is in the result."""

    def probe(self, url: str, keys: Keys) -> ExtenderProbe: ...


class HttpsExtenderProber:
    """Asks the extender's ``/readyz`` with the certificate of kube-scheduler."""

    def probe(self, url: str, keys: Keys) -> ExtenderProbe:
        """Returns who answers at ``url``, an https one."""
        parts = urlsplit(url)
        connection = http.client.HTTPSConnection(
            parts.hostname or "", parts.port or 443, timeout=_TIMEOUT, context=_context(keys)
        )
        try:
            connection.request("GET", "/readyz")
            response = connection.getresponse()
            return _judge(response.status)
        except (ssl.SSLError, http.client.HTTPException) as error:
            return ExtenderProbe("stranger", str(error) or type(error).__name__)
        except OSError as error:
            return ExtenderProbe("nobody", str(error) or type(error).__name__)
        finally:
            connection.close()


def _judge(status: int) -> ExtenderProbe:
    return ExtenderProbe("ready" if status == http.client.OK else "unready", f"HTTP {status}")


def _context(keys: Keys) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=keys.trusted_pem.decode())
    with _file_in_memory(keys.client.encode()) as path:
        context.load_cert_chain(path)
    return context


@contextlib.contextmanager
def _file_in_memory(content: bytes) -> Iterator[str]:
    """Lends a path to content that must not lie on a disk, because ssl takes no other."""
    descriptor = os.memfd_create("client.pem")
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
