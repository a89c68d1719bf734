"""Entry point: ``gpushare-operator``."""

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import kopf

from gpushare_core.api.names import NAMESPACE
from gpushare_core.kube.credentials import NoCredentialsError
from gpushare_core.log import configure_logging
from gpushare_core.version import VERSION
from gpushare_operator.app import App
from gpushare_operator.cluster.login import login
from gpushare_operator.desired.names import Installation

HEALTH_PORT = 9650

_log = logging.getLogger("gpushare_operator")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs until a signal comes; returns 1 when it cannot start."""
    options = parser(os.environ).parse_args(arguments)
    configure_logging(options.log_level)
    for chatty in ("aiohttp.access", "kopf.activities.probe", "kopf.objects"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    if options.kubeconfig:
        # kopf takes a kubeconfig from nowhere else.
        os.environ["KUBECONFIG"] = str(options.kubeconfig)
    try:
        credentials = asyncio.run(login(options.kubeconfig))
    except NoCredentialsError as error:
        _log.error("%s", error)
        return 1
    installation = Installation(namespace=options.namespace, image=options.image)
    kopf.run(
        registry=App(installation, credentials, options.kubeconfig).registry(),
        standalone=True,
        # Of the kinds that live in namespaces only our own; the others are followed all the same.
        namespaces=[options.namespace],
        liveness_endpoint=f"http://0.0.0.0:{options.health_port}/healthz",
    )
    return 0


def parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Returns the parser; defaults come from ``environment``, which the Deployment sets."""
    options = argparse.ArgumentParser(prog="gpushare-operator", description="Keeps policies in force.")
    options.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    options.add_argument("--kubeconfig", type=Path, help="for running outside a cluster")
    options.add_argument("--namespace", default=NAMESPACE, help="where its objects go (%(default)s)")
    image = environment.get("GPUSHARE_IMAGE", f"gpushare:{VERSION}")
    options.add_argument("--image", default=image, help="of all programs (env GPUSHARE_IMAGE, %(default)s)")
    options.add_argument("--health-port", type=int, default=HEALTH_PORT, help="%(default)s")
    options.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    return options


if __name__ == "__main__":
    sys.exit(main())
