"""The Go engine as a program that answers cases."""

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpushare_core.text.json_object import Json

SOURCES = Path(__file__).resolve().parents[2] / "scheduler"
FLAGS = {
    "CGO_ENABLED": "0",
    "GOTOOLCHAIN": "local",
    "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
}
"""The same for every command: with others the standard library is compiled once more."""


def build(go: Path, program: Path, package: str = "./internal/cases/answer") -> Path:
    """Compiles a program of the scheduler's module with the toolchain ``go``, and returns where it is."""
    subprocess.run(
        [go, "build", "-o", program, package],
        cwd=SOURCES,
        env={**os.environ, **FLAGS},
        check=True,
    )
    return program


def answers(program: Path, cases: Sequence[Json]) -> list[Any]:
    """Returns what the Go engine answers to each of ``cases``."""
    lines = "".join(f"{json.dumps(case)}\n" for case in cases)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]
