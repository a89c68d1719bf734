"""HTTP/1.1: aiohttp reads the requests."""

from http import HTTPStatus

from aiohttp import typedefs, web

from gpushare_extender.transport.connection import is_encrypted, port_of, read_in_time
from gpushare_extender.transport.messages import Handler, Request, Response, error_response


def application(handler: Handler, *, max_request: int) -> web.Application:
    """Has ``handler`` respond to every request of at most ``max_request`` bytes."""

    async def respond(received: web.Request) -> web.Response:
        transport = received.transport
        port, authenticated = (port_of(transport), is_encrypted(transport)) if transport else (0, False)
        request = Request(
            received.method, received.rel_url.raw_path, await received.read(), port, authenticated
        )
        response = handler(request)
        return _web_response(response if isinstance(response, Response) else await response)

    app = web.Application(client_max_size=max_request, middlewares=[_refusals_as_json, read_in_time])
    app.router.add_route("*", "/{path:.*}", respond)
    return app


def _web_response(response: Response) -> web.Response:
    return web.Response(
        body=response.content, status=response.status, headers={"Content-Type": response.content_type}
    )


@web.middleware
async def _refusals_as_json(request: web.Request, handler: typedefs.Handler) -> web.StreamResponse:
    """Refusals of malformed, incomplete and too large requests."""
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge as error:
        message = f"{error.text}: is nodeCacheCapable set for this extender?"
        return _web_response(error_response(message, HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
    except web.HTTPException as error:
        return _web_response(error_response(error.reason, error.status))
