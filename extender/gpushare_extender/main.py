"""gpushare-extender: the extender that kube-scheduler asks which nodes and cards take a pod."""

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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
from gpushare_extender.http.health import HealthApi
from gpushare_extender.http.listener import listening
from gpushare_extender.http.server import ExtenderApi, application, health_application
from gpushare_extender.http.tls import ServerTls, TlsFiles
from gpushare_extender.ledger.ledger import Ledger

DRAIN_SECONDS = 15.0
"""For binds under way at the end; half of the kubelet's default grace period."""

_log = logging.getLogger("gpushare_extender")


class CannotServeError(Exception):
    """The program cannot do its work from the start; the text says why and what to do."""


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says. ``health``: where the kubelet's probes are answered besides."""

    listen: Address
    health: Address | None = None
    tls: TlsFiles | None = None


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT. Returns the exit code: 1 when it cannot start or cannot go on."""
    parsed = _parse(arguments)
    configure_logging(parsed.log_level)
    try:
        credentials = find_credentials(parsed.kubeconfig)
        return asyncio.run(serve(credentials, _options(parsed)))
    except (NoCredentialsError, CannotServeError) as error:
        _log.error("%s", error)
        return 1


async def serve(
    credentials: Credentials,
    options: Options,
    *,
    dialect: Dialect = GPUSHARE,
    stop: asyncio.Event | None = None,
) -> int:
    """Serves until ``stop`` or a signal, then finishes the binds under way.

    Returns the exit code: 1 when a watch ended.

    Raises:
        CannotServeError: an address cannot be had.
    """
    stop = stop or asyncio.Event()
    ledger = Ledger()
    pods, share_nodes = WatchHealth("pods"), WatchHealth("gpusharenodes")
    async with KubeClient(credentials) as client:
        binder = Binder(client, ledger, dialect)
        health = HealthApi((pods, share_nodes), ServerTls(options.tls) if options.tls else None)
        async with _serving(ExtenderApi(ledger, binder, dialect, health), options), _stopped_by_signals(stop):
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
async def _serving(api: ExtenderApi, options: Options) -> AsyncIterator[None]:
    """Answers requests; at the end takes no more and answers those that have come."""
    async with contextlib.AsyncExitStack() as stack:
        for address, app, tls in _applications(api, options):
            listener = listening(app, host=address.host, port=address.port, tls=tls, drain=DRAIN_SECONDS)
            try:
                await stack.enter_async_context(listener)
            except OSError as error:
                raise CannotServeError(
                    f"cannot listen on {address}: {error.strerror}; is one running?"
                ) from error
            _log.info("version %s listens on %s", VERSION, address)
        yield


def _applications(
    api: ExtenderApi, options: Options
) -> Iterable[tuple[Address, web.Application, ServerTls | None]]:
    yield options.listen, application(api), api.health.tls
    if options.health:
        yield options.health, health_application(api.health), None


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
    parser.add_argument(
        "--health-listen",
        type=_address,
        metavar="HOST:PORT",
        help="answer /healthz and /readyz here, too, in plain HTTP: for probes when --tls-cert is given",
    )
    tls = parser.add_argument_group(
        "mutual TLS", "All three or none. The files are read again when they change, and waited for."
    )
    tls.add_argument("--tls-cert", type=Path, metavar="PEM", help="the certificate to serve with")
    tls.add_argument("--tls-key", type=Path, metavar="PEM", help="its key")
    tls.add_argument("--client-ca", type=Path, metavar="PEM", help="the authority of callers' certificates")
    parser.add_argument("--kubeconfig", type=Path, help="for running outside of a cluster")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    parser.add_argument("--version", action="version", version=VERSION)
    parsed = parser.parse_args(arguments)
    if len({path is None for path in (parsed.tls_cert, parsed.tls_key, parsed.client_ca)}) > 1:
        parser.error("--tls-cert, --tls-key and --client-ca belong together: give all three or none")
    return parsed


def _options(parsed: argparse.Namespace) -> Options:
    files = TlsFiles(parsed.tls_cert, parsed.tls_key, parsed.client_ca) if parsed.tls_cert else None
    return Options(listen=parsed.listen, health=parsed.health_listen, tls=files)


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT such as 127.0.0.1:{EXTENDER_PORT}")
    return Address(host.strip("[]"), int(port))


if __name__ == "__main__":
    sys.exit(main())
