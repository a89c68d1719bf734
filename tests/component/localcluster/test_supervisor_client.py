"""The client of the supervisor's socket against a supervisor of our own."""

import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import NodeConfig
from gpushare_localcluster.errors import LocalClusterError

NODES = [
    {"name": "control-plane-1", "address": "172.30.0.10", "controlPlane": True, "pid": 7, "failure": ""},
    {"name": "gpu-1", "address": "172.30.0.11", "controlPlane": False, "pid": 0, "failure": ""},
]


class Supervisor(socketserver.ThreadingUnixStreamServer):
    """Answers with the status it is given and remembers the requests."""

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), Handler)
        self.requests: list[tuple[str, str, str]] = []
        self.refusal = ""
        self.status = {"missing": [], "components": {"etcd": 5}, "nodes": NODES}


class Handler(BaseHTTPRequestHandler):
    server: Supervisor

    def do_GET(self) -> None:
        self._answer(200, json.dumps(self.server.status))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.requests.append((self.command, self.path, body))
        if self.server.refusal:
            self._answer(409, self.server.refusal + "\n")
        else:
            self._answer(204, "")

    def _answer(self, code: int, body: str) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if body:  # the client has hung up already where it expects none
            self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    with Supervisor(tmp_path / "control.sock") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def cluster(tmp_path: Path, supervisor: Supervisor) -> LocalCluster:
    assert supervisor.status
    return LocalCluster(tmp_path)


def test_the_status_names_nodes_that_are_on_and_off(cluster: LocalCluster) -> None:
    assert [(node.name, node.is_on) for node in cluster.status().nodes] == [
        ("control-plane-1", True),
        ("gpu-1", False),
    ]


@pytest.mark.parametrize(
    ("command", "path"),
    [
        pytest.param(LocalCluster.stop_node, "/nodes/gpu-1/stop", id="stop"),
        pytest.param(LocalCluster.kill_node, "/nodes/gpu-1/kill", id="kill"),
        pytest.param(LocalCluster.start_node, "/nodes/gpu-1/start", id="start"),
        pytest.param(LocalCluster.remove_node, "/nodes/gpu-1/remove", id="remove"),
        pytest.param(LocalCluster.restart_kubelet, "/nodes/gpu-1/restart-kubelet", id="restart-kubelet"),
        pytest.param(LocalCluster.start_kubelet, "/nodes/gpu-1/start-kubelet", id="start-kubelet"),
        pytest.param(LocalCluster.kill_component, "/components/gpu-1/kill", id="kill a component"),
    ],
)
def test_commands_go_to_their_paths(
    cluster: LocalCluster, supervisor: Supervisor, command: Callable[[LocalCluster, str], None], path: str
) -> None:
    command(cluster, "gpu-1")
    assert supervisor.requests == [("POST", path, "")]


def test_a_new_node_is_described(cluster: LocalCluster, supervisor: Supervisor) -> None:
    cluster.add_node(NodeConfig(name="gpu-2", labels={"a": "b"}))
    [(_, path, body)] = supervisor.requests
    assert (path, json.loads(body)) == (
        "/nodes",
        {"name": "gpu-2", "labels": {"a": "b"}, "controlPlane": False},
    )


def test_a_refused_command_gives_the_reason(cluster: LocalCluster, supervisor: Supervisor) -> None:
    supervisor.refusal = "node gpu-1 is off; start it first"
    with pytest.raises(LocalClusterError, match=r"^node gpu-1 is off; start it first$"):
        cluster.kill_node("gpu-1")


def test_waiting_in_vain_says_what_is_missing(cluster: LocalCluster, supervisor: Supervisor) -> None:
    supervisor.status["missing"] = ["node gpu-1 is not Ready", "no kube-scheduler is elected"]
    with pytest.raises(LocalClusterError, match="node gpu-1 is not Ready; no kube-scheduler is elected"):
        cluster.wait_ready(timeout=0)


def test_a_cluster_that_is_out_of_inotify_instances_says_so(
    cluster: LocalCluster, supervisor: Supervisor
) -> None:
    supervisor.status["missing"] = ["node gpu-1 is not Ready"]
    log = cluster.directory / "nodes" / "gpu-1" / "log" / "kubelet.log"
    log.parent.mkdir(parents=True)
    log.write_text("E1121 inotify_init: too many open files\n")
    with pytest.raises(LocalClusterError, match=r"fs\.inotify\.max_user_instances"):
        cluster.wait_ready(timeout=0)
    log.write_text("E1121 something else\n")
    with pytest.raises(LocalClusterError, match=r"not so after 0 s\. node gpu-1 is not Ready$"):
        cluster.wait_ready(timeout=0)


def test_waiting_ends_at_once_when_a_node_failed(cluster: LocalCluster, supervisor: Supervisor) -> None:
    supervisor.status |= {"missing": ["node gpu-1"], "nodes": [{**NODES[1], "failure": "mount overlay: no"}]}
    with pytest.raises(LocalClusterError, match="mount overlay: no"):
        cluster.wait_ready()


def test_an_unknown_node_is_answered_with_those_there_are(cluster: LocalCluster) -> None:
    with pytest.raises(LocalClusterError, match="no node gpu-7; there are control-plane-1, gpu-1"):
        cluster.node("gpu-7")


def test_nothing_runs_on_a_node_that_is_off(cluster: LocalCluster) -> None:
    with pytest.raises(LocalClusterError, match="gpu-1 is off"):
        cluster.node_pid("gpu-1")
