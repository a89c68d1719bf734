"""Where an event of a watch ends, and what an event is that the proxy makes itself.

A program that asks for ``application/vnd.kubernetes.protobuf``, as kube-scheduler does for the types of
Kubernetes itself, gets frames: four bytes of length, then a ``metav1.WatchEvent``. Others get lines of JSON.
Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
"""

from http import HTTPStatus
from typing import Protocol

import msgspec

PROTOBUF = "application/vnd.kubernetes.protobuf"
_PREFIX = 4
"""Bytes, big-endian, that say how long a frame is without them."""
_REASONS = {
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.FORBIDDEN: "Forbidden",
    HTTPStatus.CONFLICT: "Conflict",
    HTTPStatus.GONE: "Expired",
    HTTPStatus.TOO_MANY_REQUESTS: "TooManyRequests",
    HTTPStatus.INTERNAL_SERVER_ERROR: "InternalError",
    HTTPStatus.SERVICE_UNAVAILABLE: "ServiceUnavailable",
    HTTPStatus.GATEWAY_TIMEOUT: "Timeout",
}
"""As ``metav1.StatusReason``."""
_MESSAGE = "chaos: this call was broken on purpose"


class Framing(Protocol):
    half_an_event: bytes

    def split(self, content: bytes) -> tuple[list[bytes], bytes]:
        """Returns each whole event with what delimits it, and what is left."""
        ...

    def error_event(self, status: int) -> bytes: ...


def framing(content_type: str) -> Framing:
    """Returns how the events of a watch with this ``Content-Type`` are told apart."""
    return Frames() if content_type.startswith(PROTOBUF) else Lines()


class Lines:
    half_an_event = b'{"type":"MODIFIED","object":{"kind":"'

    def split(self, content: bytes) -> tuple[list[bytes], bytes]:
        *whole, rest = content.split(b"\n")
        return [line + b"\n" for line in whole], rest

    def error_event(self, status: int) -> bytes:
        return msgspec.json.encode({"type": "ERROR", "object": status_object(status)}) + b"\n"


class Frames:
    half_an_event = (100).to_bytes(_PREFIX, "big") + b"\x0a\x08MODIFIED"

    def split(self, content: bytes) -> tuple[list[bytes], bytes]:
        whole = []
        while len(content) >= _PREFIX and len(content) >= (
            end := _PREFIX + int.from_bytes(content[:_PREFIX], "big")
        ):
            whole.append(content[:end])
            content = content[end:]
        return whole, content

    def error_event(self, status: int) -> bytes:
        kind = _field(1, b"v1") + _field(2, b"Status")
        reason = _REASONS.get(HTTPStatus(status), "").encode()
        body = _field(2, b"Failure") + _field(3, _MESSAGE.encode()) + _field(4, reason)
        body += bytes([6 << 3]) + _varint(status)
        unknown = b"k8s\x00" + _field(1, kind) + _field(2, body)
        event = _field(1, b"ERROR") + _field(2, _field(1, unknown))
        return len(event).to_bytes(_PREFIX, "big") + event


def status_object(status: int) -> dict[str, object]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": _MESSAGE,
        "reason": _REASONS.get(HTTPStatus(status), ""),
        "code": int(status),
    }


def _field(number: int, content: bytes) -> bytes:
    """A field of protobuf that has a length."""
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + _varint(rest) if rest else bytes([low])
