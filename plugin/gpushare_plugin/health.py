"""Liveness and readiness over HTTP: GET /healthz and /readyz."""

from collections.abc import Callable

from aiohttp import web

Probe = Callable[[], str]
"""Says what is wrong; an empty text when nothing is."""


class HealthServer:
    """Use as an asynchronous context manager. Listens on all addresses: the kubelet asks on the node's."""

    def __init__(self, port: int, probes: dict[str, Probe]) -> None:
        self._port = port
        self._probes = probes

    async def __aenter__(self) -> "HealthServer":
        app = web.Application()
        for path, probe in self._probes.items():
            app.router.add_get(path, _answer(probe))
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, port=self._port).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def port(self) -> int:
        """The port in use, also where 0 was asked for."""
        port: int = self._runner.addresses[0][1]
        return port


def _answer(probe: Probe) -> Callable[[web.Request], object]:
    async def answer(_: web.Request) -> web.Response:
        wrong = probe()
        return web.Response(status=503 if wrong else 200, text=wrong or "ok")

    return answer
