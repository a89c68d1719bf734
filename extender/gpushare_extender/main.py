"""gpushare-extender: the extender that kube-scheduler asks which nodes and cards take a pod."""

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gpushare_core.api.enums import LogLevel
from gpushare_core.api.names import EXTENDER_PORT, HOST_ADDRESS_VARIABLE, NAMESPACE
from gpushare_core.health_server import CannotServeError
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import (
    Credentials,
    NoCredentialsError,
    find_credentials,
    own_namespace,
)
from gpushare_core.kube.lease_holder import NotHeldError
from gpushare_core.process.arguments import Parser
from gpushare_core.process.log import configure_logging, log_start
from gpushare_core.process.log_file import log_file
from gpushare_core.process.malloc import limit_malloc_arenas
from gpushare_core.process.metrics import PATH, new_registry
from gpushare_core.process.version import VERSION
from gpushare_extender.audit.audit_task import BookAudit, ChangedNodes
from gpushare_extender.audit.report import BooksReport
from gpushare_extender.bind.binder import PARALLEL_BINDS, Binder
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.bind.lease import BindLease
from gpushare_extender.bind.node_pauses import NodePauses
from gpushare_extender.bind.stale_reservations import StaleReservations
from gpushare_extender.cluster.activation import WakeUp, wake_for_others
from gpushare_extender.cluster.calls import CallReport
from gpushare_extender.cluster.log_levels import LogLevels
from gpushare_extender.cluster.other_schedulers import OtherSchedulers
from gpushare_extender.cluster.paced_pods import PacedPods
from gpushare_extender.cluster.unserved_pods import UNPLACED, UnservedPods
from gpushare_extender.cluster.watchers import (
    Watch,
    WatchHealth,
    free_unreleased_pods,
    watch_pods,
    watch_share_nodes,
)
from gpushare_extender.decide.waiting.offered_pods import OfferedPods
from gpushare_extender.decide.waiting.unschedulable_pods import UnschedulablePods
from gpushare_extender.ledger.ledger import Ledger
from gpushare_extender.ledger.listener import LedgerListener
from gpushare_extender.objects.pod_reference import PodReference
from gpushare_extender.preempt.preemptions import Preemptions
from gpushare_extender.transport.endpoints import (
    Address,
    Endpoint,
    HealthPortEndpoint,
    serving,
)
from gpushare_extender.transport.listener import PROTOCOLS, Http2Service, ListenerLimits
from gpushare_extender.transport.tls import ServerTls, TlsFiles
from gpushare_extender.transport.tls_buffers import use_small_tls_buffers
from gpushare_extender.verbs.health import HealthApi
from gpushare_extender.verbs.metrics import ExtenderMetrics, show_figures
from gpushare_extender.verbs.metrics_access import MetricsAccess, reviewer
from gpushare_extender.verbs.metrics_port import metrics_endpoint, serving_metrics
from gpushare_extender.verbs.server import (
    MAX_REQUEST,
    ExtenderApi,
    application,
    handler,
)

FIELD_MANAGER = "gpushare-extender"
LOG_FILE = "gpushare-extender.log"
DRAIN_SECONDS = 15.0
"""For binds under way at the end; half of the kubelet's default grace period."""

_log = logging.getLogger("gpushare_extender")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says. ``health``: where the kubelet's probes are answered besides."""

    listen: Address
    also: tuple[Address, ...] = ()
    """Where it listens besides: another port was asked for, and not every kube-scheduler knows it yet."""
    namespace: str = NAMESPACE
    """Of the Lease, and of the object that wakes kube-scheduler."""
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}_{uuid.uuid4()}")
    """In the Lease: another one after every start."""
    health: Address | None = None
    metrics: Address | None = None
    """Where Prometheus reads the metrics by TLS and with a token; needs ``tls``."""
    tls: TlsFiles | None = None
    max_request: int = MAX_REQUEST
    """Bytes."""
    log_level: str = LogLevel.INFO
    """Where no policy says another one."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until SIGTERM or SIGINT. Returns the exit code: 1 when it cannot start or cannot go on."""
    limit_malloc_arenas()
    parsed = _parse(arguments)
    configure_logging(parsed.log_level)
    use_small_tls_buffers()
    with log_file(parsed.log_folder / LOG_FILE) if parsed.log_folder else contextlib.nullcontext():
        log_start("gpushare-extender", VERSION)
        return _run(parsed)


