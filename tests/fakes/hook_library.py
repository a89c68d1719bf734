"""The library of hook/, compiled as the image's build does it: what tests see is what containers get.

``python -m tests.fakes.hook_library`` prints where it is.
"""

import hashlib
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "hook"
CACHE = ROOT / "build" / "hook"
NAME = "libgpushare-cuda.so"
ARCHITECTURES = ("aarch64", "x86_64")
THIS_MACHINE = platform.machine()


@cache
def covered() -> frozenset[str]:
    """Returns the functions of the driver that it answers, as the driver exports them."""
    return _listed("COVERED")


@cache
def known() -> frozenset[str]:
    """Returns those, and the ones that it calls."""
    return _listed("COVERED|CALLED")


def _listed(words: str) -> frozenset[str]:
    text = (SOURCES / "loader/functions.def").read_text()
    return frozenset(re.findall(rf"^(?:{words})\((\w+),", text, re.MULTILINE))


@cache
def compiled_hook(*flags: str) -> bytes:
    """Returns the library for this machine: ``hook/build.sh`` says which flags there are."""
    return hook_library(*flags).read_bytes()


@cache
def hook_library(*flags: str, architecture: str = THIS_MACHINE) -> Path:
    """Returns the library, compiled once for what hook/ holds now, and for tests with further ``flags``."""
    path = CACHE / _digest(flags) / architecture / NAME
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            # Another process of tests may do the same now: what is renamed is whole.
            build_hook(Path(scratch, NAME), architecture, flags)
            Path(scratch, NAME).rename(path)
    return path


def build_hook(into: Path, architecture: str, flags: Sequence[str] = (), **environment: str) -> None:
    compiler = f"{sys.executable} -m ziglang cc -target {architecture}-linux-gnu"
    done = subprocess.run(
        [str(SOURCES / "build.sh"), compiler, str(into), *flags],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"hook/build.sh:\n{done.stdout}{done.stderr}"


def _digest(flags: Sequence[str]) -> str:
    content = hashlib.sha256("\0".join(flags).encode())
    for path in sorted(path for path in SOURCES.rglob("*") if path.is_file()):
        content.update(f"\n{path.relative_to(SOURCES)}\n".encode() + path.read_bytes())
    return content.hexdigest()[:16]


if __name__ == "__main__":
    print(*(hook_library(architecture=architecture) for architecture in ARCHITECTURES), sep="\n")
