"""NVIDIA's own runtime finds the driver's functions through the hook.

It goes no further than to find them: what it does next needs private tables of a real driver.
"""

import json
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import pytest
from tests.component.hook.conftest import MakeContainer
from tests.fakes.cuda_container import Container
from tests.fakes.cuda_driver import CudaDriver
from tests.fakes.cuda_user import USERS, exported
from tests.fakes.hook_library import covered

RUNTIMES = {"nvidia-cuda-runtime-cu12": "libcudart.so.12", "nvidia-cuda-runtime": "libcudart.so.13"}
HOOK = "libgpushare-cuda.so"
LOADERS = {"dlsym", "dlvsym", "dlclose"}


def library(wheel: str) -> Path:
    name = RUNTIMES[wheel]
    return next(Path(str(path.locate())) for path in files(wheel) or () if path.name == name)


def functions_of_runtime(container: Container, wheel: str) -> dict[str, set[str]]:
    """Library -> functions of it that the runtime has."""
    command = container.command([sys.executable, USERS / "runtime.py", library(wheel)])
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""
    return {name: set(functions) for name, functions in json.loads(done.stdout).items()}


@pytest.mark.parametrize("wheel", RUNTIMES)
def test_the_runtime_gets_what_takes_memory_from_the_hook(
    wheel: str, make_container: MakeContainer, driver: CudaDriver
) -> None:
    driver.lenient = True
    driver.write()
    plain = functions_of_runtime(make_container(hook=None), wheel)
    assert HOOK not in plain
    asked = driver.asked_names
    assert len(asked) > 400
    symbols = {exported(*name) for name in asked} - {None}
    assert symbols <= plain["libcuda.so.1"]
    hooked = functions_of_runtime(make_container(), wheel)
    assert hooked[HOOK] - LOADERS == symbols & covered()
    assert len(hooked[HOOK]) > 30
    assert symbols - covered() <= hooked["libcuda.so.1"]
    assert driver.asked_names == asked * 2, "the driver is asked for the same names"
