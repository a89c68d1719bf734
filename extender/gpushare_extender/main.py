"""gpushare-extender: the extender that kube-scheduler asks which nodes and cards take a pod."""

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web

from gpushare_core.api.names import EXTENDER_PORT
from gpushare_core.books.dialects import GPUSHARE, Dialect
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials, NoCredentialsError, find_credentials
from gpushare_core.log import configure_logging
from gpushare_core.version import VERSION
from gpushare_extender.bind.binder import Binder
from gpushare_extender.bind.stale_reservations import release_stale_reservations
from gpushare_extender.cluster.watchers import WatchHealth, watch_pods, watch_share_nodes
from gpushare_extender.decide.request_cache import RequestCache
from gpushare_extender.http.server import KEEP_ALIVE, ExtenderApi, application
from gpushare_extender.ledger.ledger import Ledger

DRAIN_SECONDS = 15.0
"""For binds under way at the end; half of the kubelet's default grace period."""

_log = logging.getLogger("gpushare_extender")


class CannotServeError(Exception):
    """The program cannot do its work from the start; the text says why and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT. Returns the exit code: 1 when it cannot start or cannot go on."""
    options = _parse(arguments)
    configure_logging(options.log_level)
    try:
        credentials = find_credentials(options.kubeconfig)
        return asyncio.run(serve(credentials, host=options.listen[0], port=options.listen[1]))
    except (NoCredentialsError, CannotServeError) as error:
        _log.error("%s", error)
        return 1


async def serve(
    credentials: Credentials,
    *,
    host: str,
    port: int,
    dialect: Dialect = GPUSHARE,
    stop: asyncio.Event | None = None,
) -> int:
    """Serves on ``host:port`` until ``stop`` or a signal, then finishes the binds under way.

    Returns the exit code: 1 when a watch ended.

    Raises:
        CannotServeError: the address cannot be had.
    """
    stop = stop or asyncio.Event()
    ledger, requests = Ledger(), RequestCache()
    pods, share_nodes = WatchHealth("pods"), WatchHealth("gpusharenodes")
    async with KubeClient(credentials) as client:
        binder = Binder(client, ledger, requests, dialect)
        api = ExtenderApi(ledger, requests, binder, dialect, (pods, share_nodes))
        async with _listening(api, host=host, port=port), _stopped_by_signals(stop):
            watches = (
                watch_pods(client, ledger, dialect, pods),
                watch_share_nodes(client, ledger, share_nodes),
                release_stale_reservations(
                    client, ledger, binder.timing, being_bound=binder.pods_being_bound
                ),
            )
            code = await _watch_until(stop, watches)
        await _drain(binder)
    return code


@contextlib.asynccontextmanager
async def _listening(api: ExtenderApi, *, host: str, port: int) -> AsyncIterator[None]:
    """Answers requests; at the end takes no more and answers those that have come."""
    runner = web.AppRunner(
        application(api),
        access_log=None,
        keepalive_timeout=KEEP_ALIVE,
        shutdown_timeout=DRAIN_SECONDS,
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        raise CannotServeError(
            f"cannot listen on {host}:{port}: {error.strerror}; is one running?"
        ) from error
    _log.info("version %s listens on %s:%d", VERSION, host, port)
    try:
        yield
    finally:
        await runner.cleanup()


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


async def _watch_until(stop: asyncio.Event, watches: Iterable[Coroutine[Any, Any, None]]) -> int:
    """Returns 0 when ``stop`` came; 1 when a watch ended, which only a defect can bring about."""
    stopping = asyncio.create_task(stop.wait())
    running = [asyncio.create_task(watch) for watch in watches]
    done, _ = await asyncio.wait([stopping, *running], return_when=asyncio.FIRST_COMPLETED)
    for task in [stopping, *running]:
        task.cancel()
    await asyncio.gather(stopping, *running, return_exceptions=True)
    if stopping in done:
        return 0
    for task in done:
        _log.error("a watch ended, the ledger would go stale: stopping", exc_info=task.exception())
    return 1


async def _drain(binder: Binder) -> None:
    if left := await binder.drain(DRAIN_SECONDS):
        _log.warning("%d binds did not end in time; the next start finds their pods in the API", left)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="gpushare-extender", description=__doc__)
    parser.add_argument("--listen", type=_address, default=f"127.0.0.1:{EXTENDER_PORT}", metavar="HOST:PORT")
    parser.add_argument("--kubeconfig", type=Path, help="for running outside of a cluster")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    parser.add_argument("--version", action="version", version=VERSION)
    return parser.parse_args(arguments)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT such as 127.0.0.1:{EXTENDER_PORT}")
    return host.strip("[]"), int(port)


if __name__ == "__main__":
    sys.exit(main())
