"""`make image` finds what builds images here, and passes on what it was told."""

import os
import re
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
REAL = ("bash", "dirname", "sed", "git", "mkdir", "mktemp", "rm", "cp")
"""The script's own tools."""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder that is all of PATH: no docker, no buildah."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in REAL:
        found = subprocess.check_output(["which", name], text=True).strip()
        (folder / name).symlink_to(found)
    return folder


def install(programs: Path, name: str, *, answers: str = "exit 0") -> None:
    """Puts a program there that writes its arguments into a file, a line for each call."""
    path = programs / name
    path.write_text(f'#!{programs}/bash\necho "{name} $*" >> {programs}/calls\n{answers}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def build(programs: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment: Mapping[str, str] = {"PATH": str(programs), "HOME": os.environ["HOME"], **variables}
    command = [str(ROOT / "image" / "build.sh"), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def calls(programs: Path) -> list[str]:
    return (programs / "calls").read_text().splitlines()


def test_where_nothing_builds_images_it_says_what_to_install(programs: Path) -> None:
    done = build(programs)
    assert done.returncode == 1
    assert "apt-get install buildah" in done.stderr


def test_a_docker_without_an_engine_is_passed_over(programs: Path) -> None:
    install(programs, "docker", answers="exit 1")
    install(programs, "buildah")
    assert build(programs).returncode == 0
    assert [call.split()[0] for call in calls(programs)] == ["docker", "buildah", "buildah"]


def test_docker_gets_name_base_and_time(programs: Path) -> None:
    install(programs, "docker")
    done = build(programs, IMAGE="registry.example/gpushare:7", BASE="mine:1", SOURCE_DATE_EPOCH="99")
    assert done.returncode == 0
    *_, bill, image = calls(programs)
    assert "--target sbom --output type=local,dest=build" in bill
    assert "--tag registry.example/gpushare:7" in image
    for call in (bill, image):
        assert "--build-arg BASE=mine:1 " in call
        assert "--build-arg SOURCE_DATE_EPOCH=99 " in call


def test_without_a_name_it_is_that_of_the_manifests(programs: Path) -> None:
    install(programs, "buildah")
    assert build(programs).returncode == 0
    assert "--tag gpushare:0.1.0" in calls(programs)[-1]
    assert "BASE=" not in calls(programs)[-1]


def test_buildah_says_nothing_of_its_steps(programs: Path) -> None:
    install(programs, "buildah", answers="echo 4d81e168c763")
    done = build(programs)
    assert all("--quiet" in call.split() for call in calls(programs))
    assert done.stdout.splitlines() == [
        "building gpushare:0.1.0 with buildah: one to three minutes",
        "built gpushare:0.1.0",
        "what it consists of: build/sbom.json",
    ]


def test_no_argument_of_the_build_is_missing(programs: Path) -> None:
    """buildah warns of each that has neither a default nor a value."""
    install(programs, "buildah")
    build(programs)
    wanted = re.findall(r"^ARG (\w+)$", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    assert wanted
    assert [name for name in wanted if f"--build-arg {name}=" not in calls(programs)[-1]] == []


def test_the_image_is_written_to_an_archive_where_that_is_asked_for(programs: Path) -> None:
    install(programs, "buildah")
    build(programs, ARCHIVE="image.tar")
    assert calls(programs)[-1].endswith("gpushare:0.1.0 docker-archive:image.tar:gpushare:0.1.0")


def test_an_unknown_builder_is_refused(programs: Path) -> None:
    done = build(programs, BUILDER="kaniko")
    assert done.returncode == 1
    assert "BUILDER is 'kaniko'" in done.stderr


LAYS_OUT = """
mkdir -p $2/usr/share/gpushare
echo "of $3" > $2/usr/share/gpushare/sbom.json
echo v1.36.3
"""
"""What stands for image/scheduler_root.py: prints the version of Kubernetes."""


def build_scheduler(programs: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    install(programs, "python", answers=LAYS_OUT)
    return build(programs, "scheduler", "1.36", PYTHON=str(programs / "python"), **variables)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("", "gpushare-scheduler"),
        ("registry.example:5000/team/gpushare:7", "registry.example:5000/team/gpushare-scheduler"),
        ("registry.example:5000/gpushare", "registry.example:5000/gpushare-scheduler"),
        ("registry.example/gpushare:7@sha256:ab", "registry.example/gpushare-scheduler"),
    ],
)
def test_the_schedulers_image_is_beside_that_of_all_programs(
    programs: Path, tmp_path: Path, image: str, expected: str
) -> None:
    install(programs, "buildah")
    done = build_scheduler(programs, IMAGE=image, SBOM=str(tmp_path / "bills"))
    assert done.returncode == 0, done.stderr
    assert f"--tag {expected}:0.1.0-1.36 " in calls(programs)[-1]
    assert done.stdout.splitlines()[0] == f"built {expected}:0.1.0-1.36"


def test_the_schedulers_image_is_made_of_what_was_laid_out(programs: Path, tmp_path: Path) -> None:
    install(programs, "docker")
    done = build_scheduler(programs, SBOM=str(tmp_path / "bills"), SOURCE_DATE_EPOCH="99")
    *_, laid_out, image = calls(programs)
    _, _, root, _ = laid_out.split()
    assert laid_out == f"python image/scheduler_root.py {root} 1.36"
    assert not Path(root).parent.exists()
    assert "--build-arg SOURCE_DATE_EPOCH=99 " in image
    assert "--platform" not in image
    assert image.endswith(f"--file image/scheduler.Dockerfile {root}")
    wanted = re.findall(r"^ARG (\w+)$", (ROOT / "image/scheduler.Dockerfile").read_text(), re.MULTILINE)
    assert [name for name in wanted if f"--build-arg {name}=" not in image] == []
    bill = tmp_path / "bills" / "sbom-scheduler-1.36.json"
    assert bill.read_text() == "of 1.36\n"
    assert done.stdout.splitlines()[-1] == f"what it consists of: {bill}"


def test_the_schedulers_image_may_be_for_another_architecture(programs: Path, tmp_path: Path) -> None:
    install(programs, "buildah")
    build_scheduler(programs, SBOM=str(tmp_path), GOARCH="arm64")
    assert "--platform linux/arm64" in calls(programs)[-1]


def test_without_a_scheduler_there_is_no_image_of_it(programs: Path, tmp_path: Path) -> None:
    install(programs, "buildah")
    install(programs, "python", answers="echo 'There is no scheduler of 1.2' >&2; exit 1")
    done = build(programs, "scheduler", "1.2", PYTHON=str(programs / "python"), SBOM=str(tmp_path))
    assert (done.returncode, done.stderr) == (1, "There is no scheduler of 1.2\n")
    assert [call.split()[0] for call in calls(programs)] == ["python"]


def test_another_image_is_refused(programs: Path) -> None:
    install(programs, "buildah")
    done = build(programs, "schedular")
    assert done.returncode == 1
    assert "there is no image 'schedular'" in done.stderr
