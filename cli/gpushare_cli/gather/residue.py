"""What is left of gpushare in objects and files."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gpushare_cli.decide.residue import ResidueEntry, ResidueReport
from gpushare_cli.gather.cluster import COLLECTIONS, read_traces
from gpushare_cli.gather.host_files import FOLDERS, read_host_files
from gpushare_cli.output.progress import ProgressLine
from gpushare_core.kube.client import KubeClient
from gpushare_core.residue import Residue, residue
from gpushare_core.text.json_object import Json

LOOK_SECONDS = 3.0
WAITING = "looking for {seconds:g} s: kubelets write once more what they remember of plugins"

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRoot:
    """A host whose files are looked at."""

    path: Path | None = None
    """Where its root is mounted here; None: no files are looked at."""
    node: str = ""
    """The host's name; by default that of the machine on which this runs."""

    @property
    def name(self) -> str:
        return self.node or socket.gethostname()


async def find_residue(
    client: KubeClient,
    *,
    host: HostRoot,
    settle: float,
    progress: ProgressLine,
    may_have: Callable[[Json], bool] = lambda _: True,
    sleep: Sleep = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> ResidueReport:
    """Looks until something is found that does not go by itself, or for ``settle`` seconds.

    Kubelets may write residue, which goes by itself, some seconds after a deletion. ``clock`` is in steady
    seconds. ``may_have``: which objects are looked at, each as JSON with its kind.

    Raises:
        CannotLookError: an object or a file cannot be read.
    """
    until, found = clock() + settle, await _look(client, host, may_have)
    if settle and _may_change(found):
        progress.doing(WAITING.format(seconds=settle))
    while _may_change(found) and (left := until - clock()) > 0:
        await sleep(min(left, LOOK_SECONDS))
        found = await _look(client, host, may_have)
    return ResidueReport(residue=[*map(residue_entry, found)], looked=_looked(host))


async def _look(client: KubeClient, host: HostRoot, may_have: Callable[[Json], bool]) -> list[Residue]:
    objects, hosts = filter(may_have, await read_traces(client)), {}
    if host.path:
        hosts[host.name] = await asyncio.to_thread(read_host_files, host.path)
    return residue(objects, hosts)


def _may_change(found: Iterable[Residue]) -> bool:
    return all(left.passes for left in found)


def _looked(host: HostRoot) -> list[str]:
    folders = [f"{host.name}:/{folder}" for folder in FOLDERS] if host.path else []
    return [f"{len(COLLECTIONS)} kinds of objects", *folders]


def residue_entry(left: Residue) -> ResidueEntry:
    return ResidueEntry(where=left.where, sentence=left.sentence, passes=left.passes)
