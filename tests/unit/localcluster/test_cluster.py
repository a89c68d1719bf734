"""The parts of the local cluster's harness that need no cluster."""

import fcntl
import json
from pathlib import Path

import pytest

from gpushare_core.api.share_node import ISOLATION_FOLDER
from gpushare_localcluster import processes
from gpushare_localcluster.build.binary import Binary
from gpushare_localcluster.build.container_runtime import ContainerRuntime
from gpushare_localcluster.build.minors import CHOICE, MINORS, minor_named
from gpushare_localcluster.cluster import LocalCluster, is_free
from gpushare_localcluster.config import ClusterConfig, Containerd, NodeConfig
from gpushare_localcluster.containers import read_records
from gpushare_localcluster.directories import cache_folder, cluster_folder
from gpushare_localcluster.errors import LocalClusterError, NotRunningError
from gpushare_localcluster.waiting import wait_until

# Configuration

BINARIES = {
    minor: Binary(path=Path(f"/cache/{minor.name}/localcluster"), programs=Path(f"/cache/{minor.name}"))
    for minor in MINORS
}


def test_a_cluster_of_a_version_that_wrote_no_minor_down_is_still_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CHOICE, "1.36")
    (tmp_path / "config.json").write_text("{}")
    assert LocalCluster(tmp_path).kubernetes == minor_named("1.36")


def test_nodes_are_numbered_by_their_role() -> None:
    config = ClusterConfig.of_size(workers=2, control_planes=2)
    assert [(node.name, node.control_plane) for node in config.nodes] == [
        ("control-plane-1", True),
        ("control-plane-2", True),
        ("gpu-1", False),
        ("gpu-2", False),
    ]


def test_the_supervisor_gets_all_of_the_configuration() -> None:
    config = ClusterConfig(
        nodes=[
            NodeConfig(name="gpu-1", labels={"zone": "west"}),
            NodeConfig(name="gpu-2", kubernetes=minor_named("1.35")),
        ],
        listen="127.0.0.1:6443",
        component_flags={"kubelet": ("--v=4",)},
        container_path=[Path("/venv/bin")],
        readable=[Path("/venv")],
        free_service_address=True,
        kubernetes=minor_named("1.36"),
    )
    assert config.as_json(directory=Path("/state"), binaries=BINARIES, detach=True) == {
        "kubernetes": "1.36",
        "containerd": {},
        "directory": "/state",
        "listen": "127.0.0.1:6443",
        "detach": True,
        "freeServiceAddress": True,
        "nodes": [
            {"name": "gpu-1", "labels": {"zone": "west"}, "controlPlane": False},
            {
                "name": "gpu-2",
                "labels": {},
                "controlPlane": False,
                "kubelet": "/cache/1.35/localcluster",
            },
        ],
        "componentFlags": {"kubelet": ["--v=4"]},
        "image": {
            "path": ["/cache/1.36", "/venv/bin"],
            "readable": ["/cache/1.36/localcluster", "/venv"],
        },
    }


def test_real_containers_get_the_archives_of_their_images() -> None:
    runtime = ContainerRuntime(*(Path("/cache", name) for name in ("containerd", "runc", "cni")))
    containerd = Containerd(runtime=runtime, images=[Path("/images/gpushare.tar")])
    config = ClusterConfig(nodes=[], containerd=containerd)
    assert config.as_json(directory=Path("/state"), binaries=BINARIES, detach=True)["containerd"] == {
        "programs": ["/cache/containerd", "/cache/runc"],
        "plugins": "/cache/cni",
        "images": ["/state/programs.tar", "/images/gpushare.tar"],
    }


def test_a_running_cluster_keeps_the_kubectl_of_its_minor(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"kubernetes": "1.34", "containerd": {}}')
    assert LocalCluster(tmp_path).kubernetes == minor_named("1.34")


def test_a_control_plane_with_real_containers_is_not_upgraded_halfway(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"kubernetes": "1.34", "containerd": {"packages": "/cache"}}')
    with pytest.raises(LocalClusterError, match="cannot be upgraded"):
        LocalCluster(tmp_path).upgrade_control_plane(minor_named("1.35"))


@pytest.mark.parametrize(
    ("environment", "cache", "cluster"),
    [
        pytest.param({}, "~/.cache", "~/.local/state", id="the standard's defaults"),
        pytest.param({"XDG_CACHE_HOME": "/c", "XDG_STATE_HOME": "/s"}, "/c", "/s", id="as the user wishes"),
        pytest.param(
            {"XDG_CACHE_HOME": "c", "XDG_STATE_HOME": ""}, "~/.cache", "~/.local/state", id="not absolute"
        ),
    ],
)
def test_folders_follow_the_xdg_standard(environment: dict[str, str], cache: str, cluster: str) -> None:
    assert cache_folder(environment) == Path(cache).expanduser() / "gpushare" / "localcluster"
    assert cluster_folder("mine", environment) == Path(cluster).expanduser() / "gpushare" / "mine"


# Processes


def status(pid: int, parent: int, *namespaced: int) -> str:
    pids = "\t".join(map(str, namespaced))
    return f"Name:\tlocalcluster\nUmask:\t0022\nPid:\t{pid}\nPPid:\t{parent}\nNSpid:\t{pids}\nSeccomp:\t0\n"


def test_a_process_is_read_from_proc() -> None:
    assert processes.parse_status(status(500, 400, 500, 7, 1)) == processes.Process(
        pid=500, parent=400, namespaced=[500, 7, 1]
    )


