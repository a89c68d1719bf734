"""The operator's health port: liveness, readiness, and what Prometheus reads.

kopf has a port of its own for the one, and nothing for the other.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry

from gpushare_core.metrics import CONTENT_TYPE, PATH, exposition


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
        """Serves while it is entered. Listens on all addresses unless ``host`` is given: the kubelet and
        Prometheus ask on the pod's, which may be of either family.

        Raises:
            CannotServeError: the port cannot be had.
        """
        app = web.Application()
        app.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/readyz", self._readyz),
                web.get(PATH, self._metrics),
            ]
        )
        runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=1.0, access_log=None)
        await runner.setup()
        try:
            await _listen(runner, host, port)
            yield
        finally:
            await runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        try:
            return web.json_response({"queue": await self.probe()})
        except StalledError as error:
            return web.json_response({"error": str(error)}, status=503)

    async def _readyz(self, _: web.Request) -> web.Response:
        try:
            return web.json_response({"ready": self.readiness()})
        except StalledError as error:
            return web.json_response({"error": str(error)}, status=503)

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=exposition(self.registry), headers={"Content-Type": CONTENT_TYPE})


async def _listen(runner: web.AppRunner, host: str | None, port: int) -> None:
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        raise CannotServeError(
            f"cannot listen on port {port}: {error}; choose another --health-port"
        ) from error
