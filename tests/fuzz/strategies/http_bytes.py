"""What may come on a connection to the extender: HTTP/1.1 well and badly said, and bytes that are none."""

import gzip
import zlib

from hypothesis import strategies as st
from tests.fuzz.strategies.odd_json import damaged

PATHS = (
    "/gpushare/filter",
    "/gpushare/prioritize",
    "/gpushare/preempt",
    "/gpushare/bind",
    "/gpushare/inspect",
    "/gpushare/inspect/n1",
    "/gpushare/inspect/%00%ff",
    "/gpushare-scheduler/inspect/n1",
    "/gpushare-scheduler/inspect/" + "x" * 9000,
    "/version",
    "/healthz",
    "/readyz",
    "/metrics",
    "/",
    "*",
    "http://elsewhere/gpushare/filter",
    "/gpushare/filter?x=" + "&a=b" * 2000,
    "/../../etc/passwd",
    "\N{PILE OF POO}",
)
METHODS = (
    "GET",
    "POST",
    "POST",
    "PUT",
    "HEAD",
    "OPTIONS",
    "CONNECT",
    "TRACE",
    "get",
    "P\0ST",
    "",
    "X" * 3000,
)
HEADERS = (
    "Host: x",
    "Content-Type: application/json",
    "Content-Length: -1",
    "Content-Length: 99999999999999999999",
    "Content-Length: 5\r\nContent-Length: 6",
    "Content-Length: 1e3",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: gzip",
    "Content-Encoding: gzip",
    "Content-Encoding: deflate",
    "Content-Encoding: br",
    "Expect: 100-continue",
    "Expect: magic",
    "Connection: close",
    "Connection: upgrade\r\nUpgrade: websocket",
    "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA",
    "Cookie: " + "a=b; " * 1000,
    "X: " + "y" * 9000,
    "X" * 9000 + ": y",
    "NoColon",
    " folded: x",
    "X: \xff\xfe",
    "Range: bytes=0-",
    "If-None-Match: *",
    "Accept: application/\N{SNOWMAN}",
)
BOMBS = (
    ("gzip", gzip.compress(b"[" * 30_000_000)),
    ("deflate", zlib.compress(b" " * 30_000_000)),
    ("gzip", gzip.compress(gzip.compress(b"{}"))),
    ("gzip", b"\x1f\x8b no gzip"),
)


def request(path: str, body: bytes, *headers: str, method: str = "POST") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", *headers]
    return "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + body


def sized(path: str, body: bytes, *headers: str) -> bytes:
    return request(path, body, f"Content-Length: {len(body)}", *headers)


def chunked(path: str, chunks: list[bytes]) -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks if chunk)
    return request(path, body + b"0\r\n\r\n", "Transfer-Encoding: chunked")


@st.composite
def requests(draw: st.DrawFn, bodies: st.SearchStrategy[bytes]) -> bytes:
    path, body = draw(st.sampled_from(PATHS)), draw(bodies)
    match draw(st.sampled_from(["sized", "chunked", "odd", "odd", "bomb"])):
        case "sized":
            return sized(path, body)
        case "chunked":
            content = chunked(path, [body[:7], body[7:]])
        case "bomb":
            encoding, bomb = draw(st.sampled_from(BOMBS))
            return sized(path, bomb, f"Content-Encoding: {encoding}")
        case _:
            headers = draw(st.lists(st.sampled_from(HEADERS), max_size=4))
            content = request(path, body, *headers, method=draw(st.sampled_from(METHODS)))
    return draw(damaged(content))


def conversations(bodies: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """All that comes on one connection: requests, one after the other, or anything."""
    return st.lists(requests(bodies), min_size=1, max_size=3).map(b"".join) | st.binary(max_size=200)


CLIENT_HELLO = bytes.fromhex("160301002f0100002b0303" + "00" * 32 + "000002c02b0100")
tls_garbage = (
    damaged(CLIENT_HELLO)
    | st.binary(max_size=300)
    | st.sampled_from([b"\x16\x03\x01\xff\xff" + b"\0" * 9000, b"GET / HTTP/1.1\r\n\r\n", b"\x80\x2e\x01"])
)
