"""The image that `make scheduler-image` builds: our kube-scheduler alone, bit for bit the same again."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.e2e.image_archive import Image, identity, read_image
from tests.e2e.image_build import EPOCH, build_scheduler_image

from gpushare_core.process.version import VERSION
from gpushare_localcluster.build import toolchain
from gpushare_localcluster.build.binary import SCHEDULER
from gpushare_localcluster.build.minors import Minor, chosen_minor
from gpushare_localcluster.cluster import to_stderr
from gpushare_localcluster.directories import cache_folder

pytestmark = pytest.mark.e2e

PROGRAM = "usr/local/bin/kube-scheduler"
BILL = "usr/share/gpushare/sbom.json"


@pytest.fixture(scope="module")
def minor() -> Minor:
    chosen = chosen_minor()
    if chosen not in SCHEDULER.minors:
        pytest.skip(f"there is no scheduler of Kubernetes {chosen.name}")
    return chosen


@pytest.fixture(scope="module")
def archive(minor: Minor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("image") / "scheduler.tar"
    build_scheduler_image(path, minor)
    return path


@pytest.fixture(scope="module")
def image(archive: Path) -> Image:
    return read_image(archive)


def test_nothing_in_it_can_run_but_the_program(image: Image) -> None:
    files = {path: entry for path, entry in image.entries.items() if not entry.isdir()}
    assert [path for path, entry in files.items() if entry.mode & 0o111] == [PROGRAM]
    others = [path for path in files if path != PROGRAM]
    assert BILL in others
    assert [path for path in others if not path.startswith(("usr/share/doc/", BILL))] == []


def test_anybody_may_run_it_and_nobody_may_change_it(image: Image) -> None:
    assert image.entries[PROGRAM].mode & 0o777 == 0o755
    assert {entry.mode & 0o7022 for entry in image.entries.values()} == {0}


def test_its_user_is_a_number_and_not_root(image: Image) -> None:
    assert image.configuration["User"] == "65532:65532"


def test_its_command_is_found_by_name(image: Image) -> None:
    assert "PATH=/usr/local/bin" in image.configuration["Env"]
    assert "Entrypoint" not in image.configuration


def test_its_labels_say_what_it_is_made_of(image: Image, minor: Minor) -> None:
    labels = image.configuration["Labels"]
    assert labels["org.opencontainers.image.version"] == VERSION
    assert len(labels["org.opencontainers.image.revision"]) == 40
    assert labels["io.gpushare.kubernetes"] == minor.version


def test_the_program_needs_no_library_and_says_its_version(
    image: Image, minor: Minor, tmp_path: Path
) -> None:
    program = tmp_path / "kube-scheduler"
    program.write_bytes(image.contents[PROGRAM])
    program.chmod(0o755)
    # In a root of its own: there is neither a loader nor a library.
    command = ["chroot", str(tmp_path), "/kube-scheduler", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"Kubernetes {minor.version}+gpushare\n"


def test_its_bill_of_materials_is_what_the_linker_has_used(image: Image, minor: Minor) -> None:
    bill = json.loads(image.text(BILL))
    listed = {component["purl"] for component in bill["components"]}
    assert f"pkg:golang/k8s.io/kubernetes@{minor.version}" in listed
    assert f"pkg:golang/stdlib@{toolchain.EXACT.removeprefix('go')}" in listed
    locked = (SCHEDULER.sources / minor.sum_file).read_text()
    unknown = [
        name for name in listed if f"{name.removeprefix('pkg:golang/').replace('@', ' ')} h1:" not in locked
    ]
    assert unknown == [f"pkg:golang/stdlib@{toolchain.EXACT.removeprefix('go')}"]
    assert bill["metadata"]["component"]["purl"] == f"pkg:golang/gpushare.io/scheduler@v{VERSION}"


def test_each_part_has_its_licence_in_it(image: Image) -> None:
    bill = json.loads(image.text(BILL))
    folders = {
        str(Path(path).parent) for path in image.entries if Path(path).name.upper().startswith("LICEN")
    }
    without = [part["name"] for part in bill["components"] if f"usr/share/doc/{part['name']}" not in folders]
    assert without == []


def test_two_builds_are_the_same_bit_for_bit(archive: Path, minor: Minor, tmp_path: Path) -> None:
    """The other one is linked anew, too, at another place."""
    go = toolchain.find_go(cache_folder(), report=to_stderr)
    compiled = subprocess.check_output([go, "env", "GOCACHE"], text=True).strip()
    again = tmp_path / "again.tar"
    build_scheduler_image(again, minor, XDG_CACHE_HOME=str(tmp_path / "cache"), GOCACHE=compiled)
    assert identity(again) == identity(archive)


def test_nothing_in_it_tells_when_it_was_built(image: Image) -> None:
    assert {int(entry.mtime) for path, entry in image.entries.items() if path} == {EPOCH}
