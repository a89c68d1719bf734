"""The client as people install it: by krew from its archive, without Python, and by pip from its wheel.

What krew does is done by hand. Source: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
"""

import hashlib
import os
import subprocess
import tarfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from release.client import COMPLETION, PROGRAM, ClientBuild
from release.source import commit_time
from tests.e2e.observe import Json

from gpushare_cli.completion.main import MOST_SECONDS, SECONDS_VARIABLE
from gpushare_core.process.version import VERSION
from gpushare_localcluster.cluster import LocalCluster

pytestmark = [pytest.mark.e2e, pytest.mark.connected]

SYSTEM_PATH = "/usr/bin:/bin"
KREW_KINDS = {"amd64": "x86_64", "arm64": "aarch64"}
SECONDS = 180.0
"""For a program that should be done at once."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A client in a folder of its own, run with no other environment than what ``variables`` say."""

    folder: Path

    def run(
        self, *command: str | Path, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": f"{self.folder}:{SYSTEM_PATH}",
            "HOME": str(self.folder),
            # However much else the machine does.
            SECONDS_VARIABLE: str(MOST_SECONDS),
            **(variables or {}),
        }
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make client` makes."""
    folder = tmp_path_factory.mktemp("built")
    ClientBuild(folder, commit_time()).make()
    return folder


@pytest.fixture(scope="module")
def manifest(built: Path) -> Json:
    plugin: Json = yaml.safe_load((built / "gpushare.yaml").read_text())
    return plugin


@pytest.fixture(scope="module")
def krew(built: Path, manifest: Json, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """As ``kubectl krew install`` does: checksum, archive, files, link."""
    (platform,) = manifest["spec"]["platforms"]
    archive = built / platform["uri"].rpartition("/")[2]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    root = tmp_path_factory.mktemp("krew")
    store = root / "store" / manifest["metadata"]["name"] / manifest["spec"]["version"]
    unpacked = root / "download"
    unpack(archive, unpacked)
    for files in platform["files"]:
        for path in unpacked.glob(files["from"]):
            target = store / files["to"] / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
    (root / "bin").mkdir()
    (root / "bin" / f"kubectl-{manifest['metadata']['name']}").symlink_to(store / platform["bin"])
    return Installed(root / "bin")


def unpack(archive: Path, folder: Path) -> None:
    """Krew refuses an archive in which there is anything but files and folders."""
    with tarfile.open(archive) as content:
        assert {entry.type for entry in content} <= {tarfile.REGTYPE, tarfile.DIRTYPE}
        content.extractall(folder, filter="data")


def test_krew_takes_the_manifest(manifest: Json) -> None:
    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("Plugin", "gpushare")
    assert manifest["spec"]["version"] == f"v{VERSION}"
    assert len(manifest["spec"]["shortDescription"]) <= 50
    (platform,) = manifest["spec"]["platforms"]
    labels = platform["selector"]["matchLabels"]
    machine = os.uname()
    assert labels["os"] == machine.sysname.lower()
    assert KREW_KINDS[labels["arch"]] == machine.machine


def test_it_runs_without_any_python(krew: Installed) -> None:
    asked = krew.run(PROGRAM, "--version")
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, f"{PROGRAM} {VERSION}\n", "")
    explained = krew.run(PROGRAM, "--help")
    assert explained.returncode == 0
    assert "audit" in explained.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_it_prints_scripts_for_shells(krew: Installed, shell: str) -> None:
    assert "kubectl-gpushare" in krew.run(PROGRAM, "completion", shell).stdout


def test_without_a_cluster_it_says_what_it_needs(krew: Installed) -> None:
    asked = krew.run(PROGRAM, "version")
    assert asked.returncode == 2
    assert "kubeconfig" in asked.stderr
    assert "Traceback" not in asked.stderr


@pytest.mark.usefixtures("shared_policy")
class TestOnACluster:
    def test_a_kubelets_books_are_read_where_the_whole_product_is(
        self, krew: Installed, cluster: LocalCluster
    ) -> None:
        variables = {"KUBECONFIG": str(cluster.kubeconfig)}
        asked = krew.run(PROGRAM, "audit", "--node", "gpu-1", "--host-folder", variables=variables)
        assert asked.returncode == 2
        assert "run this on the node from gpushare's image" in asked.stderr

    def test_kubectl_finds_it(self, krew: Installed, cluster: LocalCluster) -> None:
        variables = {"KUBECONFIG": str(cluster.kubeconfig)}
        for output in ("json", "yaml", "table"):
            asked = krew.run(cluster.binary.kubectl, "gpushare", "version", "-o", output, variables=variables)
            assert (asked.returncode, asked.stderr) == (0, ""), asked.stdout

    def test_kubectl_completes_it(self, krew: Installed, cluster: LocalCluster) -> None:
        """Once its program is linked, as the manifest's caveats say."""
        (krew.folder / COMPLETION).symlink_to((krew.folder / PROGRAM).resolve().with_name(COMPLETION))
        variables = {"KUBECONFIG": str(cluster.kubeconfig)}

        def completed(*words: str) -> list[str]:
            asked = krew.run(cluster.binary.kubectl, "__complete", "gpushare", *words, variables=variables)
            return [line.partition("\t")[0] for line in asked.stdout.splitlines()]

        assert {"version", "audit", "completion"} <= {*completed("")}
        assert completed("audit", "--node", "gpu-") == ["gpu-1", "gpu-2", "gpu-3", ":4"]


@pytest.fixture(scope="module")
def pip(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in an environment that was empty, with what pip fetches for it."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    (wheel,) = built.glob("*.whl")
    options = ("--quiet", "--disable-pip-version-check", "--no-compile")
    command = [str(folder / "bin" / "pip"), "install", *options, str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and ("Could not find a version" in done.stderr or "onnection" in done.stderr):
        pytest.skip(f"pip has no package index here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return Installed(folder / "bin")


def test_the_wheel_brings_neither_kopf_nor_grpc(pip: Installed) -> None:
    listed = pip.run("pip", "list", "--format=freeze").stdout.splitlines()
    names = {line.partition("==")[0].lower() for line in listed}
    assert PROGRAM in names
    assert names.isdisjoint({"gpushare", "kopf", "grpcio", "protobuf", "kubernetes-asyncio"})


def test_all_that_its_commands_import_comes_with_it(pip: Installed) -> None:
    code = (
        "import importlib, pkgutil, gpushare_cli\n"
        "for module in pkgutil.walk_packages(gpushare_cli.__path__, 'gpushare_cli.'):\n"
        "    if module.name != 'gpushare_cli.gather.host': importlib.import_module(module.name)\n"
    )
    asked = pip.run("python", "-c", code)
    assert (asked.returncode, asked.stderr) == (0, "")


def test_both_programs_are_there(pip: Installed) -> None:
    assert pip.run(PROGRAM, "--version").stdout == f"{PROGRAM} {VERSION}\n"
    assert pip.run(COMPLETION, "version", "-o", "j").stdout == "json\n:4\n"
