"""``kubectl gpushare`` as somebody has it whose ``kubectl-gpushare`` is in PATH."""

import os
import subprocess
import sys
from pathlib import Path

from gpushare_localcluster.cluster import LocalCluster

COMMANDS = Path(sys.executable).parent
"""Where kubectl-gpushare is installed."""


def gpushare(
    cluster: LocalCluster, *arguments: str, seconds: float = 180.0, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    environment = {
        **{name: value for name, value in os.environ.items() if name != "COLUMNS"},
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": f"{COMMANDS}:{os.environ['PATH']}",
    }
    command = [str(cluster.binary.kubectl), "gpushare", *arguments]
    return subprocess.run(
        command, env=environment, input=stdin, capture_output=True, text=True, timeout=seconds, check=False
    )
