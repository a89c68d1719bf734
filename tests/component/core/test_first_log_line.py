"""The first line of a log says which program of which version wrote it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gpushare_core.process.version import VERSION

PROGRAMS = Path(sys.executable).parent
NOWHERE = ("--kubeconfig", "/nowhere/kubeconfig")


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        pytest.param("gpushare-operator", NOWHERE, id="operator"),
        pytest.param("gpushare-plugin", ("--node", "gpu-1", *NOWHERE), id="plugin"),
        pytest.param("gpushare-extender", NOWHERE, id="extender"),
        pytest.param("gpushare-hostctl", ("restore", "--root", "/nowhere"), id="hostctl"),
        pytest.param("gpushare-hostctl", ("log-folder", "--folder", "/nowhere"), id="hostctl in a pod"),
    ],
)
def test_the_first_line_names_program_and_version(program: str, arguments: tuple[str, ...]) -> None:
    command = [str(PROGRAMS / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    first = json.loads(done.stderr.splitlines()[0])
    assert first["message"] == f"{program} {VERSION} starts"


@pytest.mark.parametrize("program", ["gpushare-extender", "gpushare-plugin"])
def test_so_does_the_first_line_of_its_file_on_the_host(program: str, tmp_path: Path) -> None:
    node = ("--node", "gpu-1") if program == "gpushare-plugin" else ()
    command = [str(PROGRAMS / program), *node, *NOWHERE, "--log-folder", str(tmp_path)]
    subprocess.run(command, capture_output=True, check=False, timeout=300)
    first = json.loads((tmp_path / f"{program}.log").read_text().splitlines()[0])
    assert first["message"] == f"{program} {VERSION} starts"
