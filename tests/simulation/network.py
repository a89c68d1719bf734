"""The network between a program and the API server: delays, lost requests, lost and late responses."""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec
from tests.fakes.system_tls import system_tls
from tests.simulation.api_server import ApiServer, visible
from tests.simulation.virtual_time import seconds

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.errors import ApiError, NotSentError, UnreachableError
from gpushare_core.kube.request import ApiRequest

CALL = 0.004
"""Seconds of one way, usually."""
LATE = 3.9
"""Seconds after which a request is carried out at the latest: the API server drops slower ones."""


@dataclass(slots=True)
class Link:
    """One program's way to the API server."""

    dice: random.Random
    is_down: bool = False
    lost: float = 0.0
    """Share of the requests without response, which the server may have carried out, or carries out later."""
    slow: float = 1.0
    """How many times longer than usual everything takes."""
    lag: float = 0.02
    """Seconds by which a watch is behind, at most."""

    def heal(self) -> None:
        self.is_down, self.lost, self.slow, self.lag = False, 0.0, 1.0, 0.02

    def delay(self) -> float:
        return self.dice.uniform(0.2, 1.8) * CALL * self.slow


class SimulatedClient(KubeClient):
    """``KubeClient`` with a link in place of a socket."""

    def __init__(self, server: ApiServer, link: Link, *, field_manager: str = "gpushare") -> None:
        super().__init__(Credentials("http://nowhere", system_tls, lambda: None), field_manager=field_manager)
        self._server, self._link = server, link

    async def _exchange(self, request: ApiRequest) -> bytes:
        link, timeout = self._link, request.timeout or self._timeout
        await asyncio.sleep(link.delay())
        if link.is_down:
            raise NotSentError(f"{request}: no connection")
        if link.dice.random() < link.lost:
            await self._lose(request)
        way = link.delay()
        if way > timeout:
            self._act_later(request, way)
            await asyncio.sleep(timeout)
            raise UnreachableError(f"{request}: timed out")
        try:
            await asyncio.sleep(way)
        except asyncio.CancelledError:  # who asked is dead; what he asked for is on its way
            self._act_later(request, link.delay())
            raise
        answer = self._answer(request)
        await asyncio.sleep(link.delay())
        if link.is_down:
            raise UnreachableError(f"{request}: the connection broke")
        return answer

    async def _lose(self, request: ApiRequest) -> None:
        """The server carries the request out at once, later, or never; the response is lost."""
        fate = self._link.dice.choice(("acts", "late", "never"))
        if fate == "acts":
            self._act(request)
        elif fate == "late":
            self._act_later(request, self._link.dice.uniform(0.0, LATE))
        await asyncio.sleep(self._link.delay())
        raise UnreachableError(f"{request}: the connection broke")

    def _act_later(self, request: ApiRequest, after: float) -> None:
        if after < LATE:
            asyncio.get_running_loop().call_later(after, self._act, request)

    def _act(self, request: ApiRequest) -> None:
        try:
            self._server.handle(request)
        except ApiError:
            return

    def _answer(self, request: ApiRequest) -> bytes:
        """Objects go over a wire: nobody shares one with the server."""
        return msgspec.json.encode(self._server.handle(request))

    async def stream(self, request: ApiRequest, *, idle: float) -> AsyncIterator[bytes]:  # noqa: ARG002
        link, at = self._link, int(request.params["resourceVersion"])
        shows = visible(request.params.get("fieldSelector", ""))
        due, place = 0.0, 0
        while True:
            if link.is_down:
                raise UnreachableError(f"watch {request.path}: no connection")
            if at < self._server.compacted:
                yield b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Gone"}}'
                return
            changes = self._server.changes.setdefault(request.path, [])
            written = self._server.written
            place = min(place, len(changes))
            while place and changes[place - 1].version > at:
                place -= 1
            while place < len(changes) and changes[place].version <= at:
                place += 1
            if place == len(changes):
                await written.wait()
                continue
            change = changes[place]
            due = max(due, change.at + link.dice.uniform(0.0, link.lag))
            if due > seconds():
                await asyncio.sleep(due - seconds())
                if link.is_down:
                    continue
            at = change.version
            if (line := change.event(shows)) is not None:
                yield line
