"""The command `localcluster`, as far as it goes without a cluster."""

from pathlib import Path
from typing import Any

import pytest

from gpushare_localcluster import cli
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import NodeConfig


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "gpushare" / "default"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        pytest.param(
            ["up"], {"name": "default", "nodes": 3, "control_planes": 1, "foreground": False}, id="defaults"
        ),
        pytest.param(
            ["up", "--name=a", "--nodes=8", "--foreground"], {"name": "a", "nodes": 8}, id="name behind"
        ),
        pytest.param(["--name=a", "status"], {"name": "a"}, id="name in front"),
        pytest.param(
            ["kubectl", "get", "pods", "--all-namespaces"],
            {"arguments": ["get", "pods", "--all-namespaces"]},
            id="kubectl keeps its options",
        ),
        pytest.param(
            ["--name=a", "kubectl", "-A", "get", "pods"],
            {"name": "a", "arguments": ["-A", "get", "pods"]},
            id="those in front too",
        ),
        pytest.param(
            ["node", "exec", "gpu-1", "ls", "-l"],
            {"node": "gpu-1", "arguments": ["ls", "-l"]},
            id="exec",
        ),
        pytest.param(
            ["node", "restart-kubelet", "gpu-1"], {"node": "gpu-1", "command": "restart-kubelet"}, id="node"
        ),
    ],
)
def test_arguments_are_understood(arguments: list[str], wanted: dict[str, Any]) -> None:
    options = vars(cli.parse(arguments))
    assert wanted.items() <= options.items()


@pytest.mark.parametrize(
    "arguments",
    [
        ["down"],
        ["status"],
        ["kubeconfig"],
        ["kubectl", "get", "nodes"],
        ["node", "stop", "gpu-1"],
        ["node", "add", "x"],
    ],
    ids=" ".join,
)
def test_without_a_cluster_one_sentence_says_what_to_do(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 1
    assert capsys.readouterr().err == (
        "localcluster: No cluster called default is running: "
        "start it with `localcluster up --name default`.\n"
    )


def test_logs_can_be_read_after_the_cluster_died(
    own_state: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (own_state / "nodes" / "gpu-1" / "log").mkdir(parents=True)
    (own_state / "nodes" / "gpu-1" / "log" / "kubelet.log").write_bytes(b"the kubelet's \xff words\n")

    assert cli.main(["logs", "node", "gpu-1"]) == 0

    assert capfdbinary.readouterr().out == b"the kubelet's \xff words\n"


def test_logs_says_which_there_are(own_state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (own_state / "logs").mkdir(parents=True)
    (own_state / "logs" / "etcd.log").touch()

    assert cli.main(["logs", "etdc"]) == 1

    assert capsys.readouterr().err == "localcluster: Say whose log to print: supervisor, etcd.\n"


class FakeCluster:
    """Remembers what it was called for."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def add_node(self, node: NodeConfig) -> None:
        self.calls.append(node)

    def wait_ready(self) -> None:
        self.calls.append("ready")


@pytest.fixture
def attached(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    cluster = FakeCluster()
    monkeypatch.setattr(LocalCluster, "attach", lambda _: cluster)
    return cluster


def test_a_node_is_added_with_its_labels_and_waited_for(attached: FakeCluster) -> None:
    assert cli.main(["node", "add", "gpu-9", "--label", "zone=west", "--label", "empty="]) == 0
    assert attached.calls == [NodeConfig(name="gpu-9", labels={"zone": "west", "empty": ""}), "ready"]


def test_a_label_without_value_is_refused(attached: FakeCluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["node", "add", "gpu-9", "--label", "zone"]) == 1
    assert capsys.readouterr().err == "localcluster: A label is written KEY=VALUE, not 'zone'.\n"
    assert attached.calls == []
