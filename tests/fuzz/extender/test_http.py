"""The extender on its socket: whatever comes is answered or broken off, and the next good call is served."""

import asyncio
import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fakes.api_server import PODS, fake_api
from tests.fakes.extender_api import extender_api
from tests.fakes.extender_keys import KeyFolder, caller_tls
from tests.fakes.open_port import listening
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies import objects
from tests.fuzz.strategies.http_bytes import conversations, request, sized, tls_garbage
from tests.fuzz.strategies.odd_json import encoded, mutated, nested
from tests.samples.extender import pod_json, pod_update, share_node

from gpushare_core.kube.client import KubeClient
from gpushare_core.process.metrics import new_registry
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.text.json_object import Json
from gpushare_extender.bind.binder import Binder
from gpushare_extender.cluster.watchers import WatchHealth
from gpushare_extender.transport.connection import Timeouts
from gpushare_extender.transport.listener import Listener, ListenerLimits
from gpushare_extender.transport.tls import ServerTls
from gpushare_extender.verbs.health import HealthApi
from gpushare_extender.verbs.server import ExtenderApi, application

DEADLINE = 20.0
"""Seconds in which every conversation is over, on a busy machine."""
LIMIT = 0.5
LIMITS = ListenerLimits(timeouts=Timeouts(read=LIMIT, idle=LIMIT), handshake=LIMIT)
ATTEMPTS = 20
"""Of a request that has to be answered: LIMITS break it off where the machine stands still for so long."""

POD = {**pod_json("a", units=4), "metadata": {"name": "a", "namespace": "default", "uid": "uid-a"}}
NODES = {"items": [{"metadata": {"name": "n1"}}, {"metadata": {"name": "n2"}}]}
VICTIMS = {"n1": {"Pods": [{"UID": "uid-x"}], "NumPDBViolations": 0}, "n2": None}
BODIES: dict[str, Json] = {
    "filter": {"Pod": POD, "NodeNames": ["n1", "n2", "n3"]},
    "filter whole nodes": {"Pod": objects.POD, "Nodes": NODES, "NodeNames": None},
    "prioritize": {"Pod": POD, "NodeNames": ["n1", "n2"]},
    "preempt": {"Pod": POD, "NodeNameToMetaVictims": VICTIMS},
    "preempt whole pods": {
        "Pod": POD,
        "NodeNameToVictims": {"n1": {"Pods": [objects.POD], "NumPDBViolations": 1}},
    },
    "bind": {"PodName": "a", "PodNamespace": "default", "PodUID": "uid-a", "Node": "n1"},
    "bind of a stranger": {"PodName": "../x", "PodNamespace": "?a=b#c", "PodUID": "u", "Node": "n2"},
}
VERBS = ("filter", "prioritize", "preempt", "bind")
GOOD = sized("/gpushare/filter", json.dumps(BODIES["filter"]).encode(), "Connection: close")


async def permitted() -> int:
    return 1


@contextlib.asynccontextmanager
async def extender() -> AsyncIterator[ExtenderApi]:
    ledger = Ledger()
    ledger.replace_share_nodes([share_node("n1"), share_node("n2")])
    ledger.set_pod(pod_update("x", node="n2", c0=14))
    ledger.set_pod(pod_update("y", node="n2", c1=15))
    clock = asyncio.get_running_loop().time
    watches = (WatchHealth("pods", clock, listed=True), WatchHealth("gpusharenodes", clock, listed=True))
    async with fake_api() as api, KubeClient(api.credentials()) as client:
        api.put(PODS, pod_json("b", units=4))
        binder = Binder(client, ledger, permitted)
        yield extender_api(binder, HealthApi(watches, registry=new_registry("gpushare-extender")))


