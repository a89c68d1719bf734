"""A Kubernetes cluster on this machine, for tests and for trying things out."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from gpushare_localcluster import preflight, processes
from gpushare_localcluster.build.binary import Binary, ensure_binary
from gpushare_localcluster.build.minors import Minor, chosen_minor, minor_named
from gpushare_localcluster.build.programs_image import write_programs_image
from gpushare_localcluster.config import PROGRAMS_IMAGE, ClusterConfig, NodeConfig
from gpushare_localcluster.containers import ContainerRecord, read_records
from gpushare_localcluster.directories import cluster_folder
from gpushare_localcluster.errors import LocalClusterError, NotRunningError
from gpushare_localcluster.images import ImagePrograms, replace_link
from gpushare_localcluster.supervisor_client import (
    UPGRADE_SECONDS,
    ClusterStatus,
    MachineStatus,
    SupervisorClient,
)
from gpushare_localcluster.waiting import wait_until

# For a machine that starts and ends several clusters at once.
READY_SECONDS, STOP_SECONDS = 480.0, 240.0
LOG_LINES = 30
TOO_MANY_FILES = "too many open files"
TOO_MANY_FILES_ADVICE = (
    "the machine has run out of inotify instances or file descriptors: stop other clusters, or raise the "
    "sysctl fs.inotify.max_user_instances"
)

# Where the apiserver is for machines of the cluster, and where for pods (internal/network/network.go).
API_ADDRESS = "172.30.0.1"
SERVICE_ADDRESS = "10.96.0.1"
API_PORT = 443

PAUSES = (signal.SIGSTOP, signal.SIGCONT)
FILLER = ".filler"
"""The file that fills a node's disk."""

# A node's folders that are the host's too, and survive its reboots.
SHARED_FOLDERS = {
    "/var/lib/kubelet": "kubelet",
    "/var/lib/gpushare": "lib-gpushare",
    "/etc/kubernetes": "etc-kubernetes",
    "/var/log": "log",
}


