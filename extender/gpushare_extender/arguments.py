"""The command line of ``gpushare-extender``."""

import argparse
import os
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpushare_core.api.enums import LogLevel
from gpushare_core.api.names import EXTENDER_PORT, HOST_ADDRESS_VARIABLE, NAMESPACE
from gpushare_core.kube.credentials import own_namespace
from gpushare_core.process.arguments import Parser
from gpushare_core.process.version import VERSION
from gpushare_extender import PROGRAM
from gpushare_extender.transport.endpoints import Address
from gpushare_extender.transport.tls import TlsFiles
from gpushare_extender.verbs.server import MAX_REQUEST

LOG_FILE = f"{PROGRAM}.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    listen: Address
    also: tuple[Address, ...] = ()
    """More addresses to listen on, while the port is being changed and not every kube-scheduler knows the new
    one."""
    namespace: str = NAMESPACE
    """Of the Leases, and of the object that makes kube-scheduler try pods again."""
    identity: str = field(default_factory=lambda: f"{socket.gethostname()}_{uuid.uuid4()}")
    """In the Leases; new after every start."""
    health: Address | None = None
    """Where the kubelet's probes and Prometheus ask by plain HTTP."""
    metrics: Address | None = None
    """Where Prometheus reads the metrics by TLS and with a token; needs ``tls``. The health port's number on
    the host's address: no further port of the host is taken."""
    tls: TlsFiles | None = None
    max_request: int = MAX_REQUEST
    """Bytes."""
    log_level: str = LogLevel.INFO
    """While no policy sets another one."""


def parse(arguments: Sequence[str] | None, *, description: str | None) -> argparse.Namespace:
    parser = Parser(prog=PROGRAM, description=description)
    parser.add_argument(
        "--listen",
        type=_address,
        action="append",
        metavar="HOST:PORT",
        help="address for kube-scheduler; repeat it while the port is being changed (default:"
        f" 127.0.0.1:{EXTENDER_PORT})",
    )
    parser.add_argument(
        "--health-listen",
        type=_address,
        metavar="HOST:PORT",
        help="also serve /healthz, /readyz and /metrics here, by plain HTTP without client certificates",
    )
    _add_tls_arguments(parser)
    parser.add_argument("--kubeconfig", type=Path, help="default: the pod's ServiceAccount")
    parser.add_argument(
        "--largest-request-mib",
        type=int,
        default=MAX_REQUEST // 2**20,
        metavar="MIB",
        help="maximum; about 50 for 5,000 nodes without nodeCacheCapable (default: %(default)s)",
    )
    parser.add_argument("--namespace", help="namespace of the Lease; default: the pod's own")
    _add_log_arguments(parser)
    parser.add_argument("--version", action="version", version=VERSION)
    parsed = parser.parse_args(arguments)
    if (parsed.tls_cert is None) != (parsed.client_ca is None) or (parsed.tls_key and not parsed.tls_cert):
        parser.error("--tls-cert and --client-ca need each other, and --tls-key needs both")
    return parsed


def _add_log_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-level",
        choices=[level.value for level in LogLevel],
        default=LogLevel.INFO.value,
        help="level while there is no policy (default: %(default)s)",
    )
    parser.add_argument(
        "--log-folder",
        type=Path,
        help=f"folder to keep the log in, too: as {LOG_FILE} and a few earlier files",
    )


def _add_tls_arguments(parser: argparse.ArgumentParser) -> None:
    tls = parser.add_argument_group(
        "mutual TLS",
        "The extender waits for these files, rereads them when they change, and exits when they are gone.",
    )
    tls.add_argument("--tls-cert", type=Path, metavar="PEM", help="the extender's certificate")
    tls.add_argument(
        "--tls-key", type=Path, metavar="PEM", help="key of that certificate, if not in the same file"
    )
    tls.add_argument("--client-ca", type=Path, metavar="PEM", help="CA of the client certificates to accept")


def options_of(parsed: argparse.Namespace) -> Options:
    files = (
        TlsFiles(parsed.tls_cert, parsed.tls_key or parsed.tls_cert, parsed.client_ca)
        if parsed.tls_cert
        else None
    )
    host, health = os.environ.get(HOST_ADDRESS_VARIABLE, ""), parsed.health_listen
    listen, *also = parsed.listen or [Address("127.0.0.1", EXTENDER_PORT)]
    return Options(
        listen=listen,
        also=tuple(also),
        namespace=parsed.namespace or own_namespace(),
        health=health,
        metrics=Address(host, health.port) if files and health and host else None,
        tls=files,
        max_request=parsed.largest_request_mib * 2**20,
        log_level=parsed.log_level,
    )


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT such as 127.0.0.1:{EXTENDER_PORT}")
    return Address(host.strip("[]"), int(port))