class Server:
    """An extender in a thread of its own, on a port of its own."""

    def __init__(self, tls: ServerTls | None = None) -> None:
        self.port = 0
        self._tls = tls
        self._started, self._loop = threading.Event(), asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(
            target=self._loop.run_until_complete, args=[self._serve()], daemon=True
        )

    async def _serve(self) -> None:
        async with (
            extender() as api,
            listening(
                application(api), host="127.0.0.1", port=0, tls=self._tls, drain=0.1, limits=LIMITS
            ) as port,
        ):
            self.port = port
            self._started.set()
            await self._stop.wait()

    def __enter__(self) -> "Server":
        self._thread.start()
        assert self._started.wait(DEADLINE), "the extender did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(DEADLINE)
        self._loop.close()

    def told(self, content: bytes, tls: ssl.SSLContext | None = None) -> bytes:
        """Returns all that comes back until the connection is closed, which is within the deadline."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE) as plain:
            if tls is None:
                return _exchanged(plain, content)
            with tls.wrap_socket(plain, server_hostname="127.0.0.1") as encrypted:
                return _exchanged(encrypted, content)

    def answered(self, content: bytes, tls: ssl.SSLContext | None = None) -> bytes:
        """As ``told``, for what has to be answered; empty where it is not. It is sent again only where the
        connection was there for so long that LIMITS may have broken it off."""
        for _ in range(ATTEMPTS):
            begun = time.monotonic()
            answer = self._told_or_broken_off(content, tls)
            if answer or time.monotonic() - begun < LIMIT:
                return answer
        return b""

    def _told_or_broken_off(self, content: bytes, tls: ssl.SSLContext | None) -> bytes:
        with contextlib.suppress(ConnectionError, ssl.SSLEOFError):
            return self.told(content, tls)
        return b""


def _exchanged(connection: socket.socket, content: bytes) -> bytes:
    with contextlib.suppress(ConnectionError):
        connection.sendall(content)
    answer = b""
    with contextlib.suppress(ConnectionError):
        while chunk := connection.recv(65536):
            answer += chunk
    return answer


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as serving:
        yield serving


def require_good_answer(server: Server, tls: ssl.SSLContext | None = None) -> None:
    head, _, body = server.answered(GOOD, tls).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b'"NodeNames":["n1"]' in body


def statuses(answer: bytes) -> list[int]:
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:] if part[:3].isdigit()]


bodies = st.sampled_from(list(BODIES.values())).flatmap(lambda body: encoded(mutated(body)))


@fuzzes(application, Listener.accept)
@given(conversations(bodies))
@example(request("/gpushare/filter", b"{", "Content-Length: 100"))
@example(request("/gpushare/filter", b"5\r\n{", "Transfer-Encoding: chunked"))
@example(sized("/gpushare/filter", b"x" * (5 * 2**20)))
def test_bytes_on_the_socket_are_answered_or_broken_off(server: Server, content: bytes) -> None:
    answer = server.told(content)
    assert not [status for status in statuses(answer) if status == 500], answer[:500]
    require_good_answer(server)


@fuzzes(ExtenderApi.filter, ExtenderApi.prioritize, ExtenderApi.preempt, ExtenderApi.bind, few=40)
@given(st.sampled_from(VERBS), bodies)
@example(
    "preempt", json.dumps(BODIES["preempt"]).replace('Violations": 0', 'Violations": ' + "9" * 30).encode()
)
@example("filter", nested(50_000))
@example("filter", json.dumps(BODIES["filter"]).replace('"uid-a"', '"\\ud800"').encode())
@example("bind", json.dumps(BODIES["bind"]).replace('"a"', '"' + "\\u0000" + '"').encode())
@example("filter", json.dumps({"Pod": POD, "NodeNames": ["n1"] * 50_000}).encode())
@example(
    "filter",
    json.dumps(
        {
            "Pod": {**POD, "spec": {"containers": [{"name": str(i)} for i in range(20_000)]}},
            "NodeNames": ["n1"],
        }
    ).encode(),
)
def test_a_call_is_answered_as_the_scheduler_expects_or_refused_with_a_reason(
    server: Server, verb: str, body: bytes
) -> None:
    answer = server.answered(sized(f"/gpushare/{verb}", body, "Connection: close"))
    (status,) = statuses(answer)
    said = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert status == 200 or (status in (400, 413, 503) and said["error"]), answer[:500]
    if status == 200 and verb in ("filter", "bind"):
        assert "Error" not in said or isinstance(said["Error"], str)
    require_good_answer(server)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def tls_server(keys: Path) -> Iterator[Server]:
    folder = KeyFolder(keys)
    folder.write("first")
    with Server(ServerTls(folder.files)) as serving:
        yield serving


@fuzzes(ServerTls.context)
@given(tls_garbage)
def test_what_is_no_handshake_is_broken_off(tls_server: Server, content: bytes) -> None:
    assert b"HTTP/" not in tls_server.told(content)
    require_good_answer(tls_server, caller_tls("first"))
