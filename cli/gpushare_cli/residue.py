"""``audit --residue``: looks at objects and files, and says what of ours is left."""

import asyncio
import socket
from argparse import Namespace

from gpushare_cli.decide.report import ExitCode, residue_json, residue_text
from gpushare_cli.gather.host_files import FOLDERS, read_host_files
from gpushare_cli.gather.traces import COLLECTIONS, read_traces
from gpushare_core.audit.residue import residue
from gpushare_core.kube.client import KubeClient


async def find_residue(client: KubeClient, options: Namespace) -> tuple[str, ExitCode]:
    """Returns what to print, and the exit status.

    Raises:
        CannotLookError: something cannot be looked at.
    """
    objects = await read_traces(client)
    looked, hosts = [f"{len(COLLECTIONS)} kinds of objects"], {}
    if options.host_root:
        host = options.node or socket.gethostname()
        hosts[host] = await asyncio.to_thread(read_host_files, options.host_root)
        looked += [f"{host}:/{folder}" for folder in FOLDERS]
    found = residue(objects, hosts)
    text = residue_json(found) if options.output == "json" else residue_text(found, looked)
    return text, ExitCode.FOUND if found else ExitCode.NONE
