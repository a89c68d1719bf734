"""``gpushare-plugin``: offers a node's cards to its kubelet in units of memory."""

import argparse
import asyncio
import gc
import logging
import signal
import sys
from contextlib import nullcontext
from pathlib import Path

from gpushare_core.api.enums import LogLevel
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.health_server import CannotServeError
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import NoCredentialsError, find_credentials, own_namespace
from gpushare_core.process.arguments import Parser
from gpushare_core.process.log import configure_logging, log_start
from gpushare_core.process.log_file import log_file
from gpushare_core.process.malloc import give_back, limit_malloc_arenas
from gpushare_core.process.version import VERSION
from gpushare_plugin.agent import HOOK_FOLDER, Agent, Settings
from gpushare_plugin.heartbeat import Watchdog
from gpushare_plugin.kubelet.pod_resources import PodResources

LOG_FILE = "gpushare-plugin.log"

_log = logging.getLogger(__name__)


def main(watchdog: Watchdog | None = None) -> None:
    limit_malloc_arenas()
    options = parse_arguments(sys.argv[1:])
    fixed = {"node": options.node}
    configure_logging(options.log_level, fixed=fixed)
    freeze_gc()
    with log_file(options.log_folder / LOG_FILE, fixed=fixed) if options.log_folder else nullcontext():
        log_start("gpushare-plugin", VERSION)
        status = asyncio.run(serve(options, watchdog))
    sys.exit(status)


def freeze_gc() -> None:
    """Keeps the garbage collector from what was imported: to walk over all of it takes 10 ms, in the middle
    of a pod's admission."""
    gc.collect()
    gc.freeze()


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="gpushare-plugin", description="Offers a node's GPU cards to its kubelet in units.")
    parser.add_argument("--node", required=True, help="name of the node that the plugin runs on")
    parser.add_argument("--kubeconfig", type=Path, help="default: the pod's ServiceAccount")
    parser.add_argument(
        "--device-plugins-dir",
        type=Path,
        default=Path("/var/lib/kubelet/device-plugins"),
        help="the kubelet's device plugin folder (default: %(default)s)",
    )
    parser.add_argument(
        "--pod-resources-socket",
        type=Path,
        default=Path("/var/lib/kubelet/pod-resources/kubelet.sock"),
        help="the kubelet's PodResources socket (default: %(default)s)",
    )
    parser.add_argument(
        "--health-port",
        type=int,
        default=9640,
        help="port of /healthz, /readyz and /metrics (default: %(default)s)",
    )
    parser.add_argument(
        "--log-level",
        choices=[level.value for level in LogLevel],
        default="info",
        help="level while there is no policy (default: %(default)s)",
    )
    parser.add_argument(
        "--log-folder",
        type=Path,
        help=f"folder to keep the log in, too: as {LOG_FILE} and a few earlier files",
    )
    parser.add_argument(
        "--isolation-folder",
        type=Path,
        help="folder of the hook's files that containers mount; the same path on the node and here",
    )
    parser.add_argument(
        "--hook-folder",
        type=Path,
        default=HOOK_FOLDER,
        help="folder with the hook's library for each architecture",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    return parser.parse_args(arguments)


async def serve(options: argparse.Namespace, watchdog: Watchdog | None = None) -> int:
    """Runs until a signal comes. Returns the exit status."""
    settings = Settings(
        node=options.node,
        device_plugins=options.device_plugins_dir,
        pod_resources=options.pod_resources_socket,
        health_port=options.health_port,
        namespace=own_namespace(),
        log_level=options.log_level,
        isolation_folder=options.isolation_folder,
        hook_folder=options.hook_folder,
    )
    try:
        credentials = find_credentials(options.kubeconfig)
    except NoCredentialsError as error:
        _log.error("cannot reach the API server: %s", error)
        return 1
    async with (
        KubeClient(credentials) as client,
        PodResources(settings.pod_resources, RESOURCES) as resources,
    ):
        return await run_until_stopped(
            Agent(settings, client, resources, give_back=give_back, watchdog=watchdog)
        )


async def run_until_stopped(agent: Agent) -> int:
    """Returns the exit status: 0 after SIGTERM or SIGINT, 1 when a part of the agent failed."""
    running = asyncio.ensure_future(agent.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        _log.info("stopped")
        return 0
    except CannotServeError as error:
        _log.error("%s; is another plugin running on this node?", error)
    except ExceptionGroup:
        _log.exception("exiting, because a task failed")
    return 1
