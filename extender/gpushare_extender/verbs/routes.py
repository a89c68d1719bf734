"""Which handler responds to which method and path."""

import logging
from collections.abc import Awaitable, Iterable
from http import HTTPStatus
from typing import NamedTuple

from gpushare_extender.transport.messages import Handler, Request, Response, error_response

_log = logging.getLogger(__name__)


class Route(NamedTuple):
    """A ``path`` that ends with a slash matches any name of one part after it: ``Request.name``."""

    method: str
    path: str
    handler: Handler


class Routes:
    """Finds the handler of a path by two look-ups, however many routes there are."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._by_path: dict[str, dict[str, Handler]] = {}
        self._below_path: dict[str, dict[str, Handler]] = {}
        for method, path, handler in routes:
            table = self._below_path if path.endswith("/") else self._by_path
            table.setdefault(path, {})[method] = handler

    def respond(self, request: Request) -> Response | Awaitable[Response]:
        """Returns the response of the route; 404, 405 and 500 as JSON. A handler's defect must not break the
        connection: it serves other requests, too."""
        handler = self._found(request)
        if isinstance(handler, Response):
            return handler
        try:
            response = handler(request)
        except Exception as error:
            return _defect(request, error)
        return response if isinstance(response, Response) else _later(request, response)

    def _found(self, request: Request) -> Handler | Response:
        methods = self._by_path.get(request.path) or self._below(request.path)
        if methods is None:
            return _refusal(HTTPStatus.NOT_FOUND)
        handler = methods.get("GET" if request.method == "HEAD" else request.method)
        return handler or _refusal(HTTPStatus.METHOD_NOT_ALLOWED)

    def _below(self, path: str) -> dict[str, Handler] | None:
        folder, _, name = path.rpartition("/")
        return self._below_path.get(f"{folder}/") if name else None


async def _later(request: Request, response: Awaitable[Response]) -> Response:
    try:
        return await response
    except Exception as error:
        return _defect(request, error)


def _defect(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.path, exc_info=error)
    return error_response(f"internal error of the extender: {error!r}", 500)


def _refusal(status: HTTPStatus) -> Response:
    return error_response(status.phrase, status)
