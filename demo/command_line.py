"""``kubectl gpushare`` as it is in this checkout's environment."""

import os
import subprocess
import sys
from pathlib import Path

from gpushare_localcluster.cluster import LocalCluster

COLUMNS = 76
"""Of what it prints: a page of 80 without the indentation of the demo's console."""
SECONDS = 240.0
ANSWERS = (0, 1)
"""Exit statuses: all is well, or the answer is no."""


class NotAnsweredError(Exception):
    """The command could not look; the text has what it said."""


def answer_of(cluster: LocalCluster, *arguments: str) -> str:
    """Returns what ``kubectl gpushare`` prints. Raises ``NotAnsweredError``."""
    folder = Path(sys.executable).parent
    environment = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": f"{folder}:{os.environ.get('PATH', '')}",
        "COLUMNS": str(COLUMNS),
    }
    done = subprocess.run(
        [str(cluster.binary.kubectl), "gpushare", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode not in ANSWERS:
        raise NotAnsweredError(f"kubectl gpushare {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout
