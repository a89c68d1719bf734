"""What the two distributions hold, the client and the rest: the image installs both."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpushare_core.process.version import VERSION

ROOT = Path(__file__).resolve().parents[3]
CLIENT = ["cli", "core"]
PROGRAMS = ["extender", "hostctl", "operator", "plugin"]
PRODUCT = [*CLIENT, *PROGRAMS]
HOLDS = {"kubectl_gpushare": CLIENT, "gpushare": PROGRAMS}
PROJECTS = {"kubectl_gpushare": ROOT / "cli", "gpushare": ROOT}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, zipfile.ZipFile]:
    """By the distribution's name."""
    folder = tmp_path_factory.mktemp("wheels")
    for project in PROJECTS.values():
        _build("wheel", project, folder)
    return {name: zipfile.ZipFile(next(folder.glob(f"{name}-*.whl"))) for name in PROJECTS}


def _build(target: str, project: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)


@pytest.mark.parametrize("name", HOLDS)
def test_a_wheel_holds_its_part_of_the_product_and_nothing_of_developers(
    wheels: Mapping[str, zipfile.ZipFile], name: str
) -> None:
    files = wheels[name].namelist()
    folders = {file.partition("/")[0] for file in files}
    assert folders == {f"{name}-{VERSION}.dist-info", *(f"gpushare_{part}" for part in HOLDS[name])}
    suffixes = {Path(file).suffix for file in files if file.startswith("gpushare_")}
    page = {".css", ".html", ".js", ".svg"} if name == "kubectl_gpushare" else set()
    assert suffixes <= {".py", ".pyi", ".typed", *page}


def test_no_file_is_in_both_wheels(wheels: Mapping[str, zipfile.ZipFile]) -> None:
    """So that one can be removed without the other one's."""
    one, other = ({*wheel.namelist()} for wheel in wheels.values())
    assert one & other == set()


def test_the_clients_sources_make_the_same_wheel(
    wheels: Mapping[str, zipfile.ZipFile], tmp_path: Path
) -> None:
    """As `python -m build` does it, without the checkout."""
    _build("sdist", ROOT / "cli", tmp_path)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as sources:
        sources.extractall(tmp_path, filter="data")
    _build("wheel", tmp_path / f"kubectl_gpushare-{VERSION}", tmp_path)
    assert (ROOT / "cli/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    (made,) = tmp_path.glob("*.whl")
    assert zipfile.ZipFile(made).namelist() == wheels["kubectl_gpushare"].namelist()


def test_the_programs_come_with_the_client_of_their_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"kubectl-gpushare=={VERSION}" in project["dependencies"]


def test_all_of_the_product_reaches_the_images_build() -> None:
    """The wheel that is made there leaves out without a word what is not there."""
    sent = (ROOT / ".dockerignore").read_text().splitlines()
    assert [name for name in PRODUCT if f"!{name}" not in sent] == []


def test_every_module_of_the_product_is_in_a_wheel(wheels: Mapping[str, zipfile.ZipFile]) -> None:
    sources = {
        str(path.relative_to(ROOT / name))
        for name in PRODUCT
        for path in (ROOT / name / f"gpushare_{name}").rglob("*.py")
    }
    assert sources <= {file for wheel in wheels.values() for file in wheel.namelist()}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gpushare", [f"gpushare-{program}" for program in PROGRAMS]),
        ("kubectl_gpushare", ["kubectl-gpushare", "kubectl_complete-gpushare"]),
    ],
)
def test_their_commands_are_the_programs(
    wheels: Mapping[str, zipfile.ZipFile], name: str, expected: list[str]
) -> None:
    text = wheels[name].read(f"{name}-{VERSION}.dist-info/entry_points.txt").decode()
    assert [line.partition(" = ")[0] for line in text.splitlines() if " = " in line] == expected


def pins(path: Path) -> dict[str, list[str]]:
    """Returns the hashes of a lock by what is pinned."""
    found: dict[str, list[str]] = {}
    pinned = ""
    for line in path.read_text().splitlines():
        if "==" in line and not line.startswith(" "):
            pinned = line.partition(" ")[0]
        elif "--hash=" in line:
            found.setdefault(pinned, []).append(line.strip(" \\"))
    return found


@pytest.mark.parametrize("lock", ["build", "requirements"])
def test_the_image_is_made_of_what_was_tested(lock: str) -> None:
    everything = pins(ROOT / "requirements.lock")
    of_the_image = pins(ROOT / "image" / f"{lock}.lock")
    assert len(of_the_image) > 3
    assert {name: everything.get(name) for name in of_the_image} == of_the_image


def test_no_developers_tool_is_in_the_image() -> None:
    names = {pin.partition("==")[0] for pin in pins(ROOT / "image" / "requirements.lock")}
    assert names.isdisjoint({"pytest", "mypy", "ruff", "uv", "hatchling", "grpcio-tools", "kmock", "ziglang"})
    assert names >= {"aiohttp", "kopf", "grpcio", "pydantic", "rich"}


def test_the_programs_load_without_what_the_image_has_no_use_for() -> None:
    missing = ["sqlite3", "curses", "distutils", "readline", "dbm"]
    programs = ", ".join(f"gpushare_{name}.main" for name in PRODUCT if name != "core")
    code = f"import sys; sys.modules.update(dict.fromkeys({missing})); import {programs}"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
