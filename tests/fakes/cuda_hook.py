"""The hook, made by the machine's compiler as the image's build makes it, or with flags for tests."""

import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tests.fakes.cuda_driver import compiler

FOLDER = Path(__file__).parents[2] / "hook"


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