def _run(parsed: argparse.Namespace) -> int:
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
    stop: asyncio.Event | None = None,
) -> int:
    """Serves until ``stop`` or a signal, then finishes the binds under way.

    Returns the exit code: 1 when a watch ended.

    Raises:
        CannotServeError: an address cannot be had; of several to listen on, none.
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
    """Has a connection for every bind, and for all that may go on beside them: the Lease must not wait."""
    return KubeClient(credentials, connections=PARALLEL_BINDS + 16, field_manager=FIELD_MANAGER)


@dataclass(frozen=True)
class LedgerChanges(LedgerListener):
    """Hands on what the ledger tells."""

    activation: WakeUp
    nodes: ChangedNodes

    def has_room(self, name: str, amount: int) -> None:
        self.activation.has_room(name, amount)

    def card_has_room(self) -> None:
        self.activation.card_has_room()

    def fits(self, uid: str) -> None:
        self.activation.fits(uid)

    def node_changed(self, node: str) -> None:
        self.nodes.node_changed(node)


@dataclass(frozen=True, slots=True)
class Extender:
    """The parts of one extender."""

    api: ExtenderApi
    lease: BindLease
    pauses: NodePauses
    wake_up: WakeUp
    preemptions: Preemptions
    calls: CallReport
    audit: BookAudit
    books: BooksReport
    watches: tuple[Watch, Watch]
    unserved: UnservedPods
    others: OtherSchedulers

    @classmethod
    def create(cls, client: KubeClient, options: Options) -> "Extender":
        timing = BindTiming()
        wake_up = WakeUp(client, options.namespace, UnschedulablePods(), timing.now)
        changes = ChangedNodes(timing.clock)
        ledger = Ledger(LedgerChanges(wake_up, changes))
        audit = BookAudit(ledger, changes)
        books = BooksReport(client, options.namespace, options.identity, audit.differences, timing.now)
        audit.told = books.changed
        pods = WatchHealth("pods", settled=freeze_gc)
        share_nodes = WatchHealth("gpusharenodes", settled=freeze_gc)
        pauses = NodePauses(client, ledger, timing)
        levels = LogLevels(options.log_level)
        watches = (
            Watch(lambda: watch_pods(client, ledger, pods, pauses.gone), pods),
            Watch(
                lambda: watch_share_nodes(client, ledger, share_nodes, pauses.reported, levels), share_nodes
            ),
        )
        lease = BindLease(client, options.namespace, options.identity, partial(_read_again, watches))
        registry = new_registry("gpushare-extender")
        metrics = ExtenderMetrics(registry)
        offered = OfferedPods()

        def bound(pod: PodReference, node: str) -> None:
            offered.settled(pod.uid)
            pauses.bound(pod, node)

        binder = Binder(client, ledger, lease.hold, timing, bound=bound, ended=metrics.bind_ended)
        show_figures(
            registry,
            ledger,
            watches=(pods, share_nodes),
            binds_under_way=lambda: binder.under_way,
            differing=audit.found,
        )
        lease.in_use = binder.may_be_binding
        health = HealthApi(
            (pods, share_nodes),
            ServerTls(options.tls, protocols=PROTOCOLS) if options.tls else None,
            former=frozenset(map(str, options.also)),
            registry=registry,
        )
        calls = CallReport(client, options.namespace, options.identity, timing.now, timing.clock)
        api = ExtenderApi(
            ledger,
            binder,
            health,
            wake_up.refused,
            calls.called,
            offered=offered,
            metrics=metrics,
            differing=audit.found,
        )
        preemptions = Preemptions(
            client=client,
            ledger=ledger,
            preemptors=api.preemptors,
            ending=api.ending,
            permit=lease.hold,
            would_fit=wake_up.fits,
            has_seen_all=api.sampled.has_ended,
            timing=timing,
            attempted=metrics.eviction_attempted,
        )
        unserved = UnservedPods(client, ledger, PacedPods(client, UNPLACED))
        others = OtherSchedulers(client, ledger, options.namespace, api.schedulers, PacedPods(client))
        return cls(api, lease, pauses, wake_up, preemptions, calls, audit, books, watches, unserved, others)

    def tasks(self) -> Iterable[Coroutine[Any, Any, None]]:
        """Returns what runs as long as the extender does."""
        binder = self.api.binder
        return (
            *(watch.run() for watch in self.watches),
            self.lease.keep(),
            self.pauses.end_in_time(),
            free_unreleased_pods(self.api.ledger),
            self.wake_up.run(),
            wake_for_others(self.wake_up, self.api.offered, binder.timing.clock, binder.timing.sleep),
            self.preemptions.run(),
            self.unserved.run(),
            self.others.run(),
            self.calls.run(),
            self.audit.run(),
            self.books.run(),
            *([tls.end_when_gone()] if (tls := self.api.health.tls) else []),
            StaleReservations(binder.client, self.api.ledger, binder.timing).release(),
        )

    async def finish(self) -> None:
        """Sees the binds under way to their end; only then another extender may bind at once."""
        left = await self.api.binder.drain(DRAIN_SECONDS)
        await self.books.withdraw()
        if self.lease.in_use():
            _log.warning("of %d binds it is not known how they end: the Lease has to expire", max(left, 1))
            return
        try:
            await self.lease.release()
        except NotHeldError as error:
            _log.warning("the next extender has to wait until the Lease has expired: %s", error)


def freeze_gc() -> None:
    """Keeps the garbage collector from what there is now: at 5,000 nodes each look at the ledger keeps
    kube-scheduler waiting for a tenth of a second, and finds nothing, for nothing in it refers to itself.

    What was in use by chance at the list before, such as connections, is collected now."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


