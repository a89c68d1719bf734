"""The extender's metrics on an address that others reach: by TLS, and with a token."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from http import HTTPStatus

from aiohttp import hdrs, typedefs, web

from gpushare_core.health_server import Page
from gpushare_core.process.metrics import PATH
from gpushare_extender.transport.connection import read_in_time
from gpushare_extender.transport.endpoints import RETRY_SECONDS, Address, Endpoint, OpenPort
from gpushare_extender.transport.listener import ListenerLimits
from gpushare_extender.transport.tls import ServerTls, TlsFiles
from gpushare_extender.verbs.metrics_access import MetricsAccess

LIMITS = ListenerLimits(authenticated=32, unauthenticated=32, pause=0.05)
"""Any stranger may start a TLS handshake here, which takes CPU time: at most 20 a second, so that responses
to kube-scheduler are not slowed down."""
MAX_RETRY_SECONDS = 60.0
DRAIN_SECONDS = 1.0

_log = logging.getLogger(__name__)


def metrics_endpoint(address: Address, files: TlsFiles, page: Page, access: MetricsAccess) -> Endpoint:
    """Returns the endpoint that serves only ``page``, to clients that ``access`` allows."""
    tls = ServerTls(replace(files, demands_certificate=False))
    return Endpoint(address, _application(page, access), tls, LIMITS)


def _application(page: Page, access: MetricsAccess) -> web.Application:
    async def metrics(request: web.Request) -> web.Response:
        status = await access.status(request.headers.get(hdrs.AUTHORIZATION, ""))
        if status is not HTTPStatus.OK:
            challenge = {hdrs.WWW_AUTHENTICATE: "Bearer"} if status is HTTPStatus.UNAUTHORIZED else {}
            return web.Response(status=status, text=f"{status.phrase}\n", headers=challenge)
        response = await page()
        headers = {hdrs.CONTENT_TYPE: response.content_type}
        return web.Response(status=response.status, body=response.content, headers=headers)

    application = web.Application(middlewares=[read_in_time, end_refused], client_max_size=1024)
    application.router.add_get(PATH, metrics)
    return application


@web.middleware
async def end_refused(request: web.Request, handler: typedefs.Handler) -> web.StreamResponse:
    """Ends the connection of a refused client: the next attempt costs a handshake, and handshakes are
    bounded."""
    try:
        response = await handler(request)
    except web.HTTPException as refused:
        refused.force_close()
        raise
    if response.status != HTTPStatus.OK:
        response.force_close()
    return response


@contextlib.asynccontextmanager
async def serving_metrics(endpoint: Endpoint | None) -> AsyncIterator[None]:
    """Serves ``endpoint`` while it is entered, if there is one. While the address is not available, that is
    logged and tried again, and everything else works."""
    if endpoint is None:
        yield
        return
    opened: list[OpenPort] = []
    opening = asyncio.create_task(_open(endpoint, opened))
    try:
        yield
    finally:
        opening.cancel()
        await asyncio.wait({opening})
        for port in opened:
            await port.close()
            await port.drain()


async def _open(endpoint: Endpoint, opened: list[OpenPort]) -> None:
    delay = RETRY_SECONDS
    while not opened:
        try:
            opened.append(await endpoint.open(drain=DRAIN_SECONDS))
            _log.info("metrics are served on https://%s%s", endpoint.address, PATH)
        except OSError as error:
            _log.warning(
                "cannot serve metrics on %s, trying again in %.0f s: %s",
                endpoint.address,
                delay,
                error.strerror,
            )
            await asyncio.sleep(delay)
            delay = min(2 * delay, MAX_RETRY_SECONDS)
