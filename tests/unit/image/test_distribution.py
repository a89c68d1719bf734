"""What the product's distribution holds: that is what the image installs."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = ["cli", "core", "extender", "hostctl", "operator", "plugin"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_holds_the_product_and_nothing_of_developers(wheel: zipfile.ZipFile) -> None:
    folders = {name.partition("/")[0] for name in wheel.namelist()}
    assert sorted(folders) == ["gpushare-0.1.0.dist-info", *(f"gpushare_{name}" for name in PRODUCT)]
    assert {Path(name).suffix for name in wheel.namelist() if name.startswith("gpushare_")} == {
        ".py",
        ".pyi",
        ".typed",
    }


def test_all_of_the_product_reaches_the_images_build() -> None:
    """The wheel that is made there leaves out without a word what is not there."""
    sent = (ROOT / ".dockerignore").read_text().splitlines()
    assert [name for name in PRODUCT if f"!{name}" not in sent] == []


def test_every_module_of_the_product_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    sources = {
        str(path.relative_to(ROOT / name))
        for name in PRODUCT
        for path in (ROOT / name / f"gpushare_{name}").rglob("*.py")
    }
    assert sources <= set(wheel.namelist())


def test_its_commands_are_the_programs(wheel: zipfile.ZipFile) -> None:
    text = wheel.read("gpushare-0.1.0.dist-info/entry_points.txt").decode()
    commands = [line.partition(" = ")[0] for line in text.splitlines() if " = " in line]
    programs = [f"gpushare-{name}" for name in ("extender", "hostctl", "operator", "plugin")]
    assert commands == [*programs, "kubectl-gpushare"]


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
    assert names.isdisjoint({"pytest", "mypy", "ruff", "uv", "hatchling", "grpcio-tools", "kmock"})
    assert names >= {"aiohttp", "kopf", "grpcio", "pydantic"}


def test_the_programs_load_without_what_the_image_has_no_use_for() -> None:
    missing = ["sqlite3", "curses", "distutils", "readline", "dbm"]
    programs = ", ".join(f"gpushare_{name}.main" for name in PRODUCT if name != "core")
    code = f"import sys; sys.modules.update(dict.fromkeys({missing})); import {programs}"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
