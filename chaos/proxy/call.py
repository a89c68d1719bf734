"""What a program of ours asks of the API server."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_READS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True, slots=True)
class Call:
    """``verb`` is RBAC's. ``program`` is the name of a ServiceAccount, ``node`` where its pod runs; both are
    empty where the token does not say so."""

    verb: str
    path: str
    program: str = ""
    node: str = ""

    def __str__(self) -> str:
        return f"{self.program} on {self.node}: {self.verb} {self.path}"

    @property
    def is_write(self) -> bool:
        return self.verb not in _READS


def call(method: str, path: str, *, query: Mapping[str, str], authorization: str) -> Call:
    """Returns what a request with this header ``Authorization`` asks for."""
    program, node = _caller(authorization)
    return Call(_verb(method, path, query), path, program, node)


def _verb(method: str, path: str, query: Mapping[str, str]) -> str:
    if method not in ("GET", "HEAD"):
        return _VERBS.get(method, method.lower())
    if query.get("watch") in ("1", "true"):
        return "watch"
    return "list" if _is_collection(path) else "get"


def _is_collection(path: str) -> bool:
    """Whether ``[namespaces/NAME/]PLURAL`` alone follows ``/api/VERSION`` or ``/apis/GROUP/VERSION``."""
    parts = path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return len(rest) == 1


class _Node(msgspec.Struct):
    name: str = ""


class _Bound(msgspec.Struct):
    node: _Node = msgspec.field(default_factory=_Node)


class _Claims(msgspec.Struct):
    """Source: ServiceAccount tokens of Kubernetes 1.30 and newer."""

    sub: str = ""
    bound: _Bound = msgspec.field(name="kubernetes.io", default_factory=_Bound)


def _caller(authorization: str) -> tuple[str, str]:
    """Which program and node a token names. The API server checks it; here it only selects faults."""
    try:
        payload = authorization.split(".")[1]
        claims = msgspec.json.decode(
            base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=_Claims
        )
    except (IndexError, binascii.Error, msgspec.DecodeError):
        return "", ""
    return claims.sub.rpartition(":")[2], claims.bound.node.name
