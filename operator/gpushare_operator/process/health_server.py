"""The operator's health port: liveness, readiness, and what Prometheus reads.

kopf has a port of its own for the one, and nothing for the other.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

from prometheus_client import CollectorRegistry

from gpushare_core.health_port import JSON, Answer, HealthPort, MetricsPage, Page
from gpushare_core.process.metrics import PATH
from gpushare_core.text.json_object import Json


class StalledError(Exception):
    """The queue does not work any more: the process has to be started again."""


class CannotServeError(Exception):
    """The port cannot be had; the text says why and what to do, for people."""


@dataclass(frozen=True, slots=True)
class HealthServer:
    """Answers ``/healthz``, ``/readyz`` and ``/metrics``."""

    probe: Callable[[], Awaitable[float]]
    """Returns the seconds since the last sign of life. Raises ``StalledError`` when that is too long ago."""
    readiness: Callable[[], str]
    """Returns what the process is ready for. Raises ``StalledError`` when for nothing yet."""
    registry: CollectorRegistry

    @asynccontextmanager
    async def serving(self, port: int, *, host: str | None = None) -> AsyncIterator[None]:
        """Serves while it is entered; ``host`` as in ``HealthPort``.

        Raises:
            CannotServeError: the port cannot be had.
        """
        pages: dict[str, Page] = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            PATH: MetricsPage(self.registry),
        }
        server = HealthPort(port, pages, host=host)
        try:
            server.open()
        except OSError as error:
            raise CannotServeError(
                f"cannot listen on port {port}: {error}; choose another --health-port"
            ) from error
        try:
            yield
        finally:
            await server.close()

    async def _healthz(self) -> Answer:
        try:
            return _json({"queue": await self.probe()})
        except StalledError as error:
            return _json({"error": str(error)}, HTTPStatus.SERVICE_UNAVAILABLE)

    async def _readyz(self) -> Answer:
        try:
            return _json({"ready": self.readiness()})
        except StalledError as error:
            return _json({"error": str(error)}, HTTPStatus.SERVICE_UNAVAILABLE)


def _json(content: Json, status: HTTPStatus = HTTPStatus.OK) -> Answer:
    return Answer(json.dumps(content).encode(), status, f"{JSON}; charset=utf-8")
