"""HTTP/1.1: aiohttp reads the requests."""

from http import HTTPStatus

from aiohttp import web

from gpushare_extender.transport.connection import Handler, is_encrypted, port_of, read_in_time
from gpushare_extender.transport.exchange import Answer, Answering, Call, error_answer


def application(answering: Answering, *, largest_request: int) -> web.Application:
    """Returns what has every request answered by ``answering``. ``largest_request`` is in bytes."""

    async def answer(request: web.Request) -> web.Response:
        transport = request.transport
        port, client_authenticated = (
            (port_of(transport), is_encrypted(transport)) if transport else (0, False)
        )
        call = Call(
            request.method, request.rel_url.raw_path, await request.read(), port, client_authenticated
        )
        answer = answering(call)
        return _response(answer if isinstance(answer, Answer) else await answer)

    app = web.Application(client_max_size=largest_request, middlewares=[_refusals_as_json, read_in_time])
    app.router.add_route("*", "/{path:.*}", answer)
    return app


def _response(answer: Answer) -> web.Response:
    return web.Response(
        body=answer.content, status=answer.status, headers={"Content-Type": answer.content_type}
    )


@web.middleware
async def _refusals_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Of requests that have not come as they should."""
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge as error:
        message = f"{error.text}: is nodeCacheCapable set for this extender?"
        return _response(error_answer(message, HTTPStatus.REQUEST_ENTITY_TOO_LARGE))
    except web.HTTPException as error:
        return _response(error_answer(error.reason, error.status))
