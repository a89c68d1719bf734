"""Entry point: ``gpushare-operator``."""

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import kopf

from gpushare_core.api.enums import LogLevel
from gpushare_core.api.names import NAMESPACE
from gpushare_core.health_server import CannotServeError
from gpushare_core.kube import paths
from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials, NoCredentialsError
from gpushare_core.kube.errors import ApiError, UnreachableError, asked_to_wait
from gpushare_core.kubernetes_minors import NEWEST
from gpushare_core.process.arguments import Parser
from gpushare_core.process.log import configure_logging, log_start
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_core.text.printable import printable
from gpushare_core.text.whole_number import whole_number
from gpushare_operator.app import App
from gpushare_operator.desired.names import SCHEDULER_IMAGE, Installation
from gpushare_operator.desired.programs import UnusableProgramsError, read_programs
from gpushare_operator.installation_check import NotWorkingError, check
from gpushare_operator.process.leadership import (
    FEWEST_LEASE_SECONDS,
    LEASE_SECONDS,
    Leadership,
    LeadershipLostError,
    LeaseTimes,
)
from gpushare_operator.process.login import login
from gpushare_operator.process.uninstall import StillThereError, uninstall

HEALTH_PORT = 9650
ACCOUNT = "gpushare-operator"
"""Name of the operator's ServiceAccount, and of its Deployment."""
UNINSTALL = "uninstall"
CHECK = "check"
"""Commands; without one the operator runs."""

_log = logging.getLogger("gpushare_operator")


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit code."""
    options = parser().parse_args(arguments)
    configure_logging(options.log_level)
    log_start(ACCOUNT, VERSION)
    if options.kubeconfig:
        # kopf takes a kubeconfig from nowhere else.
        os.environ["KUBECONFIG"] = str(options.kubeconfig)
    try:
        credentials = asyncio.run(login(options.kubeconfig))
    except NoCredentialsError as error:
        _log.error("%s", error)
        return 1
    if problem := renamed(os.environ):
        _log.error("%s", problem)
        return 1
    if options.command:
        return asyncio.run(_run_command(credentials, options))
    leadership = Leadership.of(
        credentials, options.namespace, identity=identity(os.environ), times=LeaseTimes(options.lease_seconds)
    )
    try:
        installation = asyncio.run(installed(credentials, options))
        app = App(
            installation, credentials, leadership, kubeconfig=options.kubeconfig, log_level=options.log_level
        )
        return asyncio.run(serve(app, options))
    except (CannotServeError, UnusableProgramsError) as error:
        _log.error("%s", error)
        return 1


async def installed(credentials: Credentials, options: argparse.Namespace) -> Installation:
    """Raises UnusableProgramsError: the option ``--programs`` cannot be read."""
    given = Installation(
        namespace=options.namespace,
        image=options.image or "",
        scheduler_image=options.scheduler_image,
        engine_image=options.engine_image,
        programs=read_programs(options.programs),
    )
    if options.image:
        return given
    return of_deployment(given, await own_deployment(credentials, options.namespace))


async def _run_command(credentials: Credentials, options: argparse.Namespace) -> int:
    def report(line: str) -> None:
        print(f"{'ok: ' if options.command == CHECK else ''}{printable(line)}", flush=True)

    async with KubeClient(credentials) as client:
        try:
            if options.command == CHECK:
                await check(client, options.namespace, timeout=options.timeout, report=report)
            else:
                await uninstall(client, timeout=options.timeout, report=report)
        except (StillThereError, NotWorkingError) as error:
            print(printable(str(error)), file=sys.stderr)
            return 1
    return 0


def identity(environment: Mapping[str, str]) -> str:
    """Returns the name of this process in the Lease.

    In a pod it is the pod's: when a container starts again its earlier process is gone, and need not be
    waited for.
    """
    return environment.get("POD_ID") or f"{socket.gethostname()}_{uuid.uuid4()}"


async def serve(app: App, options: argparse.Namespace, *, stop: asyncio.Event | None = None) -> int:
    """Stands by until it has the Lease, then works until ``stop``, a signal, or the loss of the Lease.

    Returns the exit code, 1 when the Lease was lost. Raises CannotServeError: the health port is taken.
    """
    stop = stop or asyncio.Event()
    async with app.health_server(options.health_port), app.leadership.client:
        if not await _won(app.leadership, stop):
            return 0
        keeping = asyncio.create_task(_keep(app.leadership, stop))  # before kopf, which ends later tasks
        try:
            with suppress(asyncio.CancelledError):
                await _work(app, options.namespace, stop)
            return int(keeping.done())
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])
            await app.leadership.give_up()


async def _won(leadership: Leadership, stop: asyncio.Event) -> bool:
    """Returns whether the Lease is ours; if not, ``stop`` or a signal came first."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):  # kopf takes them over
        loop.add_signal_handler(number, stop.set)
    winning, stopping = asyncio.create_task(leadership.win()), asyncio.create_task(stop.wait())
    await asyncio.wait([winning, stopping], return_when=asyncio.FIRST_COMPLETED)
    for task in (winning, stopping):
        task.cancel()
    await asyncio.wait([winning, stopping])
    if stop.is_set():
        await leadership.give_up()
        return False
    await winning  # raises what went wrong
    return True


