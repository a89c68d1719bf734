"""The internals of libraries that the extender's transport uses are there in the installed versions."""

from asyncio.sslproto import SSLProtocol

import pytest
from jh2.connection import H2Connection

from gpushare_extender.transport.http2_frames import ServerFrames
from gpushare_extender.transport.tls_buffers import use_small_tls_buffers

LOOK_AT = "has changed: adapt gpushare_extender/transport/"


@pytest.mark.parametrize(
    "name", ["_receive_headers_frame", "MAX_CLOSED_STREAMS", "receive_data", "increment_flow_control_window"]
)
def test_of_jh2_what_server_frames_overrides_is_there(name: str) -> None:
    assert hasattr(H2Connection, name), f"jh2's H2Connection.{name} {LOOK_AT}http2_frames.py"


@pytest.mark.parametrize(
    ("name", "kind"), [("_data", bytearray), ("_headers_buffer", list)], ids=["frame", "headers"]
)
def test_of_jh2_the_buffer_of_partial_frames_is_there(name: str, kind: type) -> None:
    buffer = ServerFrames().incoming_buffer
    assert isinstance(getattr(buffer, name, None), kind), f"jh2's FrameBuffer.{name} {LOOK_AT}http2_frames.py"


@pytest.mark.parametrize(
    "name",
    ["local_settings", "max_inbound_frame_size", "decoder", "highest_inbound_stream_id"],
)
def test_of_jh2_what_server_frames_sets_and_reads_is_there(name: str) -> None:
    assert hasattr(ServerFrames(), name), f"jh2's H2Connection.{name} {LOOK_AT}http2_frames.py"


def test_jh2_calls_what_server_frames_overrides() -> None:
    handler = ServerFrames()._frame_dispatch_table  # by type of frame
    assert ServerFrames._receive_headers_frame in {method.__func__ for method in handler.values()}, (
        f"jh2's dispatch of HEADERS frames {LOOK_AT}http2_frames.py"
    )


def test_of_asyncio_the_size_of_tls_buffers_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    size = SSLProtocol.__dict__.get("max_size")
    assert isinstance(size, int), f"asyncio's SSLProtocol.max_size {LOOK_AT}tls_buffers.py"
    monkeypatch.setattr(SSLProtocol, "max_size", size)
    use_small_tls_buffers()
    assert SSLProtocol.max_size < size, f"asyncio's SSLProtocol.max_size {LOOK_AT}tls_buffers.py"
