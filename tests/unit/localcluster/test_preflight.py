"""What a machine lacks is said before anything is built, which takes minutes."""

import os
import subprocess
from pathlib import Path

import pytest

from gpushare_localcluster import cli, preflight
from gpushare_localcluster.build.binary import PREBUILT
from gpushare_localcluster.build.minors import CHOICE
from gpushare_localcluster.errors import LocalClusterError

CHECKOUT = Path(__file__).resolve().parents[3]


def machine(
    *,
    platform: str = "linux",
    user_id: int = 0,
    filesystems: str = "nodev\toverlay\n",
    has_nsenter: bool = True,
) -> preflight.Machine:
    return preflight.Machine(
        platform=platform,
        user_id=user_id,
        filesystems=filesystems,
        find_program=lambda name: f"/usr/bin/{name}" if has_nsenter else None,
    )


@pytest.mark.parametrize(
    ("broken", "advice"),
    [
        pytest.param(machine(platform="darwin"), ["needs Linux"], id="another system"),
        pytest.param(machine(user_id=1000), ["sudo"], id="an ordinary user"),
        pytest.param(machine(filesystems="ext4\n"), ["overlay"], id="a kernel without overlay"),
        pytest.param(machine(has_nsenter=False), ["util-linux"], id="no nsenter"),
        pytest.param(machine(user_id=1000, filesystems=""), ["sudo", "overlay"], id="two things at once"),
    ],
)
def test_everything_a_machine_lacks_is_named(broken: preflight.Machine, advice: list[str]) -> None:
    with pytest.raises(LocalClusterError) as error:
        preflight.check(broken)
    assert [word for word in advice if word in str(error.value)] == advice


def test_a_good_machine_passes() -> None:
    assert preflight.problems(machine()) == []


# Before a build


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The builds that were begun; each ends at once."""
    begun: list[str] = []

    def find_go(cache: Path, **_: object) -> Path:
        begun.append(str(cache))
        raise LocalClusterError("this test builds nothing")

    monkeypatch.delenv(PREBUILT, raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("gpushare_localcluster.build.toolchain.find_go", find_go)
    return begun


def on(monkeypatch: pytest.MonkeyPatch, this: preflight.Machine) -> None:
    monkeypatch.setattr(preflight.Machine, "this", lambda: this)


@pytest.mark.parametrize(
    "arguments", [["up"], ["up", "--foreground"], ["build"], ["preflight"]], ids=" ".join
)
def test_what_a_machine_lacks_is_said_instead_of_a_build(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    builds: list[str],
    arguments: list[str],
) -> None:
    on(monkeypatch, machine(user_id=1000))

    assert cli.main(arguments) == 1

    assert capsys.readouterr().err == (
        "localcluster: A local cluster needs root for its namespaces: run it with sudo.\n"
    )
    assert builds == []


@pytest.mark.parametrize(
    ("user_id", "arguments"),
    [
        pytest.param(0, ["up"], id="up on a good machine"),
        pytest.param(0, ["build"], id="build on a good machine"),
        pytest.param(1000, ["build", "--ignore-preflight-errors"], id="a build for another machine"),
    ],
)
def test_elsewhere_the_build_begins(
    monkeypatch: pytest.MonkeyPatch, builds: list[str], user_id: int, arguments: list[str]
) -> None:
    on(monkeypatch, machine(user_id=user_id))
    assert cli.main(arguments) == 1
    assert len(builds) == 1


def test_a_good_machine_passes_on_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], builds: list[str]
) -> None:
    on(monkeypatch, machine())
    assert cli.main(["preflight"]) == 0
    assert capsys.readouterr().err == "this machine can run a local cluster\n"
    assert builds == []


@pytest.mark.parametrize("target", ["test", "demo", "bench", "cluster"])
def test_make_looks_at_the_machine_before_anything_else(target: str) -> None:
    done = subprocess.run(
        ["make", "--dry-run", "--old-file=.venv/.installed", target],
        cwd=CHECKOUT,
        # The options of a make that runs these tests are not for this one.
        env={name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[0] == ".venv/bin/localcluster preflight"


def test_a_minor_that_is_not_there_is_said_before_anything_takes_minutes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on(monkeypatch, machine())
    monkeypatch.setenv(CHOICE, "9.9")
    assert cli.main(["preflight"]) == 1
    assert "has no Kubernetes '9.9'; it has 1.32, " in capsys.readouterr().err