async def _work(app: App, namespace: str, stop: asyncio.Event) -> None:
    registry = app.registry()

    async def end(**_: object) -> None:
        # After a signal kopf would wait 5 seconds for its task that waits for ``stop``, and the operator that
        # takes over would wait as long for the Lease.
        stop.set()

    kopf.on.cleanup(registry=registry, id="end")(end)
    await kopf.operator(registry=registry, standalone=True, namespaces=[namespace], stop_flag=stop)


async def _keep(leadership: Leadership, stop: asyncio.Event) -> None:
    """Ends the process when the Lease is lost: a new process holds nothing that has become wrong."""
    try:
        await leadership.keep()
    except LeadershipLostError as error:
        _log.error("exiting, because the Lease is lost: %s", error)
    stop.set()


def renamed(environment: Mapping[str, str]) -> str:
    """Returns what is wrong with the installation's names, or an empty text.

    Objects refer to each other by name, and admission policies name the ServiceAccounts.
    """
    account = environment.get("SERVICE_ACCOUNT", ACCOUNT)
    if account == ACCOUNT:
        return ""
    return (
        f"this runs under the account {account}, not {ACCOUNT}: namePrefix and nameSuffix of kustomize do not"
        " work with these manifests; leave them out and give another namespace instead"
    )


async def own_deployment(credentials: Credentials, namespace: str) -> Json:
    """Waits until the Deployment can be read."""
    path = f"{paths.deployments(namespace)}/{ACCOUNT}"
    async with KubeClient(credentials) as client:
        backoff = Backoff(first=0.5, most=30.0)
        while True:
            try:
                return await client.get(path)
            except (ApiError, UnreachableError) as error:
                delay = backoff.next_delay(asked_to_wait(error))
                _log.warning(
                    "cannot read the operator's Deployment, trying again in %.1f s: %s", delay, error
                )
                await asyncio.sleep(delay)


def of_deployment(given: Installation, deployment: Json) -> Installation:
    """Returns the installation with the image of the container ``operator``, pulled as there; webhooks may
    have put other containers beside it."""
    pod = deployment["spec"]["template"]["spec"]
    operator = next(container for container in pod["containers"] if container["name"] == "operator")
    return replace(
        given,
        image=operator["image"],
        pull_policy=operator.get("imagePullPolicy", ""),
        pull_secrets=tuple(secret["name"] for secret in pod.get("imagePullSecrets", ())),
    )


def parser() -> argparse.ArgumentParser:
    options = Parser(prog="gpushare-operator", description="Puts GPUSharePolicies into effect.")
    options.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    options.add_argument("--kubeconfig", type=Path, help="default: the pod's ServiceAccount")
    options.add_argument(
        "--namespace", default=NAMESPACE, help="namespace of gpushare's objects (default: %(default)s)"
    )
    options.add_argument("--image", help="image of all programs; default: that of the operator's Deployment")
    options.add_argument(
        "--programs",
        default="{}",
        metavar="JSON",
        help="priorityClassName and resources of plugin and extender, instead of the defaults",
    )
    options.add_argument(
        "--scheduler-image",
        default=SCHEDULER_IMAGE,
        help="image of kube-scheduler with backend Dedicated and engine Extender; without a tag, that of the"
        " API server's version (default: %(default)s)",
    )
    options.add_argument(
        "--engine-image",
        type=_repository,
        default="",
        metavar="REPOSITORY",
        help="repository of gpushare's own kube-scheduler images, for engine Plugin. Give no tag: each minor"
        " version of Kubernetes has its own. Default: the operator's with -scheduler appended",
    )
    options.add_argument(
        "--health-port",
        type=int,
        default=HEALTH_PORT,
        help="port of probes and metrics (default: %(default)s)",
    )
    options.add_argument(
        "--lease-seconds",
        type=_lease_seconds,
        default=LEASE_SECONDS,
        metavar="SECONDS",
        help="after so long a standby operator takes over from one that is gone (default: %(default)s)",
    )
    options.add_argument(
        "--log-level",
        default=LogLevel.INFO.value,
        choices=[level.value for level in LogLevel],
        help="level while there is no policy (default: %(default)s)",
    )
    _add_commands(options)
    return options


def _add_commands(options: argparse.ArgumentParser) -> None:
    commands = options.add_subparsers(dest="command", metavar="COMMAND")
    removal = commands.add_parser(
        UNINSTALL, help="delete all policies, and wait until nothing is left of them"
    )
    removal.add_argument(
        "--timeout", type=float, default=240.0, help="seconds to wait (default: %(default)s)"
    )
    checking = commands.add_parser(CHECK, help="say whether the installation works; changes nothing")
    checking.add_argument(
        "--timeout", type=float, default=60.0, help="seconds to wait for the operator (default: %(default)s)"
    )


def _repository(text: str) -> str:
    if ":" in text.rpartition("/")[2] or "@" in text:
        raise argparse.ArgumentTypeError(
            f"{text!r} has a tag or a digest; leave it out: the operator adds one such as {VERSION}-{NEWEST}"
        )
    return text


def _lease_seconds(text: str) -> int:
    if whole_number(text) < FEWEST_LEASE_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {FEWEST_LEASE_SECONDS} on")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