async def _read_again(watches: Iterable[Watch]) -> None:
    await asyncio.gather(*(watch.read_again() for watch in watches))


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
    """Runs ``tasks``, also while the last requests are answered: binds need the Lease and the ledger.

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
    """Returns 0 when ``stop`` came; 1 when a task ended, which only a defect can bring about."""
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([stopping, ended], return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        return 0
    stopping.cancel()
    error = ended.exception()
    _log.error("stopping, a task ended that should not: %s", error, exc_info=error)
    return 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(prog="gpushare-extender", description=__doc__)
    parser.add_argument(
        "--listen",
        type=_address,
        action="append",
        metavar="HOST:PORT",
        help=f"may be given several times, while a port changes (127.0.0.1:{EXTENDER_PORT})",
    )
    parser.add_argument(
        "--health-listen",
        type=_address,
        metavar="HOST:PORT",
        help="answer /healthz, /readyz and /metrics here, too, in plain HTTP: for who has no certificate",
    )
    _add_tls_arguments(parser)
    parser.add_argument("--kubeconfig", type=Path, help="for running outside of a cluster")
    parser.add_argument(
        "--largest-request-mib",
        type=int,
        default=MAX_REQUEST // 2**20,
        metavar="MIB",
        help="more for a kube-scheduler without nodeCacheCapable: 5,000 nodes are about 50 (%(default)s)",
    )
    parser.add_argument("--namespace", help="where the Lease is; default: the pod's own")
    parser.add_argument(
        "--log-level",
        choices=[level.value for level in LogLevel],
        default=LogLevel.INFO.value,
        help="where no policy says another one",
    )
    parser.add_argument(
        "--log-folder",
        type=Path,
        help=f"the log is kept there besides, in {LOG_FILE} and a few earlier files",
    )
    parser.add_argument("--version", action="version", version=VERSION)
    parsed = parser.parse_args(arguments)
    if (parsed.tls_cert is None) != (parsed.client_ca is None) or (parsed.tls_key and not parsed.tls_cert):
        parser.error("--tls-cert and --client-ca belong together, and --tls-key to them")
    return parsed


def _add_tls_arguments(parser: argparse.ArgumentParser) -> None:
    tls = parser.add_argument_group(
        "mutual TLS", "The files are waited for and read again when they change; it ends when they are gone."
    )
    tls.add_argument("--tls-cert", type=Path, metavar="PEM", help="the certificate to serve with")
    tls.add_argument("--tls-key", type=Path, metavar="PEM", help="its key, if not in the same file")
    tls.add_argument("--client-ca", type=Path, metavar="PEM", help="the authority of callers' certificates")


def _options(parsed: argparse.Namespace) -> Options:
    files = (
        TlsFiles(parsed.tls_cert, parsed.tls_key or parsed.tls_cert, parsed.client_ca)
        if parsed.tls_cert
        else None
    )
    listen, *also = parsed.listen or [Address("127.0.0.1", EXTENDER_PORT)]
    return Options(
        listen=listen,
        also=tuple(also),
        namespace=parsed.namespace or own_namespace(),
        health=parsed.health_listen,
        metrics=_metrics_address(parsed.health_listen, os.environ.get(HOST_ADDRESS_VARIABLE, ""))
        if files
        else None,
        tls=files,
        max_request=parsed.largest_request_mib * 2**20,
        log_level=parsed.log_level,
    )


def _metrics_address(health: Address | None, host: str) -> Address | None:
    """Returns where /metrics is answered by TLS, to whom the API server lets GET /metrics: at the number of
    the health port on the host's address, so that no further port of the host is taken."""
    return Address(host, health.port) if health and host else None


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT such as 127.0.0.1:{EXTENDER_PORT}")
    return Address(host.strip("[]"), int(port))


if __name__ == "__main__":
    sys.exit(main())
