"""What the operator's health server answers. kopf has a probe of its own, but no metrics."""

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus

from prometheus_client import CollectorRegistry

from gpushare_core import health_server
from gpushare_core.health_server import JSON, Page, Response


class StalledError(Exception):
    """The queue does not work any more: the process has to be started again."""


def health_pages(
    *,
    probe: Callable[[], float],
    readiness: Callable[[], str],
    registry: CollectorRegistry,
) -> Mapping[str, Page]:
    """``probe`` returns the seconds since the last sign of life, ``readiness`` what the process is ready for;
    either raises ``StalledError`` where that is nothing."""
    return health_server.health_pages(
        liveness=_page("queue", probe), readiness=_page("ready", readiness), registry=registry
    )


def _page(key: str, check: Callable[[], float | str]) -> Page:
    async def page() -> Response:
        status = HTTPStatus.OK
        try:
            content = {key: check()}
        except StalledError as error:
            content, status = {"error": str(error)}, HTTPStatus.SERVICE_UNAVAILABLE
        return Response(json.dumps(content).encode(), status, f"{JSON}; charset=utf-8")

    return page
