"""``audit --residue``: reports what is left of gpushare in objects and files."""

import asyncio
import socket
import sys
import time
from argparse import Namespace
from collections.abc import Awaitable, Callable, Iterable

from gpushare_cli.decide.report import AuditStatus, residue_json, residue_text
from gpushare_cli.gather.cluster import COLLECTIONS, read_traces
from gpushare_cli.gather.host_files import FOLDERS, read_host_files
from gpushare_core.kube.client import KubeClient
from gpushare_core.residue import Residue, residue

LOOK_SECONDS = 3.0
WAITING = (
    "Looking for {seconds:g} s: after a deletion kubelets write what they remember of plugins once more,"
    " every ten seconds (--settle 0: look once)."
)

Sleep = Callable[[float], Awaitable[None]]


async def find_residue(
    client: KubeClient,
    options: Namespace,
    *,
    sleep: Sleep = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[str, AuditStatus]:
    """Returns what to print, and the exit status.

    Kubelets may write residue, which goes by itself, some seconds after a deletion. So it looks again while
    it finds nothing else, for ``options.settle`` seconds. ``clock`` is in steady seconds.

    Raises:
        CannotLookError: an object or a file cannot be read.
    """
    until, found = clock() + options.settle, await _look(client, options)
    if options.settle and _may_change(found) and sys.stderr.isatty():
        sys.stderr.write(f"{WAITING.format(seconds=options.settle)}\n")
    while _may_change(found) and (left := until - clock()) > 0:
        await sleep(min(left, LOOK_SECONDS))
        found = await _look(client, options)
    text = residue_json(found) if options.output == "json" else residue_text(found, _looked(options))
    return text, AuditStatus.FOUND if found else AuditStatus.NONE


async def _look(client: KubeClient, options: Namespace) -> list[Residue]:
    objects, hosts = await read_traces(client), {}
    if options.host_root:
        hosts[_host(options)] = await asyncio.to_thread(read_host_files, options.host_root)
    return residue(objects, hosts)


def _may_change(found: Iterable[Residue]) -> bool:
    return all(left.passes for left in found)


def _looked(options: Namespace) -> list[str]:
    folders = [f"{_host(options)}:/{folder}" for folder in FOLDERS] if options.host_root else []
    return [f"{len(COLLECTIONS)} kinds of objects", *folders]


def _host(options: Namespace) -> str:
    return options.node or socket.gethostname()
