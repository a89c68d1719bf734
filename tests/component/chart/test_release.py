"""A release but for its image, made twice: what is in it, and that it is the same."""

import hashlib
import os
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from release import __main__ as release
from release import client
from release.__main__ import CHECKSUMS, NAME, make_release
from release.client import PROGRAM
from release.errors import ReleaseError
from tests.samples.chart import CHART, KUBERNETES, ROOT, run_helm

from gpushare_core.kubernetes_minors import ENGINE_MINORS
from gpushare_core.process.version import VERSION

Made = Callable[[str], Path]


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A docker that writes what it is asked for into the files that it is asked for."""
    folder = tmp_path_factory.mktemp("bin")
    docker = folder / "docker"
    docker.write_text(
        "#!/bin/sh\n"
        'case "$1 $2" in "save --output") echo "image $4" > "$3" ;; esac\n'
        'case "$*" in *"--target sbom"*) echo "{}" > "$SBOM/sbom.json" ;; esac\n'
    )
    docker.chmod(0o755)
    return folder


def standing_in(scratch: Path, *, epoch: int) -> Path:
    """For PyInstaller, which takes twenty seconds: tests/e2e/test_client.py has it do its work."""
    del epoch
    folder = scratch / PROGRAM
    folder.mkdir()
    (folder / PROGRAM).write_text("#!/bin/sh\n")
    return folder


@pytest.fixture(scope="module", autouse=True)
def _without_pyinstaller() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "freeze", standing_in)
        yield


@pytest.fixture(scope="module")
def two(builder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two releases of this checkout, made one after the other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{builder}:{os.environ['PATH']}")
        patch.setenv("BUILDER", "docker")
        first, second = (
            make_release(tmp_path_factory.mktemp(name), report=lambda _: None) for name in ("one", "two")
        )
    return first, second


def test_all_that_is_published_is_in_it(two: tuple[Path, Path]) -> None:
    assert {path.name for path in two[0].iterdir()} == {
        *(f"{NAME}.tgz", f"{NAME}-manifests.tar.gz", f"{NAME}-py3-none-any.whl", f"{NAME}-image.tar"),
        *(f"{NAME}.cdx.json", "RELEASE-NOTES.md", CHECKSUMS, "gpushare.yaml"),
        f"kubectl_gpushare-{VERSION}-py3-none-any.whl",
        f"{PROGRAM}_{VERSION}_{client.system()}_{client.architecture()}.tar.gz",
        *(f"{NAME}-scheduler-{minor}-image.tar" for minor in ENGINE_MINORS),
        *(f"{NAME}-scheduler-{minor}.cdx.json" for minor in ENGINE_MINORS),
    }


def test_two_runs_make_the_same_bytes(two: tuple[Path, Path]) -> None:
    sums = [(folder / CHECKSUMS).read_text() for folder in two]
    assert sums[0] == sums[1]


def test_the_checksums_are_those_of_the_files(two: tuple[Path, Path]) -> None:
    subprocess.run(["sha256sum", "--check", "--strict", CHECKSUMS], cwd=two[0], check=True)
    assert (two[0] / CHECKSUMS).read_text().count("\n") == len(list(two[0].iterdir())) - 1


def test_helm_makes_of_the_chart_what_it_makes_of_its_folder(two: tuple[Path, Path]) -> None:
    rendered = [
        run_helm("template", "gpushare", str(chart), "--kube-version", KUBERNETES)
        for chart in (two[0] / f"{NAME}.tgz", CHART)
    ]
    assert rendered[0] == rendered[1]


def test_the_manifests_are_what_the_documents_apply(two: tuple[Path, Path]) -> None:
    with tarfile.open(two[0] / f"{NAME}-manifests.tar.gz") as archive:
        names = {name.removeprefix(f"{NAME}/") for name in archive.getnames()}
    resources = yaml.safe_load((ROOT / "manifests" / "kustomization.yaml").read_text())["resources"]
    listed = {os.path.normpath(f"manifests/{resource}") for resource in resources}
    assert all(any(name.startswith(prefix) for name in names) for prefix in listed)
    assert {"config/samples/nvidia.yaml", "LICENSE", "config/auditor/kustomization.yaml"} <= names


def test_krew_finds_the_archive_where_it_is_published(two: tuple[Path, Path]) -> None:
    (platform,) = yaml.safe_load((two[0] / "gpushare.yaml").read_text())["spec"]["platforms"]
    address, _, name = platform["uri"].rpartition("/")
    assert address == client.EXAMPLE_URL
    assert hashlib.sha256((two[0] / name).read_bytes()).hexdigest() == platform["sha256"]


def test_without_a_builder_there_is_no_half_of_a_release(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    earlier = tmp_path / NAME
    earlier.mkdir()
    monkeypatch.setenv("BUILDER", "kaniko")
    with pytest.raises(ReleaseError, match="say docker or buildah"):
        make_release(tmp_path, report=lambda _: None)
    assert list(tmp_path.iterdir()) == [earlier]


def test_what_no_commit_has_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said: list[str] = []
    monkeypatch.setattr(release, "git", lambda *words: " M README.md" if words[0] == "status" else "")
    monkeypatch.setenv("BUILDER", "kaniko")
    with pytest.raises(ReleaseError):
        make_release(tmp_path, report=said.append)
    assert "changes that no commit has" in said[0]
