"""gpushare-extender: tells kube-scheduler which nodes have room for a pod, and binds the pod to cards."""

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from functools import partial
from typing import Any

from gpushare_core.health_server import CannotServeError
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials, NoCredentialsError, find_credentials
from gpushare_core.process.log import configure_logging, log_start
from gpushare_core.process.log_file import log_file
from gpushare_core.process.malloc import limit_malloc_arenas
from gpushare_core.process.metrics import PATH
from gpushare_core.process.version import VERSION
from gpushare_extender import PROGRAM
from gpushare_extender.arguments import LOG_FILE, Options, options_of, parse
from gpushare_extender.bind.binder import PARALLEL_BINDS
from gpushare_extender.extender import DRAIN_SECONDS, Extender
from gpushare_extender.transport.endpoints import Endpoint, HealthPortEndpoint, serving
from gpushare_extender.transport.http2 import Http2Service
from gpushare_extender.transport.listener import ListenerLimits
from gpushare_extender.transport.tls_buffers import use_small_tls_buffers
from gpushare_extender.verbs.health import HealthApi
from gpushare_extender.verbs.metrics_access import MetricsAccess, reviewer
from gpushare_extender.verbs.metrics_port import metrics_endpoint, serving_metrics
from gpushare_extender.verbs.server import ExtenderApi, application, handler

_log = logging.getLogger("gpushare_extender")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT. Returns the exit code: 1 when it cannot start or a task has ended."""
    limit_malloc_arenas()
    parsed = parse(arguments, description=__doc__)
    configure_logging(parsed.log_level)
    use_small_tls_buffers()
    with log_file(parsed.log_folder / LOG_FILE) if parsed.log_folder else contextlib.nullcontext():
        log_start(PROGRAM, VERSION)
        try:
            credentials = find_credentials(parsed.kubeconfig)
            return asyncio.run(serve(credentials, options_of(parsed)))
        except (NoCredentialsError, CannotServeError) as error:
            _log.error("%s", error)
            return 1


async def serve(
    credentials: Credentials,
    options: Options,
    *,
    stop: asyncio.Event | None = None,
) -> int:
    """Serves until ``stop`` or a signal, then waits for the binds under way.

    Returns the exit code: 1 when a task has ended.

    Raises:
        CannotServeError: an address is not available; of several to listen on, none is.
    """
    stop = stop or asyncio.Event()
    async with kube_client(credentials) as client:
        extender = Extender.create(client, options)
        async with _stopped_by_signals(stop), _running(extender.tasks()) as ended:
            async with (
                _serving(extender.api, options),
                serving_metrics(_metrics(extender.api.health, options, credentials)),
            ):
                code = await _until_either(stop, ended)
            await extender.finish()
    return code


def kube_client(credentials: Credentials) -> KubeClient:
    """Has a connection for every bind, and more for all else, so that the Lease never waits for one."""
    return KubeClient(credentials, connections=PARALLEL_BINDS + 16, field_manager=PROGRAM)


def _serving(api: ExtenderApi, options: Options) -> contextlib.AbstractAsyncContextManager[None]:
    app = partial(application, api, max_request=options.max_request)
    http2 = Http2Service(handler(api), options.max_request)
    calls = [
        Endpoint(address, app(), api.health.tls, ListenerLimits(), http2)
        for address in (options.listen, *options.also)
    ]
    health = [HealthPortEndpoint(options.health, api.health.pages())] if options.health else []
    return serving(calls, health, api.health.unavailable, drain=DRAIN_SECONDS)


def _metrics(health: HealthApi, options: Options, credentials: Credentials) -> Endpoint | None:
    if options.metrics is None or options.tls is None:
        return None
    access = MetricsAccess(reviewer(credentials))
    return metrics_endpoint(options.metrics, options.tls, health.pages()[PATH], access)


@contextlib.asynccontextmanager
async def _stopped_by_signals(stop: asyncio.Event) -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


@contextlib.asynccontextmanager
async def _running(tasks: Iterable[Coroutine[Any, Any, None]]) -> AsyncIterator["asyncio.Task[None]"]:
    """Runs ``tasks`` until the end of the block, for the last requests, too: binds need the Lease and the
    ledger.

    Yields a task that ends when one of them does, with its error.
    """
    running = [asyncio.create_task(task) for task in tasks]
    ended = asyncio.create_task(_first_end(running))
    try:
        yield ended
    finally:
        for task in (ended, *running):
            task.cancel()
        await asyncio.gather(ended, *running, return_exceptions=True)


async def _first_end(tasks: Iterable["asyncio.Task[None]"]) -> None:
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()


async def _until_either(stop: asyncio.Event, ended: "asyncio.Task[None]") -> int:
    """Returns 0 when ``stop`` is set; 1 when a task has ended, which only a defect can cause."""
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([stopping, ended], return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        return 0
    stopping.cancel()
    error = ended.exception()
    _log.error("stopping, because a task ended unexpectedly: %s", error, exc_info=error)
    return 1


if __name__ == "__main__":
    sys.exit(main())
