"""Entry point: ``gpushare-operator``."""

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import kopf

from gpushare_core.api.names import NAMESPACE
from gpushare_core.json_object import Json
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials, NoCredentialsError
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.log import configure_logging
from gpushare_core.version import VERSION
from gpushare_operator.app import App
from gpushare_operator.cluster.kopf_events import EndlessBackoff
from gpushare_operator.cluster.login import login
from gpushare_operator.desired.names import SCHEDULER_IMAGE, Installation
from gpushare_operator.desired.programs import UnusableProgramsError, read_programs
from gpushare_operator.health_server import CannotServeError
from gpushare_operator.uninstall import StillThereError, uninstall

HEALTH_PORT = 9650
ACCOUNT = "gpushare-operator"
"""Name of the operator's ServiceAccount, and of its Deployment."""
UNINSTALL = "uninstall"
"""The command that ends with the last policy; without one the operator runs."""

_log = logging.getLogger("gpushare_operator")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until a signal comes; returns 1 when it cannot start."""
    options = parser().parse_args(arguments)
    configure_logging(options.log_level)
    logging.getLogger("kopf.objects").setLevel(logging.WARNING)  # a line for every event
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
    if options.command == UNINSTALL:
        return asyncio.run(uninstalled(credentials, options.timeout))
    try:
        installation = asyncio.run(installed(credentials, options))
        asyncio.run(serve(App(installation, credentials, options.kubeconfig), options))
    except (CannotServeError, UnusableProgramsError) as error:
        _log.error("%s", error)
        return 1
    return 0


async def installed(credentials: Credentials, options: argparse.Namespace) -> Installation:
    """Returns what is to be known of the installation.

    Raises:
        UnusableProgramsError: the option ``--programs`` cannot be read.
    """
    given = Installation(
        namespace=options.namespace,
        image=options.image or "",
        scheduler_image=options.scheduler_image,
        programs=read_programs(options.programs),
    )
    if options.image:
        return given
    return of_deployment(given, await own_deployment(credentials, options.namespace))


async def uninstalled(credentials: Credentials, timeout: float) -> int:
    """Returns the exit code of the command ``uninstall``."""
    async with KubeClient(credentials) as client:
        try:
            await uninstall(client, timeout=timeout, report=lambda line: print(line, flush=True))
        except StillThereError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


async def serve(app: App, options: argparse.Namespace) -> None:
    """Runs until a signal comes.

    Raises:
        CannotServeError: the health port cannot be had.
    """
    async with app.health.serving(options.health_port):
        with suppress(asyncio.CancelledError):
            await kopf.operator(
                registry=app.registry(),
                standalone=True,
                # Of the kinds that live in namespaces only our own; the others are followed all the same.
                namespaces=[options.namespace],
            )


def renamed(environment: Mapping[str, str]) -> str:
    """Returns what is wrong with the installation's names; empty when nothing is.

    Objects find each other by name, and the admission policies know the accounts by theirs.
    """
    account = environment.get("SERVICE_ACCOUNT", ACCOUNT)
    if account == ACCOUNT:
        return ""
    return (
        f"this runs under the account {account}, not {ACCOUNT}: namePrefix and nameSuffix of kustomize do not"
        " work with these manifests; leave them out and give another namespace instead"
    )


async def own_deployment(credentials: Credentials, namespace: str) -> Json:
    """Returns the operator's own Deployment; waits until it can be read."""
    path = f"{paths.deployments(namespace)}/{ACCOUNT}"
    async with KubeClient(credentials) as client:
        for delay in EndlessBackoff():
            try:
                return await client.get(path)
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot read the own Deployment yet, again in %.1f s: %s", delay, error)
                await asyncio.sleep(delay)
    raise AssertionError("the backoff never ends")


def of_deployment(given: Installation, deployment: Json) -> Installation:
    """Returns the installation whose image is that of the container ``operator``, pulled as there. Webhooks
    may have put other containers beside it."""
    pod = deployment["spec"]["template"]["spec"]
    container = next(each for each in pod["containers"] if each["name"] == "operator")
    return replace(
        given,
        image=container["image"],
        pull_policy=container.get("imagePullPolicy", ""),
        pull_secrets=tuple(each["name"] for each in pod.get("imagePullSecrets", ())),
    )


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="gpushare-operator", description="Keeps policies in force.")
    options.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    options.add_argument("--kubeconfig", type=Path, help="for running outside a cluster")
    options.add_argument("--namespace", default=NAMESPACE, help="where its objects go (%(default)s)")
    options.add_argument("--image", help="of all programs; that of the operator's Deployment where not given")
    options.add_argument(
        "--programs",
        default="{}",
        metavar="JSON",
        help="priorityClassName and resources of plugin and extender, where not the usual ones",
    )
    options.add_argument(
        "--scheduler-image",
        default=SCHEDULER_IMAGE,
        help="with backend Dedicated; without a tag it is that of the server's version (%(default)s)",
    )
    options.add_argument("--health-port", type=int, default=HEALTH_PORT, help="%(default)s")
    options.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    commands = options.add_subparsers(dest="command", metavar="COMMAND")
    removal = commands.add_parser(
        UNINSTALL, help="delete all policies, and wait until nothing is left of them"
    )
    removal.add_argument("--timeout", type=float, default=240.0, help="in seconds (%(default)s)")
    return options


if __name__ == "__main__":
    sys.exit(main())
