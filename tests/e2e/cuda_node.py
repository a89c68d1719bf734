"""A node of real containers with CUDA's driver of the tests, and images of users with programs for it."""

import json
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.observe import PODS, Json, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.user_images import write_image
from tests.e2e.workloads import MEMORY, create
from tests.fakes.cuda_driver import GIB, MIB, SIZE, CudaDriver, compiled, driver_sources

from gpushare_localcluster.build.packages import ensure_packages
from gpushare_localcluster.cluster import LocalCluster, to_stderr
from gpushare_localcluster.waiting import wait_until

PROGRAM = Path(__file__).parent / "programs" / "cuda_user.c"
FOLDER = "/var/log/cuda"
"""On the node, and on the host as well: the driver's library and its file of who has what."""
MULTIARCH = f"/usr/lib/{platform.machine()}-linux-gnu"
CONTEXT = 512 * MIB
CARDS = ["GPU-11111111-0000-0000-0000-000000000000", "GPU-22222222-0000-0000-0000-000000000000"]
CARD_MEMORY = 16 * GIB
DRIVER = {f"{FOLDER}/libcuda.so.1": f"{MULTIARCH}/libcuda.so.1", f"{FOLDER}/musl.so": "/usr/lib/libcuda.so.1"}
"""What a container gets of the driver, each C library what is made for it: path on the node -> its own."""
STATE = "/run/cuda"
"""In a container: the folder with the file of who has what, which the driver's processes write."""

GLIBC, MUSL, STATIC = (f"docker.io/library/cuda-user-{kind}:1" for kind in ("glibc", "musl", "static"))


@dataclass(frozen=True)
class Images:
    """Archives of images, each with ``/bin/cuda_user``."""

    folder: Path

    def write(self) -> list[Path]:
        return [self._glibc(), self._musl(), self._static()]

    def _glibc(self) -> Path:
        with compiled([PROGRAM], libraries=["-ldl"]) as program:
            return self._image(GLIBC, program, {str(path): path for path in linked_libraries(program)})

    def _musl(self) -> Path:
        """Its loader is its C library, which reads no file of libraries to preload."""
        program = self.folder / "musl"
        compile_for_musl([PROGRAM], program, "-dynamic")
        loader = f"/lib/ld-musl-{platform.machine()}.so.1"
        library = ensure_packages(("musl",), report=to_stderr) / loader.lstrip("/")
        return self._image(MUSL, program, {loader: library})

    def _static(self) -> Path:
        """It brings the driver along: nothing is loaded into it."""
        flags = ["-static", "-DLINKED", f"-I{driver_sources()[0].parent}"]
        with compiled([PROGRAM, *driver_sources()], flags) as program:
            return self._image(STATIC, program, {})

    def _image(self, name: str, program: Path, libraries: Mapping[str, Path]) -> Path:
        archive = self.folder / f"{name.rpartition('/')[2].partition(':')[0]}.tar"
        write_image(archive, name, {"/bin/cuda_user": program, **libraries})
        return archive


def compile_for_musl(sources: Sequence[Path], into: Path, *flags: str) -> None:
    target = f"--target={platform.machine()}-linux-musl"
    command = [sys.executable, "-m", "ziglang", "cc", target, "-O1", "-w", *flags, "-o", into, *sources]
    subprocess.run([str(word) for word in command], check=True)


def linked_libraries(program: Path) -> list[Path]:
    """Returns the loader and the libraries of this machine that a program is linked to."""
    words = subprocess.check_output(["ldd", program], text=True).split()
    return [Path(word) for word in words if word.startswith("/")]


