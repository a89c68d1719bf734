"""The hook, made by the machine's compiler as the image's build makes it, or with flags for tests."""

import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.fakes.cuda_driver import compiler

FOLDER = Path(__file__).parents[2] / "hook"


@cache
def covered() -> frozenset[str]:
    """Returns the functions of the driver that it answers, as the driver exports them."""
    return _listed("COVERED")


@cache
def known() -> frozenset[str]:
    """Returns those, and the ones that it calls."""
    return _listed("COVERED|CALLED")


def _listed(words: str) -> frozenset[str]:
    text = (FOLDER / "functions.def").read_text()
    return frozenset(re.findall(rf"^(?:{words})\((\w+)\)", text, re.MULTILINE))


@cache
def compiled_hook(*flags: str) -> bytes:
    """Returns the library, made once: ``hook/build.sh`` says which flags there are."""
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "hook.so")
        command = [FOLDER / "build.sh", compiler(), built, *flags]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the hook does not compile: {done.stderr}")
        return built.read_bytes()
