"""The auditor asks an extender that is killed meanwhile."""

import gc
import socket
import ssl
import struct

import pytest
from chaos.audit.extender_book import encrypted

RESET_AT_ONCE = struct.pack("ii", 1, 0)


def test_a_connection_that_is_reset_leaves_no_socket_open() -> None:
    """Else a ResourceWarning, which is an error in tests."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=30) as plain,
    ):
        accepted, _ = server.accept()
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_ONCE)
        accepted.close()
        with pytest.raises(OSError, match=r"not connected|reset"):
            encrypted(plain, ssl.create_default_context())
    gc.collect()
