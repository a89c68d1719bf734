"""``kubectl gpushare`` as somebody has it whose ``kubectl-gpushare`` is in PATH."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.interrupts import takes_interrupts

from gpushare_localcluster.cluster import LocalCluster

COMMANDS = Path(sys.executable).parent
"""Where kubectl-gpushare is installed."""
INTERRUPTED = 130
"""Exit status after Ctrl-C."""


def gpushare(
    cluster: LocalCluster, *arguments: str, seconds: float = 260.0, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(cluster, *arguments),
        env=environment(cluster),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


@contextmanager
def served_page(cluster: LocalCluster, *, seconds: float = 240.0) -> Iterator[str]:
    """Yields the address that ``kubectl gpushare web`` prints, and presses Ctrl-C afterwards."""
    with subprocess.Popen(
        command(cluster, "web"),
        env=environment(cluster),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=takes_interrupts,
    ) as serving:
        assert serving.stdout is not None
        assert serving.stderr is not None
        try:
            readable, _, _ = select.select([serving.stdout], [], [], seconds)
            assert readable, f"kubectl gpushare web has printed no address within {seconds:g} s"
            address = serving.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), serving.stderr.read()
            yield address
            serving.send_signal(signal.SIGINT)
            assert serving.wait(timeout=seconds) == INTERRUPTED
        finally:
            serving.kill()


def command(cluster: LocalCluster, *arguments: str) -> list[str]:
    return [str(cluster.binary.kubectl), "gpushare", *arguments]


def environment(cluster: LocalCluster) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if name != "COLUMNS"},
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": f"{COMMANDS}:{os.environ['PATH']}",
    }
