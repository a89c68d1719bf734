"""Entry point: ``gpushare-operator``."""

import argparse
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import kopf

from gpushare_core.api.names import NAMESPACE
from gpushare_core.log import configure_logging
from gpushare_core.version import VERSION
from gpushare_operator.app import Process
from gpushare_operator.desired.installation import Installation

HEALTH_PORT = 9650


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until a signal comes."""
    options = parser(os.environ).parse_args(arguments)
    configure_logging(options.log_level)
    for chatty in ("aiohttp.access", "kopf.activities.probe", "kopf.objects"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    if options.kubeconfig:
        # kopf knows no other way to be told of a kubeconfig.
        os.environ["KUBECONFIG"] = str(options.kubeconfig)
    process = Process(Installation(namespace=options.namespace, image=options.image), options.kubeconfig)
    kopf.run(
        registry=process.registry(),
        standalone=True,
        # Of the kinds that live in namespaces only our own; the others are followed all the same.
        namespaces=[options.namespace],
        liveness_endpoint=f"http://0.0.0.0:{options.health_port}/healthz",
    )
    return 0


def parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Defaults come from ``environment``, which the Deployment sets."""
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