def to_stderr(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


class LocalCluster:
    """A cluster that keeps its files in `directory`. What is not possible raises LocalClusterError.

    As a context manager it stops at the end. Unless it was started detached, it also ends, with all its
    processes, when the Python process that started it ends for whatever reason.
    """

    def __init__(self, directory: Path, *, report: Callable[[str], None] = to_stderr) -> None:
        self.directory = directory.absolute()
        self._lock_file = self.directory / "lock"
        self._config_file = self.directory / "config.json"
        self._programs_image = self.directory / PROGRAMS_IMAGE
        self.images = ImagePrograms(self.directory / "programs")
        self._supervisor_log = self.directory / "supervisor.log"
        self._control_socket = self.directory / "control.sock"
        self._supervisor = SupervisorClient(self._control_socket)
        self._report = report
        self._owned: subprocess.Popen[bytes] | None = None
        self._binaries: dict[Minor, Binary] = {}

    @classmethod
    def attach(cls, name: str = "default") -> "LocalCluster":
        """Returns the running cluster that `localcluster up` started. Raises NotRunningError if none runs."""
        cluster = cls(cluster_folder(name))
        if not cluster.is_running():
            raise NotRunningError(
                f"No cluster called {name} is running: start it with `localcluster up --name {name}`."
            )
        return cluster

    def __enter__(self) -> "LocalCluster":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # Start and stop

    def start(self, config: ClusterConfig, *, detach: bool = False) -> None:
        """Starts the cluster; `wait_ready` waits until it can be used."""
        preflight.check(preflight.Machine.this())
        if self.is_running():
            raise LocalClusterError(
                f"A cluster is already running in {self.directory}: stop it or use another name."
            )
        binaries = {minor: self._binary_of(minor) for minor in config.minors}
        binary = binaries[config.kubernetes]
        self.directory.mkdir(parents=True, exist_ok=True)
        description = config.as_json(directory=self.directory, binaries=binaries, detach=detach)
        self._config_file.write_text(json.dumps(description, indent=2))
        self.images.clear()
        for each in binaries.values():
            self._offer(each)
        if config.containerd is not None:
            write_programs_image(binary, self._programs_image)
        # The socket of an earlier cluster must not look like this one's.
        self._control_socket.unlink(missing_ok=True)
        with self._supervisor_log.open("wb") as log:
            self._owned = subprocess.Popen(
                [binary.path, "supervise", self._config_file],
                stdin=subprocess.DEVNULL if detach else subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self) -> None:
        """Ends every process of the cluster. Its files stay, for its logs, until the next start."""
        if self._owned is not None:
            self._owned.terminate()
            self._owned.communicate(timeout=STOP_SECONDS)
        elif (supervisor := self._supervisor_pid()) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(supervisor, signal.SIGTERM)
            # The supervisor stops answering well before it is gone.
            wait_until("the cluster has stopped", lambda: is_free(self._lock_file), timeout=STOP_SECONDS)
        self._programs_image.unlink(missing_ok=True)

    def wait_end(self) -> None:
        """Waits until the cluster ends by itself, and raises LocalClusterError with the reason."""
        if self._owned is not None:
            self._owned.wait()
            raise LocalClusterError(f"The cluster ended:\n{tail(self._supervisor_log)}")

    def is_running(self) -> bool:
        try:
            self._supervisor.status()
        except NotRunningError:
            return False
        return True

    def wait_ready(self, timeout: float = READY_SECONDS) -> None:
        """Waits until all nodes that are on can run pods, or the cluster or a node has failed."""
        missing: Sequence[str] = ["the control plane"]

        def is_ready() -> bool:
            nonlocal missing
            status = self._status_if_started()
            missing = status.missing if status else missing
            for node in status.nodes if status else []:
                if node.failure:
                    raise LocalClusterError(node.failure)
            return not missing

        def explain() -> str:
            logs = (tail(path) for path in self.log_files().values() if path.exists())
            return "; ".join([*missing, *advice(logs)])

        wait_until("cluster is ready", is_ready, timeout=timeout, explain=explain)

    def _status_if_started(self) -> ClusterStatus | None:
        try:
            return self.status()
        except NotRunningError:
            if self._owned is None:
                raise
            if self._owned.poll() is not None:
                raise LocalClusterError(f"The cluster ended:\n{tail(self._supervisor_log)}") from None
            return None

    # State

    @property
    def kubeconfig(self) -> Path:
        """The administrator's, with a bearer token and the authority's certificate."""
        return self.directory / "kubeconfig"

    @property
    def kubernetes(self) -> Minor:
        """The control plane's, or the one that the environment chooses before the first start."""
        try:
            name = self._config().get("kubernetes")
        except FileNotFoundError:
            name = None
        return minor_named(name) if name else chosen_minor()

    def _config(self) -> dict[str, Any]:
        config: dict[str, Any] = json.loads(self._config_file.read_bytes())
        return config

    @property
    def binary(self) -> Binary:
        return self._binary_of(self.kubernetes)

    def _offer(self, binary: Binary) -> None:
        self.images.add(binary.minor.version, binary.programs)

    def _binary_of(self, minor: Minor) -> Binary:
        if minor not in self._binaries:
            self._binaries[minor] = ensure_binary(minor=minor, report=self._report)
        return self._binaries[minor]

    def status(self) -> ClusterStatus:
        return self._supervisor.status()

    def log_files(self) -> dict[str, Path]:
        """Returns the logs by `supervisor`, component, or `node NAME`."""
        logs = {path.stem: path for path in sorted((self.directory / "logs").glob("*.log"))}
        nodes = sorted((self.directory / "nodes").glob("*"))
        kubelets = {f"node {node.name}": node / "log" / "kubelet.log" for node in nodes}
        return {"supervisor": self._supervisor_log, **logs, **kubelets}

    def kubectl(self, *arguments: str, stdin: str | None = None, timeout: float = 300.0) -> str:
        command = self.kubectl_command(arguments)
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=timeout, check=False
        )
        if done.returncode != 0:
            raise LocalClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def kubectl_command(self, arguments: Sequence[str]) -> list[str]:
        return [str(self.binary.kubectl), f"--kubeconfig={self.kubeconfig}", *arguments]

    def pki_file(self, name: str) -> Path:
        """Returns where a file of the control plane's certificates lies, such as `apiserver.crt`."""
        return self.directory / "pki" / name

    def control_plane_command(self, arguments: Sequence[str]) -> list[str]:
        """Returns a command line that runs `arguments` in the control plane's network, with the host's files.

        The apiserver listens there at API_ADDRESS, and at SERVICE_ADDRESS unless the cluster leaves that
        free.
        """
        return ["nsenter", f"--target={self._cluster_pid()}", "--net", "--", *arguments]

    # Nodes

    def add_node(self, node: NodeConfig) -> None:
        """Installs a machine and switches it on; it joins the cluster by itself."""
        binaries = {node.kubernetes: self._binary_of(node.kubernetes)} if node.kubernetes else {}
        self._supervisor.post("/nodes", node.as_json(binaries))

    def stop_node(self, name: str) -> None:
        """Shuts a node down gracefully: its containers get SIGTERM first."""
        self._supervisor.post(f"/nodes/{name}/stop")

    def kill_node(self, name: str) -> None:
        """Cuts a node's power."""
        self._supervisor.post(f"/nodes/{name}/kill")

    def start_node(self, name: str) -> None:
        """Switches a node on again: it finds its files as they were, and no containers."""
        self._supervisor.post(f"/nodes/{name}/start")

    def remove_node(self, name: str) -> None:
        """Cuts a node's power and deletes its Node object and its files."""
        self._supervisor.post(f"/nodes/{name}/remove")

    def restart_kubelet(self, name: str) -> None:
        """Kills a node's kubelet, which is started again; its containers go on."""
        self._supervisor.post(f"/nodes/{name}/restart-kubelet")

    def stop_kubelet(self, name: str) -> None:
        """Shuts a node's kubelet down until `start_kubelet` or a reboot; its containers go on."""
        self._supervisor.post(f"/nodes/{name}/stop-kubelet")
        wait_until(f"the kubelet of {name} has ended", lambda: self._kubelet_pid(name) is None)

    def start_kubelet(self, name: str) -> None:
        """Starts a kubelet that was stopped; one that runs goes on."""
        self._supervisor.post(f"/nodes/{name}/start-kubelet")

    def signal_kubelet(self, name: str, sent: signal.Signals) -> None:
        """Sends a signal to a node's kubelet, which is started again if it ends."""
        pid = self._kubelet_pid(name)
        if pid is None:
            raise LocalClusterError(f"No kubelet runs on node {name} at this moment.")
        _send(pid, sent, to=f"the kubelet of {name}")

    def _kubelet_pid(self, name: str) -> int | None:
        below = processes.below(list(processes.running()), self.node_pid(name))
        return next((process.pid for process in below if processes.program(process.pid) == "kubelet"), None)

    # Components

    def kill_component(self, name: str) -> None:
        """Kills etcd, kube-apiserver or kube-controller-manager, which is started again."""
        self._supervisor.post(f"/components/{name}/kill")

    def signal_component(self, name: str, sent: signal.Signals) -> None:
        """Sends a signal to a component; if the component ends, so does the cluster."""
        inner = self.status().components.get(name)
        pid = self._host_pid(inner) if inner else None
        if pid is None:
            raise LocalClusterError(f"No {name} is running at this moment.")
        _send(pid, sent, to=name)

    # Other minors of Kubernetes

    def upgrade_control_plane(self, minor: Minor) -> None:
        """Replaces the apiserver, the controller manager and kube-scheduler's manifests, as `kubeadm upgrade
        apply` does; returns when the API server is that of ``minor``. etcd and kubelets stay."""
        if self._config()["containerd"]:
            raise LocalClusterError(
                "A control plane with containerd cannot be upgraded: its nodes have one version of "
                "kube-scheduler's image. Start the cluster without containerd."
            )
        binary = self._binary_of(minor)
        self._offer(binary)
        content = {"program": str(binary.path), "version": minor.version}
        self._supervisor.post("/control-plane/upgrade", content, timeout=UPGRADE_SECONDS)
        self._config_file.write_text(json.dumps({**self._config(), "kubernetes": minor.name}, indent=2))

    def upgrade_kubelet(self, name: str, minor: Minor) -> None:
        """Replaces a node's kubelet, as a package manager does; its containers go on. Returns when the new
        kubelet has been started."""
        binary = self._binary_of(minor)
        self._offer(binary)
        self.stop_kubelet(name)
        replace_link(self.directory / "nodes" / name / "programs" / "kubelet", binary.path)
        self.start_kubelet(name)

    # Looking into nodes

    def node(self, name: str) -> MachineStatus:
        nodes = {node.name: node for node in self.status().nodes}
        if name not in nodes:
            raise LocalClusterError(f"There is no node {name}; there are {', '.join(nodes)}.")
        return nodes[name]

    def node_path(self, name: str, path: str) -> Path:
        """Returns the host's path of a file in SHARED_FOLDERS; one on a disk is there while the cluster
        runs."""
        for folder, host_name in SHARED_FOLDERS.items():
            if Path(path).is_relative_to(folder):
                place = self.directory / "nodes" / name / host_name / Path(path).relative_to(folder)
                if self._disk_of(name, path) is None:
                    return place
                # Disks are mounted where only the cluster's processes see them.
                return Path(f"/proc/{self._cluster_pid()}/root") / place.relative_to("/")
        raise LocalClusterError(
            f"{path} of a node is not visible on the host; only {', '.join(SHARED_FOLDERS)} are."
        )

    def fill_disk(self, name: str, path: str) -> None:
        """Fills the disk on which a node has `path`."""
        if (disk := self._disk_of(name, path)) is None:
            raise LocalClusterError(
                f"{path} of node {name} lies on no disk of its own: see NodeConfig.disks."
            )
        fill(self.node_path(name, disk) / FILLER)

    def empty_disk(self, name: str, path: str) -> None:
        """Undoes `fill_disk`."""
        if disk := self._disk_of(name, path):
            (self.node_path(name, disk) / FILLER).unlink(missing_ok=True)

    def _disk_of(self, name: str, path: str) -> str | None:
        try:
            disks = json.loads((self.directory / "nodes" / name / "disks.json").read_bytes())
        except FileNotFoundError:
            return None
        return max((disk for disk in disks if Path(path).is_relative_to(disk)), key=len, default=None)

    def _cluster_pid(self) -> int:
        supervisor = self._supervisor_pid()
        pid = supervisor and processes.cluster_pid(list(processes.running()), supervisor=supervisor)
        if not pid:
            raise NotRunningError(f"No cluster is running in {self.directory}: start it first.")
        return pid

    def node_pid(self, name: str) -> int:
        """Returns the host's PID of a node's process 1."""
        node = self.node(name)
        if not node.is_on:
            raise LocalClusterError(f"Node {name} is off: start it first.")
        pid = self._host_pid(node.pid)
        if pid is None:
            raise LocalClusterError(f"Node {name} ended a moment ago.")
        return pid

    def _host_pid(self, inner: int) -> int | None:
        """Returns the host's PID of the process that has PID `inner` in the cluster."""
        supervisor = self._supervisor_pid()
        if supervisor is None:
            return None
        return processes.host_pid(list(processes.running()), supervisor=supervisor, inner=inner)

    def node_command(self, name: str, arguments: Sequence[str]) -> list[str]:
        namespaces = ["--mount", "--uts", "--net", "--pid"]
        return ["nsenter", f"--target={self.node_pid(name)}", *namespaces, "--", *arguments]

    def node_exec(
        self, name: str, arguments: Sequence[str], *, stdin: str | None = None, timeout: float = 120.0
    ) -> "subprocess.CompletedProcess[str]":
        """Runs a command on a node, outside of any container, for at most `timeout` seconds."""
        return subprocess.run(
            self.node_command(name, arguments),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    # Containers

    def containers(self) -> list[ContainerRecord]:
        return [
            record
            for node in self.status().nodes
            if node.is_on
            for record in read_records(node.name, self.directory / "nodes" / node.name / "containers")
        ]

    def container(self, *, namespace: str, pod: str, container: str) -> ContainerRecord:
        for record in self.containers():
            is_named = (record.namespace, record.pod, record.container) == (namespace, pod, container)
            if is_named and record.state == "running":
                return record
        raise LocalClusterError(f"No container {container} of pod {namespace}/{pod} is running.")

    def kill_container(
        self, *, namespace: str, pod: str, container: str, signal: signal.Signals = signal.SIGKILL
    ) -> None:
        """Sends a signal to the first process of a running container. SIGSTOP and SIGCONT, which pause and
        continue it, go to its children, too."""
        record = self.container(namespace=namespace, pod=pod, container=container)
        pids = [str(record.pid)]
        if signal in PAUSES:
            children = f"/proc/{record.pid}/task/{record.pid}/children"
            pids += self.node_exec(record.node, ["cat", children]).stdout.split()
        done = self.node_exec(record.node, ["kill", f"-{signal.value}", *pids])
        if done.returncode != 0:
            raise LocalClusterError(f"Cannot kill {container} of {namespace}/{pod}: {done.stderr.strip()}")

    def _supervisor_pid(self) -> int | None:
        if self._owned is not None:
            return self._owned.pid if self._owned.poll() is None else None
        if not self.is_running():
            return None
        # The supervisor writes its PID into the file that it holds locked.
        return int(self._lock_file.read_text())


def fill(file: Path) -> None:
    """Writes to a file until its disk is full."""
    with file.open("ab", buffering=0) as filler:
        for size in (1 << 16, 1):
            with contextlib.suppress(OSError):
                while filler.write(b"\0" * size):
                    pass


def _send(pid: int, sent: signal.Signals, *, to: str) -> None:
    try:
        os.kill(pid, sent)
    except ProcessLookupError:
        raise LocalClusterError(f"No {sent.name} for {to}: it has just ended.") from None


def is_free(lock_file: Path) -> bool:
    with lock_file.open() as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def advice(logs: Iterable[str]) -> Sequence[str]:
    """Returns what to do about the causes that the last lines of the components' logs name."""
    return [TOO_MANY_FILES_ADVICE] if any(TOO_MANY_FILES in log for log in logs) else []


def tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-LOG_LINES:])