@dataclass(frozen=True)
class CudaNode:
    """A node whose containers find the driver of the tests where its cards' owner mounts it."""

    cluster: LocalCluster
    name: str

    @property
    def driver(self) -> CudaDriver:
        return CudaDriver(
            self.cluster.node_path(self.name, FOLDER),
            cards=[(uuid, CARD_MEMORY) for uuid in CARDS],
            context=CONTEXT,
        )

    def install(self) -> None:
        self.driver.folder.mkdir()
        self.driver.install()
        flags = ("-dynamic", "-shared", "-fPIC", "-fvisibility=hidden")
        compile_for_musl(driver_sources(), self.driver.folder / "musl.so", *flags)

    def forget(self) -> None:
        """Nobody has had anything of a card. Nobody uses one now."""
        with self.driver.state.open("r+b") as state:
            state.write(bytes(SIZE))

    def write_inventory(self) -> None:
        """Its cards, as an administrator lists those of a vendor that the plugin does not know."""
        cards = [{"uuid": uuid, "memory": str(CARD_MEMORY)} for uuid in CARDS]
        mounts = [{"hostPath": node, "containerPath": own} for node, own in DRIVER.items()]
        container = {
            "mounts": [*mounts, {"hostPath": FOLDER, "containerPath": STATE, "readOnly": False}],
            "environment": {"CUDA_STUB_FOLDER": STATE},
            "visibleCards": {"variable": "CUDA_VISIBLE_DEVICES", "by": "UUID"},
        }
        written = self.cluster.node_exec(
            self.name,
            ["sh", "-c", "mkdir -p /etc/gpushare && cat > /etc/gpushare/inventory.yaml"],
            stdin=json.dumps({"cards": cards, "container": container}),
        )
        assert written.returncode == 0, written.stderr


def user_container(
    *requests: str, units: int, resource: str = MEMORY, image: str = GLIBC, group: int = 0, **extra: object
) -> Json:
    """A container that takes memory as ``requests`` say (CARD=MIB) and keeps it; see cuda_user.c.

    ``group`` is by what the driver tells its memory from others'.
    """
    return {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["/bin/cuda_user", "hold", *requests],
        "resources": {"limits": {resource: str(units)}},
        "env": [{"name": "CUDA_STUB_GROUP", "value": str(group)}],
        **extra,
    }


def user_pod(name: str, container: Json, **spec: object) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }


@dataclass(frozen=True)
class Users:
    """Pods of users in a namespace."""

    cluster: LocalCluster
    namespace: str

    def run(self, pod: Json) -> str:
        """Creates a pod, and returns what its container says once it has what it gets."""
        name = str(pod["metadata"]["name"])
        create(self.cluster, self.namespace, [pod])
        self.until_running(name)
        return self.said(name)

    def until_running(self, name: str, *, restarts: int = 0) -> None:
        def runs(pod: Json) -> bool:
            statuses = pod.get("status", {}).get("containerStatuses", [])
            return is_running(pod) and all(status["restartCount"] >= restarts for status in statuses)

        watch_until(
            self.cluster,
            PODS.format(namespace=self.namespace),
            lambda pods: any(pod["metadata"]["name"] == name and runs(pod) for pod in pods),
            what=f"pod {name} runs, restarted {restarts} times",
            describe=lambda pods: [pod.get("status") for pod in pods],
        )

    def said(self, name: str) -> str:
        """Returns the log of a container once it says what it sees of its cards, after all requests."""
        log = ""

        def is_done() -> bool:
            nonlocal log
            log = self.cluster.kubectl("logs", name, "-n", self.namespace)
            return "total" in log

        wait_until(f"{name} has asked for all", is_done, interval=0.2, explain=lambda: log)
        return log

    def exec(self, name: str, *requests: str) -> str:
        """Returns what another process in the container says, which then ends."""
        return self.cluster.kubectl("exec", name, "-n", self.namespace, "--", "/bin/cuda_user", *requests)

    def status(self, name: str) -> Json:
        pod: Json = get(self.cluster, f"{PODS.format(namespace=self.namespace)}/{name}")
        status: Json = pod["status"]
        return status

    def delete(self, *names: str) -> None:
        self.cluster.kubectl("delete", "pod", *names, "-n", self.namespace)
