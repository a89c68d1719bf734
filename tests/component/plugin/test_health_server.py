"""Liveness and readiness are answered over HTTP."""

import asyncio

import pytest

from gpushare_core.health_server import HealthServer, text_page

PAGES = {"/healthz": text_page(lambda: ""), "/readyz": text_page(lambda: "waiting")}


async def call(port: int, request: bytes) -> str:
    async with asyncio.timeout(30):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        await writer.drain()
        answer = await reader.read()
        writer.close()
        return answer.decode()


@pytest.mark.parametrize(
    ("request_line", "status", "body"),
    [
        pytest.param("GET /healthz HTTP/1.1", "200 OK", "ok", id="well"),
        pytest.param("GET /readyz?verbose HTTP/1.1", "503 Service Unavailable", "waiting", id="not ready"),
        pytest.param("GET /secret HTTP/1.1", "404 Not Found", "ask for /healthz or /readyz", id="elsewhere"),
        pytest.param("POST /healthz HTTP/1.1", "404 Not Found", "ask for", id="another verb"),
        pytest.param("hello", "404 Not Found", "ask for", id="no HTTP at all"),
    ],
)
async def test_probes_are_answered_over_http(request_line: str, status: str, body: str) -> None:
    async with HealthServer(0, PAGES, host="127.0.0.1") as server:
        answer = await call(server.port, f"{request_line}\r\nHost: x\r\n\r\n".encode())
    head, _, content = answer.partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status}\r\n")
    assert content.startswith(body)


async def test_an_endless_request_is_cut_off() -> None:
    async with HealthServer(0, {}, host="127.0.0.1") as server:
        assert await call(server.port, b"x" * 20_000 + b"\r\n\r\n") == ""
