"""The processes of a node's plugin, as the host sees them."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gpushare_localcluster.cluster import LocalCluster

WATCHDOG, PLUGIN = 0, 1
"""Positions in what ``plugin_processes`` returns: parent and child."""


def plugin_processes(cluster: LocalCluster, node: str) -> list[int]:
    """Returns those of the plugin on ``node``, the watchdog first. Fails where none runs."""
    found = running_processes(cluster, node)
    if not found:
        pytest.fail(f"no plugin runs on {node}")
    return found


def running_processes(cluster: LocalCluster, node: str) -> list[int]:
    """As ``plugin_processes``; empty while the plugin's container is started anew."""
    namespace = Path(f"/proc/{cluster.node_pid(node)}/ns/pid").readlink()
    parents: dict[int, int] = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            is_plugin = any(word.endswith(b"gpushare-plugin") for word in words[:2])
            if is_plugin and (process / "ns" / "pid").readlink() == namespace:
                parents[int(process.name)] = _parent(process)
    return sorted(parents, key=lambda pid: parents[pid] in parents)


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _parent(process: Path) -> int:
    return int((process / "stat").read_text().rpartition(")")[2].split()[1])
