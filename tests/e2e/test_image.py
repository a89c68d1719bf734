"""The image that `make image` builds, and the main job in real containers of it: containerd, runc."""

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from tests.e2e.image_archive import Image, read_image
from tests.e2e.image_build import EPOCH, PACKAGES, ROOT, build_image, build_scheduler_image, scheduler_image
from tests.e2e.observe import PODS, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import SYSTEM, Product, policy
from tests.e2e.real_containers import CGROUPS, cgroup_of, real_cluster
from tests.e2e.workloads import MEMORY, create
from tests.fakes.hook_library import ARCHITECTURES, NAME, hook_library

from gpushare_localcluster.build.binary import SCHEDULER
from gpushare_localcluster.build.minors import chosen_minor
from gpushare_localcluster.build.packages import ensure_packages
from gpushare_localcluster.cluster import LocalCluster, to_stderr

pytestmark = pytest.mark.e2e

MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
PROGRAMS = ["extender", "hostctl", "operator", "plugin"]
CLIENT = ["kubectl-gpushare", "kubectl_complete-gpushare"]
HOOK = "usr/share/gpushare/hook"
UNCHECKED = 0b01
"""In the header of a compiled module: known by its content, and nobody looks again (PEP 552)."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("image") / "gpushare.tar"
    build_image(path)
    yield path
    path.unlink()


@pytest.fixture(scope="module")
def image(archive: Path) -> Image:
    return read_image(archive)


@dataclass(frozen=True)
class Traces:
    """What a cluster could leave on its host."""

    interfaces: frozenset[str]
    cgroups: frozenset[str]
    rules: str

    @classmethod
    def now(cls) -> "Traces":
        return cls(
            interfaces=frozenset(path.name for path in Path("/sys/class/net").iterdir()),
            cgroups=frozenset(str(path) for path in CGROUPS.glob("**/localcluster-*")),
            rules=rules(),
        )


def rules() -> str:
    """Returns the host's packet filter, of both kinds, without counters and comments."""
    packages = ensure_packages(PACKAGES, report=to_stderr)
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, packages.glob("usr/lib/*-linux-gnu")))}
    lines = [
        line
        for kind in ("nft", "legacy")
        for line in subprocess.run(
            [packages / f"usr/sbin/iptables-{kind}-save"],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
    ]
    return "\n".join(line for line in lines if not line.startswith(("#", ":")))


@pytest.fixture(scope="module")
def before() -> Traces:
    return Traces.now()


@pytest.fixture(scope="module")
def scheduler_archives(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """None where there is no scheduler of that Kubernetes."""
    minor, path = chosen_minor(), tmp_path_factory.mktemp("scheduler") / "scheduler.tar"
    if minor not in SCHEDULER.minors:
        return []
    build_scheduler_image(path, minor)
    return [path]


@pytest.fixture(scope="module")
def real(
    before: Traces,
    archive: Path,
    scheduler_archives: list[Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[LocalCluster]:
    """A cluster of one control plane and one worker whose containers are real: its own, they are slower."""
    del before
    with real_cluster(tmp_path_factory.mktemp("real"), [archive, *scheduler_archives]) as running:
        yield running


class TestImage:
    def test_it_has_the_programs_and_no_other(self, image: Image) -> None:
        programs = {path for path in image.entries if "/bin/" in path and not path.endswith("/")}
        names = {Path(path).name for path in programs}
        assert {name for name in names if not name.startswith("python")} == {
            *CLIENT,
            *(f"gpushare-{program}" for program in PROGRAMS),
        }

    def test_each_program_has_its_modules(self, image: Image) -> None:
        names = ("cli", *PROGRAMS)
        missing = [name for name in names if not any(f"/gpushare_{name}/main.py" in p for p in image.entries)]
        assert missing == []

    def test_neither_pip_nor_the_local_cluster_are_in_it(self, image: Image) -> None:
        unwanted = ("localcluster", "/pip/", "ensurepip", "/demo/", "/bench/", "/test/", "/apt/", "/bin/sh/")
        assert [path for path in image.entries if any(f in f"/{path}/" for f in unwanted)] == []

    def test_its_user_is_a_number_and_not_root(self, image: Image) -> None:
        assert image.configuration["User"] == "65532:65532"
        assert image.configuration["Labels"]["org.opencontainers.image.version"] == "0.1.0"

    def test_nothing_in_it_tells_when_it_was_built(self, image: Image) -> None:
        assert {int(entry.mtime) for path, entry in image.entries.items() if path} == {EPOCH}
        compiled = {path: content for path, content in image.contents.items() if path.endswith(".pyc")}
        assert len(compiled) > 1000
        assert {content[4] for content in compiled.values()} == {UNCHECKED}

    def test_nothing_in_it_gives_rights(self, image: Image) -> None:
        assert [path for path, entry in image.entries.items() if entry.isfile() and entry.mode & 0o6000] == []

    def test_its_bill_of_materials_is_its_lock(self, image: Image) -> None:
        bill = json.loads(image.text("usr/share/gpushare/sbom.json"))
        listed = {
            component["purl"]
            for component in bill["components"]
            if component.get("purl", "").startswith("pkg:pypi/")
        }
        client = "pkg:pypi/kubectl-gpushare@0.1.0"
        assert listed == {client, *(f"pkg:pypi/{name}@{version}" for name, version in locked_packages())}
        assert bill["metadata"]["component"]["purl"] == "pkg:pypi/gpushare@0.1.0"
        assert any(
            component.get("purl", "").startswith("pkg:deb/debian/libc6@") for component in bill["components"]
        )

    @pytest.mark.parametrize("architecture", ARCHITECTURES)
    def test_the_library_for_containers_is_what_was_tested(self, image: Image, architecture: str) -> None:
        tested = hook_library(architecture=architecture).read_bytes()
        path = f"{HOOK}/{architecture}/{NAME}"
        assert image.contents[path] == tested
        assert image.entries[path].mode & 0o444 == 0o444, "users' containers of any UID read it"
        bill = json.loads(image.text("usr/share/gpushare/sbom.json"))
        (listed,) = [component for component in bill["components"] if component["name"] == path]
        assert listed["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(tested).hexdigest()}]

    def test_licences_are_in_it(self, image: Image) -> None:
        assert "usr/share/doc/libc6/copyright" in image.entries


def locked_packages() -> set[tuple[str, str]]:
    lines = (ROOT / "image/requirements.lock").read_text().splitlines()
    pins = [Requirement(line.rstrip(" \\")) for line in lines if "==" in line]
    wanted = [pin for pin in pins if pin.marker is None or pin.marker.evaluate()]
    return {(pin.name.lower(), str(pin.specifier).removeprefix("==")) for pin in wanted}


USER = {
    "name": "main",
    "image": "gpushare:0.1.0",
    "command": [
        "python3",
        "-c",
        "import os, time; print(os.environ['GPUSHARE_UNITS'], flush=True); time.sleep(9999)",
    ],
    "resources": {"limits": {MEMORY: "4"}},
}


class TestRealContainers:
    def test_a_pod_gets_its_units_and_the_policys_end_restores_everything(self, real: LocalCluster) -> None:
        original = digest(real)
        product = Product(real)
        product.install()
        product.apply(policy("default", nodes=["gpu-1"], cards=2))
        product.await_ready("default")
        assert digest(real) != original
        run_user(real)
        # Running says nothing of what it has printed yet: this follows until there are two bytes.
        assert real.kubectl("logs", "user", "--follow", "--limit-bytes=2") == "4\n"
        confinement_holds(real)
        real.kubectl("delete", "pod", "user", "--grace-period=1")
        product.delete("default")
        assert digest(real) == original
        left = real.node_path("control-plane-1", "/etc/kubernetes").rglob("*gpushare*")
        assert list(left) == []

    def test_our_scheduler_runs_in_its_image_as_nobody(self, real: LocalCluster) -> None:
        minor = real.kubernetes
        if minor not in SCHEDULER.minors:
            pytest.skip(f"there is no scheduler of Kubernetes {minor.name}")
        nobody = {
            "runAsNonRoot": True,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        container = {
            "name": "main",
            "image": scheduler_image(minor),
            "command": ["kube-scheduler", "--version"],
            "securityContext": nobody,
        }
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "scheduler"},
            "spec": {"containers": [container], "restartPolicy": "Never"},
        }
        create(real, "default", [body])
        real.kubectl("wait", "pod/scheduler", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=240s")
        assert real.kubectl("logs", "scheduler") == f"Kubernetes {SCHEDULER.version(minor)}\n"

    def test_nothing_of_it_stays_on_the_host(self, real: LocalCluster, before: Traces) -> None:
        own = str(real.directory)
        assert mounts_of(own) == []
        real.stop()
        after = Traces.now()
        assert processes_of(own) == []
        assert after.interfaces <= before.interfaces
        assert after.rules == before.rules
        assert not [path for path in after.cgroups if own_cgroup(real) in path]


def digest(cluster: LocalCluster) -> str:
    return hashlib.sha256(cluster.node_path("control-plane-1", MANIFEST).read_bytes()).hexdigest()


def run_user(cluster: LocalCluster) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "user"},
        "spec": {"containers": [USER]},
    }
    create(cluster, "default", [pod])
    watch_until(
        cluster,
        PODS.format(namespace="default"),
        lambda pods: any(is_running(pod) for pod in pods),
        what="pod user runs in a real container",
        describe=lambda pods: [pod.get("status") for pod in pods],
    )


@dataclass(frozen=True)
class Process:
    """The first process of a container as the host's kernel sees it."""

    status: Mapping[str, str]
    root_options: str

    @classmethod
    def of(cls, pid: int) -> "Process":
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        mounts = [line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
        root = next(fields for fields in mounts if fields[4] == "/")
        return cls(status=dict(line.split(":\t", 1) for line in lines if ":\t" in line), root_options=root[5])

    @property
    def user(self) -> str:
        return self.status["Uid"].split()[0]


def confinement_holds(cluster: LocalCluster) -> None:
    """What the pods' templates ask for is what the kernel enforces."""
    users = {"operator": "65532", "extender": "65532", "plugin": "0"}
    for component, (process, _) in running(cluster).items():
        assert process.user == users[component], component
        assert int(process.status["CapBnd"], 16) == 0, component
        assert process.status["NoNewPrivs"] == "1", component
        assert process.status["Seccomp"] == "2", component
        assert "ro" in process.root_options.split(","), component
    assert set(running(cluster)) == set(users)


def running(cluster: LocalCluster) -> dict[str, tuple[Process, int]]:
    """Returns the first process of every container of the product, and the most memory it took so far."""
    found = {}
    for pod in get(cluster, PODS.format(namespace=SYSTEM))["items"]:
        for container in pod["status"].get("containerStatuses", []):
            if "running" in container["state"]:
                cgroup = cgroup_of(container)
                pid = int((cgroup / "cgroup.procs").read_text().split()[0])
                found[str(container["name"])] = (Process.of(pid), most_memory(cgroup))
    return found


def most_memory(cgroup: Path) -> int:
    """Returns bytes; the file is called differently in versions 1 and 2 of cgroups."""
    files = (cgroup / "memory.max_usage_in_bytes", cgroup / "memory.peak")
    return int(next(path for path in files if path.exists()).read_text())


def mounts_of(folder: str) -> list[str]:
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if folder in line]


def processes_of(folder: str) -> list[str]:
    commands = (path for path in Path("/proc").glob("[0-9]*/cmdline"))
    return [str(path) for path in commands if folder.encode() in content(path)]


def content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def own_cgroup(cluster: LocalCluster) -> str:
    return "localcluster-" + hashlib.sha256(str(cluster.directory).encode()).hexdigest()[:12]
