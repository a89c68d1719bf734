"""Asking what listens on the loopback address of a local cluster's node."""

import ctypes
import http.client
import os
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

TIMEOUT = 20.0
"""Seconds: a kube-scheduler of thousands of nodes shows megabytes."""
CLONE_NEWNET = 0x40000000
NO_HEADERS: Mapping[str, str] = {}


def read(
    pid: int,
    port: int,
    path: str,
    *,
    tls: ssl.SSLContext | None = None,
    headers: Mapping[str, str] = NO_HEADERS,
) -> bytes:
    """Returns what is answered at ``path`` in the network of process ``pid``; without ``tls`` in plain HTTP.

    Raises:
        OSError, HTTPException: nobody answers, or not with 200.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    with inside_network(pid):
        plain = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT)
    connection.sock = tls.wrap_socket(plain, server_hostname="127.0.0.1") if tls else plain
    try:
        connection.request("GET", path, headers=dict(headers))
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise OSError(f"port {port}{path} answers {answer.status}: {content[:200].decode(errors='replace')}")
    return content


def trusting_anybody() -> ssl.SSLContext:
    """For kube-scheduler, which signs its certificate itself at every start."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextmanager
def inside_network(pid: int) -> Iterator[None]:
    """This thread is in the network of process ``pid`` while entered: sockets made there stay there."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open() as own, Path(f"/proc/{pid}/ns/net").open() as other:
        _enter(libc, other.fileno())
        try:
            yield
        finally:
            _enter(libc, own.fileno())


def _enter(libc: ctypes.CDLL, namespace: int) -> None:
    if libc.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