def test_processes_that_end_while_we_look_are_left_out(tmp_path: Path) -> None:
    for name in ("1", "2", "self"):
        (tmp_path / name).mkdir()
    (tmp_path / "1" / "status").write_text(status(1, 0, 1))
    assert [process.pid for process in processes.running(tmp_path)] == [1]


CLUSTER = [
    processes.parse_status(text)
    for text in (
        status(100, 1, 100),  # a supervisor
        status(101, 100, 101, 1),  # its inner half
        status(107, 101, 107, 7, 1),  # a node
        status(108, 107, 108, 8, 2),  # the node's agent
        status(200, 1, 200),  # another cluster's supervisor
        status(201, 200, 201, 1),
        status(207, 201, 207, 7, 1),  # its node
    )
]


@pytest.mark.parametrize(
    ("supervisor", "inner", "pid"),
    [
        pytest.param(100, 7, 107, id="a node of the first cluster"),
        pytest.param(200, 7, 207, id="the same PID in the second cluster"),
        pytest.param(100, 8, None, id="a node's child is no process of the cluster itself"),
        pytest.param(300, 7, None, id="a cluster that is gone"),
    ],
)
def test_a_cluster_s_process_is_found_on_the_host(supervisor: int, inner: int, pid: int | None) -> None:
    assert processes.host_pid(CLUSTER, supervisor=supervisor, inner=inner) == pid


def test_a_cluster_is_the_child_of_its_supervisor() -> None:
    found = [processes.cluster_pid(CLUSTER, supervisor=supervisor) for supervisor in (100, 999)]
    assert found == [101, None]


def test_nothing_is_run_in_the_network_of_a_cluster_that_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(NotRunningError, match="start it first"):
        LocalCluster(tmp_path).control_plane_command(["true"])


def test_descendants_are_those_of_one_process_only() -> None:
    assert [process.pid for process in processes.below(CLUSTER, 100)] == [101, 107, 108]


def test_a_program_goes_by_the_name_it_was_started_with(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cmdline").write_bytes(b"/usr/bin/kubelet\0--v=2\0")
    assert (processes.program(7, tmp_path), processes.program(8, tmp_path)) == ("kubelet", "")


# Waiting


def test_waiting_returns_the_first_true_answer() -> None:
    answers = iter([None, "", "there"])
    assert wait_until("it is there", lambda: next(answers), interval=0) == "there"


def test_waiting_in_vain_says_what_for_and_what_was_there() -> None:
    with pytest.raises(LocalClusterError, match=r"pod a runs: not so after 0 s\. It is Pending"):
        wait_until("pod a runs", lambda: False, timeout=0, interval=0, explain=lambda: "It is Pending.")


# Looking at a folder


def test_records_are_read_as_the_runtime_writes_them(tmp_path: Path) -> None:
    content = {
        "id": "abc",
        "namespace": "default",
        "pod": "a",
        "podUID": "uid",
        "container": "main",
        "attempt": 1,
        "pid": 31,
        "env": {"CARD": "GPU-1"},
        "state": "exited",
        "exitCode": 137,
        "startedAt": "2026-11-21T10:00:00Z",
        "mounts": [],
        "devices": [{"host": "/dev/null", "container": "/dev/gcu0", "readOnly": False}],
        "cdiDevices": ["example.com/card=a"],
    }
    (tmp_path / "abc.json").write_text(json.dumps(content))
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")

    [record] = read_records("gpu-1", tmp_path)

    assert (record.node, record.pod_uid, record.env["CARD"], record.exit_code) == (
        "gpu-1",
        "uid",
        "GPU-1",
        137,
    )
    assert (record.devices[0].container, record.cdi_devices) == ("/dev/gcu0", ("example.com/card=a",))


@pytest.mark.parametrize(
    ("path", "on_host"),
    [
        pytest.param(
            "/etc/kubernetes/scheduler.conf", "nodes/gpu-1/etc-kubernetes/scheduler.conf", id="below"
        ),
        pytest.param("/var/lib/kubelet", "nodes/gpu-1/kubelet", id="the folder itself"),
        pytest.param(ISOLATION_FOLDER, "nodes/gpu-1/lib-gpushare/isolation", id="of isolation"),
    ],
)
def test_a_node_s_kept_folders_are_visible_on_the_host(tmp_path: Path, path: str, on_host: str) -> None:
    assert LocalCluster(tmp_path).node_path("gpu-1", path) == tmp_path / on_host


@pytest.mark.parametrize("path", ["/etc/passwd", "/var/lib/kubelet-other", "relative"])
def test_other_folders_of_a_node_are_not(tmp_path: Path, path: str) -> None:
    with pytest.raises(LocalClusterError, match="not visible on the host"):
        LocalCluster(tmp_path).node_path("gpu-1", path)


def test_where_nothing_runs_every_command_says_so(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path)
    assert not cluster.is_running()
    with pytest.raises(NotRunningError, match=str(tmp_path)):
        cluster.stop_node("gpu-1")


def test_stopping_where_nothing_runs_does_nothing(tmp_path: Path) -> None:
    LocalCluster(tmp_path).stop()
    assert list(tmp_path.iterdir()) == []


def test_attaching_to_no_cluster_says_how_to_start_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(NotRunningError, match="localcluster up --name mine"):
        LocalCluster.attach("mine")


def test_a_cluster_has_not_ended_while_its_supervisor_holds_the_lock(tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not is_free(tmp_path / "lock")
    assert is_free(tmp_path / "lock")
