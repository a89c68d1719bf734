"""Liveness, readiness and metrics of the plugin: GET /healthz, /readyz and /metrics."""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType

from gpushare_core.health_port import TEXT, Answer, HealthPort, Page
from gpushare_core.text.printable import printable

Probe = Callable[[], str]
"""Returns what is wrong, or an empty text."""
NO_PAGES: Mapping[str, Page] = MappingProxyType({})


class HealthServer(HealthPort):
    """Use as an asynchronous context manager. Answers ``probes`` and ``pages``, by their paths."""

    def __init__(
        self,
        port: int,
        probes: Mapping[str, Probe],
        *,
        pages: Mapping[str, Page] = NO_PAGES,
        host: str | None = None,
    ) -> None:
        probed = {path: _page(probe) for path, probe in probes.items()}
        super().__init__(port, {**probed, **pages}, host=host)


def _page(probe: Probe) -> Page:
    async def page() -> Answer:
        problem = probe()
        status = HTTPStatus.SERVICE_UNAVAILABLE if problem else HTTPStatus.OK
        return Answer(printable(problem or "ok").encode(), status, TEXT)

    return page
