"""What the local cluster itself promises to every other test."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.kubernetes_features import POD_LEVEL_RESOURCES, is_on
from tests.e2e.kubernetes_upgrade import upgrade_path
from tests.e2e.workloads import create_namespace

from gpushare_localcluster import processes
from gpushare_localcluster.build.binary import SCHEDULER
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig, NodeConfig
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.scheduler import add_scheduler
from gpushare_localcluster.waiting import wait_until

pytestmark = pytest.mark.e2e

SPEAK = """
import os, ssl, time, urllib.request
folder = "/var/run/secrets/kubernetes.io/serviceaccount"
token = open(folder + "/token").read()
request = urllib.request.Request(
    f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}/api",
    headers={"Authorization": "Bearer " + token},
)
context = ssl.create_default_context(cafile=folder + "/ca.crt")
print("the API says", urllib.request.urlopen(request, context=context).status, flush=True)
time.sleep(3600)
"""


@pytest.fixture
def namespace(cluster: LocalCluster) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    create_namespace(cluster, name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


def shell(script: str, **container: Any) -> dict[str, Any]:
    return {"name": "main", "image": "any", "command": ["sh", "-c", script], **container}


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": list(containers), "restartPolicy": "Never", **spec},
    }


def on_host(path: str) -> dict[str, Any]:
    return {
        "volumes": [{"name": "host", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}],
    }


def apply(cluster: LocalCluster, namespace: str, manifest: dict[str, Any]) -> None:
    cluster.kubectl("--namespace", namespace, "apply", "--filename=-", stdin=json.dumps(manifest))


def get(cluster: LocalCluster, namespace: str, *what: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(
        cluster.kubectl("--namespace", namespace, "get", *what, "--output=json")
    )
    return answer


def wait_for_phase(cluster: LocalCluster, namespace: str, name: str, phase: str) -> None:
    wait_until(
        f"pod {name} is {phase}",
        lambda: get(cluster, namespace, "pod", name)["status"].get("phase") == phase,
    )


def run(cluster: LocalCluster, namespace: str, manifest: dict[str, Any]) -> str:
    """Start a pod, wait until it runs; returns its node."""
    apply(cluster, namespace, manifest)
    wait_for_phase(cluster, namespace, manifest["metadata"]["name"], "Running")
    node: str = get(cluster, namespace, "pod", manifest["metadata"]["name"])["spec"]["nodeName"]
    return node


def container_status(cluster: LocalCluster, namespace: str, name: str) -> dict[str, Any]:
    status: dict[str, Any] = get(cluster, namespace, "pod", name)["status"]["containerStatuses"][0]
    return status


def is_restarted(status: dict[str, Any]) -> bool:
    return status["restartCount"] == 1 and "running" in status["state"]


def is_ready(cluster: LocalCluster, node: str) -> bool:
    conditions = json.loads(cluster.kubectl("get", "node", node, "--output=json"))["status"]["conditions"]
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def kubelet_pid(cluster: LocalCluster, node: str) -> str:
    script = 'for f in /proc/[0-9]*/cmdline; do case "$(tr "\\0" " " < $f)" in kubelet*) echo $f;; esac; done'
    return cluster.node_exec(node, ["sh", "-c", script]).stdout.strip()


# Pods


def test_pods_of_a_daemon_set_speak_to_the_api_on_every_node(cluster: LocalCluster, namespace: str) -> None:
    labels = {"app": "speaker"}
    container = {"name": "main", "image": "python", "command": ["python3", "-c", SPEAK]}
    template = {
        "metadata": {"labels": labels},
        "spec": {"tolerations": [{"operator": "Exists"}], "containers": [container]},
    }
    manifest = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "speaker"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    apply(cluster, namespace, manifest)
    cluster.kubectl("--namespace", namespace, "rollout", "status", "daemonset/speaker", "--timeout=240s")

    def said() -> list[str]:
        logs = cluster.kubectl("--namespace", namespace, "logs", "--selector=app=speaker")
        return logs.splitlines()

    nodes = len(cluster.status().nodes)
    wait_until("every pod has its answer", lambda: said() == ["the API says 200"] * nodes)


def test_the_control_plane_node_takes_no_ordinary_pod(cluster: LocalCluster, namespace: str) -> None:
    wanted = {"node-role.kubernetes.io/control-plane": ""}
    apply(cluster, namespace, pod("stranger", shell("sleep 3600"), nodeSelector=wanted))

    def verdict() -> str:
        conditions = get(cluster, namespace, "pod", "stranger")["status"].get("conditions", [])
        return " ".join(condition.get("message", "") for condition in conditions)

    message = wait_until("the scheduler gives its verdict", verdict)
    assert "untolerated taint" in message


def test_a_host_path_is_the_nodes_and_not_the_machines(cluster: LocalCluster, namespace: str) -> None:
    path = "/srv/localcluster-test"
    writer = shell(
        f"echo written > {path}/file; sleep 3600", volumeMounts=[{"name": "host", "mountPath": path}]
    )
    node = run(cluster, namespace, pod("writer", writer, **on_host(path)))

    def content() -> str:
        return cluster.node_exec(node, ["cat", f"{path}/file"]).stdout

    assert wait_until("the file is there", content) == "written\n"
    assert not Path(path).exists()


@pytest.mark.parametrize(
    ("exit_code", "condition"),
    [
        pytest.param(0, "Complete", id="a job that exits with 0 completes"),
        pytest.param(3, "Failed", id="a job that exits with 3 fails"),
    ],
)
def test_jobs_end_by_their_exit_code(
    cluster: LocalCluster, namespace: str, exit_code: int, condition: str
) -> None:
    template = {"spec": {"containers": [shell(f"exit {exit_code}")], "restartPolicy": "Never"}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "task"},
        "spec": {"backoffLimit": 0, "template": template},
    }
    apply(cluster, namespace, job)

    cluster.kubectl(
        "--namespace", namespace, "wait", f"--for=condition={condition}", "job/task", "--timeout=240s"
    )

    ended = get(cluster, namespace, "pods", "--selector=job-name=task")["items"][0]
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == exit_code


def test_a_failing_liveness_probe_restarts_the_container(cluster: LocalCluster, namespace: str) -> None:
    probe = {"exec": {"command": ["test", "-e", "/run/alive"]}, "periodSeconds": 1, "failureThreshold": 1}
    once = shell("touch /run/alive; sleep 2; rm /run/alive; sleep 3600", livenessProbe=probe)
    run(cluster, namespace, pod("patient", once, restartPolicy="Always", terminationGracePeriodSeconds=1))

    wait_until(
        "the container was restarted",
        lambda: container_status(cluster, namespace, "patient")["restartCount"] > 0,
    )


def test_a_deleted_pod_may_finish_within_its_grace_period(cluster: LocalCluster, namespace: str) -> None:
    path = "/srv/localcluster-test"
    script = f"trap 'sleep 1; echo finished > {path}/farewell; exit' TERM; while :; do sleep 0.1; done"
    worker = shell(script, volumeMounts=[{"name": "host", "mountPath": path}])
    node = run(cluster, namespace, pod("worker", worker, **on_host(path)))

    cluster.kubectl("--namespace", namespace, "delete", "pod", "worker")

    assert cluster.node_exec(node, ["cat", f"{path}/farewell"]).stdout == "finished\n"


def test_the_environment_of_a_container_is_on_record(cluster: LocalCluster, namespace: str) -> None:
    run(cluster, namespace, pod("open", shell("sleep 3600", env=[{"name": "CARD", "value": "GPU-1"}])))

    assert cluster.container(namespace=namespace, pod="open", container="main").env["CARD"] == "GPU-1"


def test_a_killed_container_is_restarted(cluster: LocalCluster, namespace: str) -> None:
    run(cluster, namespace, pod("victim", shell("sleep 3600"), restartPolicy="Always"))

    cluster.kill_container(namespace=namespace, pod="victim", container="main")

    def restarted() -> bool:
        status = container_status(cluster, namespace, "victim")
        return bool(status["restartCount"] == 1 and "running" in status["state"])

    wait_until("the container was restarted", restarted)
    assert container_status(cluster, namespace, "victim")["lastState"]["terminated"]["exitCode"] == 137


def test_kubectl_exec_runs_in_the_container(cluster: LocalCluster, namespace: str) -> None:
    run(cluster, namespace, pod("host", shell("echo here > /run/marker; sleep 3600")))

    def marker() -> str:
        with contextlib.suppress(LocalClusterError):
            return cluster.kubectl("--namespace", namespace, "exec", "host", "--", "cat", "/run/marker")
        return ""

    assert wait_until("the marker can be read", marker) == "here\n"


# Scheduler


def other_than(before: str, now: Callable[[], str]) -> bool:
    return now() not in ("", before)


def test_an_edited_manifest_restarts_the_scheduler_and_pods_are_scheduled_again(
    cluster: LocalCluster, namespace: str
) -> None:
    manifest = cluster.node_path("control-plane-1", "/etc/kubernetes/manifests/kube-scheduler.yaml")
    original = manifest.read_text()

    def scheduler() -> str:
        with contextlib.suppress(LocalClusterError):
            return cluster.container(
                namespace="kube-system", pod="kube-scheduler-control-plane-1", container="kube-scheduler"
            ).id
        return ""

    for content in (original.replace("=true\n", "=true\n    - --v=3\n"), original):
        before = scheduler()
        manifest.write_text(content)
        wait_until("a new scheduler runs", partial(other_than, before, scheduler))

    run(cluster, namespace, pod("late", shell("sleep 3600")))


# Nodes


def states(program: str) -> list[str]:
    """The states (proc_pid_stat(5)) of the processes by that name below the test's own."""
    ours = processes.below(list(processes.running()), os.getpid())
    return [
        Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        for process in ours
        if processes.program(process.pid) == program
    ]


def test_a_kubelet_stays_stopped_until_it_is_started(cluster: LocalCluster, namespace: str) -> None:
    run(cluster, namespace, pod("resident", shell("sleep 3600"), nodeName="gpu-2"))
    cluster.stop_kubelet("gpu-2")
    with pytest.raises(LocalClusterError, match="No kubelet runs on node gpu-2"):
        cluster.signal_kubelet("gpu-2", signal.SIGSTOP)
    assert cluster.container(namespace=namespace, pod="resident", container="main").state == "running"
    cluster.start_kubelet("gpu-2")
    wait_until("the kubelet runs again", lambda: kubelet_pid(cluster, "gpu-2"))
    cluster.wait_ready()


def test_kubelets_and_components_are_paused_and_go_on(cluster: LocalCluster) -> None:
    before = kubelet_pid(cluster, "gpu-2")
    cluster.signal_kubelet("gpu-2", signal.SIGSTOP)
    cluster.signal_component("kube-controller-manager", signal.SIGSTOP)
    wait_until("one kubelet is paused", lambda: states("kubelet").count("T") == 1)
    wait_until("the component is, too", lambda: states("kube-controller-manager") == ["T"])
    cluster.signal_component("kube-controller-manager", signal.SIGCONT)
    cluster.signal_kubelet("gpu-2", signal.SIGCONT)
    wait_until("both go on", lambda: "T" not in states("kubelet") + states("kube-controller-manager"))
    assert kubelet_pid(cluster, "gpu-2") == before


def test_a_disk_of_a_node_is_full_and_empty_again_and_survives_its_reboot(cluster: LocalCluster) -> None:
    folder = "/var/log/small"
    cluster.add_node(NodeConfig("gpu-small", disks={folder: "1m"}))
    cluster.wait_ready()
    cluster.fill_disk("gpu-small", f"{folder}/anything")

    refused = cluster.node_exec("gpu-small", ["dd", "if=/proc/version", f"of={folder}/new"])
    assert "No space left on device" in refused.stderr
    cluster.empty_disk("gpu-small", folder)
    cluster.node_path("gpu-small", f"{folder}/kept").write_text("by the host")
    cluster.kill_node("gpu-small")
    cluster.start_node("gpu-small")
    wait_until(
        "the disk is there again with what the host wrote",
        lambda: cluster.node_exec("gpu-small", ["cat", f"{folder}/kept"]).stdout == "by the host",
    )
    cluster.remove_node("gpu-small")
    with pytest.raises(LocalClusterError, match="lies on no disk of its own"):
        cluster.fill_disk("gpu-2", folder)


def test_a_node_survives_power_loss_with_its_files_but_without_its_containers(
    cluster: LocalCluster, namespace: str
) -> None:
    run(cluster, namespace, pod("resident", shell("sleep 3600"), restartPolicy="Always", nodeName="gpu-2"))
    before = cluster.container(namespace=namespace, pod="resident", container="main")
    kept = cluster.node_path("gpu-2", "/var/lib/kubelet/kept")
    kept.write_text("by the host")

    cluster.kill_node("gpu-2")
    wait_until("the node is not Ready", lambda: not is_ready(cluster, "gpu-2"))
    assert not [container for container in cluster.containers() if container.node == "gpu-2"]
    cluster.start_node("gpu-2")
    cluster.wait_ready()

    assert cluster.node_exec("gpu-2", ["cat", "/var/lib/kubelet/kept"]).stdout == "by the host"
    wait_until(
        "the pod's container was started anew",
        lambda: is_restarted(container_status(cluster, namespace, "resident")),
    )
    after = cluster.container(namespace=namespace, pod="resident", container="main")
    assert after.id != before.id


def test_a_node_that_is_shut_down_lets_its_containers_finish(cluster: LocalCluster, namespace: str) -> None:
    farewell = cluster.node_path("gpu-3", "/var/log/localcluster-test/farewell")
    script = "trap 'echo finished > /farewell/farewell; exit' TERM; while :; do sleep 0.1; done"
    worker = shell(script, volumeMounts=[{"name": "host", "mountPath": "/farewell"}])
    run(cluster, namespace, pod("worker", worker, nodeName="gpu-3", **on_host("/var/log/localcluster-test")))

    cluster.stop_node("gpu-3")
    try:
        assert farewell.read_text() == "finished\n"
    finally:
        cluster.start_node("gpu-3")
        cluster.wait_ready()


def test_nodes_come_and_go(cluster: LocalCluster) -> None:
    cluster.add_node(NodeConfig(name="guest", labels={"example.com/zone": "west"}))
    cluster.wait_ready()
    assert (
        cluster.kubectl("get", "nodes", "--selector=example.com/zone=west", "--output=name") == "node/guest\n"
    )

    cluster.remove_node("guest")

    assert "guest" not in cluster.kubectl("get", "nodes", "--output=name")
    assert not (cluster.directory / "nodes" / "guest").exists()


def test_containers_outlive_a_killed_kubelet(cluster: LocalCluster, namespace: str) -> None:
    run(cluster, namespace, pod("steady", shell("sleep 3600"), nodeName="gpu-1"))
    before = cluster.container(namespace=namespace, pod="steady", container="main")
    kubelet = kubelet_pid(cluster, "gpu-1")

    cluster.restart_kubelet("gpu-1")

    wait_until("another kubelet runs", lambda: other_than(kubelet, lambda: kubelet_pid(cluster, "gpu-1")))
    run(cluster, namespace, pod("next", shell("sleep 3600"), nodeName="gpu-1"))
    assert cluster.container(namespace=namespace, pod="steady", container="main") == before


@pytest.mark.parametrize("component", ["etcd", "kube-apiserver", "kube-controller-manager"])
def test_a_killed_component_is_started_again(cluster: LocalCluster, component: str) -> None:
    before = cluster.status().components[component]

    cluster.kill_component(component)

    wait_until(
        f"another {component} runs",
        lambda: cluster.status().components.get(component, before) != before,
    )
    cluster.wait_ready()


def test_a_command_on_a_node_has_its_exit_code_and_its_own_network(cluster: LocalCluster) -> None:
    done = cluster.node_exec("gpu-1", ["sh", "-c", "hostname; hostname -I; exit 7"])

    assert (done.returncode, done.stdout.split()) == (7, ["gpu-1", cluster.node("gpu-1").address])


def test_a_node_may_be_named_as_a_machine_in_a_domain(cluster: LocalCluster, namespace: str) -> None:
    name = "gpu-9.rack-1.example.com"
    cluster.add_node(NodeConfig(name=name))
    try:
        cluster.wait_ready()
        chosen = {"nodeSelector": {"kubernetes.io/hostname": name}}
        assert run(cluster, namespace, pod("named", shell("sleep 600"), **chosen)) == name
    finally:
        cluster.remove_node(name)


def test_a_pod_that_would_break_its_kubelet_is_refused(cluster: LocalCluster, namespace: str) -> None:
    whole = pod("whole", shell("sleep 600"), resources={"limits": {"cpu": "1", "memory": "1Gi"}})
    if not is_on(POD_LEVEL_RESOURCES, cluster.kubernetes):
        run(cluster, namespace, whole)  # the server drops them
        return
    with pytest.raises(LocalClusterError, match=r"runs no pod with resources of its own.*no cgroups"):
        apply(cluster, namespace, whole)


# Images with programs of their own


def test_pods_of_our_schedulers_image_have_our_scheduler_and_others_the_clusters(
    cluster: LocalCluster, namespace: str
) -> None:
    minor = cluster.kubernetes
    if minor not in SCHEDULER.minors:
        pytest.skip(f"there is no scheduler of Kubernetes {minor.name}")
    add_scheduler(cluster, "0.0.1")
    nobody = {"runAsUser": 65532, "runAsNonRoot": True, "readOnlyRootFilesystem": True}
    said = {}
    for name, image in {
        "ours": f"example.com/gpushare-scheduler:0.0.1-{minor.name}",
        "of-the-cluster": f"registry.k8s.io/kube-scheduler:{minor.version}",
    }.items():
        container = {"name": "main", "image": image, "command": ["kube-scheduler", "--version"]}
        apply(cluster, namespace, pod(name, {**container, "securityContext": nobody}))
        wait_for_phase(cluster, namespace, name, "Succeeded")
        said[name] = cluster.kubectl("-n", namespace, "logs", name)
    assert said == {
        "ours": f"Kubernetes {SCHEDULER.version(minor)}\n",
        "of-the-cluster": f"Kubernetes {minor.version}\n",
    }


# Other minors of Kubernetes


def kubelet_version(cluster: LocalCluster, node: str) -> str:
    return cluster.kubectl("get", "node", node, "-o", "jsonpath={.status.nodeInfo.kubeletVersion}")


def server_version(cluster: LocalCluster) -> str:
    version: str = json.loads(cluster.kubectl("get", "--raw", "/version"))["gitVersion"]
    return version


def test_a_control_plane_and_then_a_kubelet_go_to_the_next_minor(start: Callable[..., LocalCluster]) -> None:
    older, newer = upgrade_path()[-2:]
    own = start(replace(ClusterConfig.of_size(workers=1), kubernetes=older))
    own.wait_ready()
    assert server_version(own) == kubelet_version(own, "gpu-1") == older.version
    own.kubectl("create", "namespace", "kept")
    wait_until("the namespace can run pods", lambda: "default" in own.kubectl("-n", "kept", "get", "sa"))
    run(own, "kept", pod("goes-on", shell("sleep 600")))
    before = own.container(namespace="kept", pod="goes-on", container="main")

    own.upgrade_control_plane(newer)

    assert server_version(own) == newer.version
    assert kubelet_version(own, "gpu-1") == older.version
    own.wait_ready()
    scheduler = f"registry.k8s.io/kube-scheduler:{newer.version}"
    wait_until(
        "kube-scheduler is that of the new minor",
        lambda: scheduler in own.kubectl("-n", "kube-system", "get", "pods", "-o", "jsonpath={..image}"),
    )

    own.upgrade_kubelet("gpu-1", newer)

    wait_until("the kubelet is the new one", lambda: kubelet_version(own, "gpu-1") == newer.version)
    own.wait_ready()
    assert own.container(namespace="kept", pod="goes-on", container="main").id == before.id
    run(own, "kept", pod("new", shell("sleep 600")))


def test_a_kubelet_may_be_older_than_its_control_plane(start: Callable[..., LocalCluster]) -> None:
    older, newer = upgrade_path()[-2:]
    nodes = [NodeConfig(name="gpu-1", kubernetes=older)]
    own = start(ClusterConfig(nodes=nodes, kubernetes=newer))
    own.wait_ready()
    assert (server_version(own), kubelet_version(own, "gpu-1")) == (newer.version, older.version)


# Several clusters, and their end


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., LocalCluster]]:
    """Starts clusters of a test's own."""
    with contextlib.ExitStack() as stack:

        def start_one(config: ClusterConfig) -> LocalCluster:
            own = stack.enter_context(LocalCluster(tmp_path / "cluster"))
            own.start(config)
            return own

        yield start_one


def test_two_clusters_run_side_by_side(cluster: LocalCluster, start: Callable[..., LocalCluster]) -> None:
    other = start(ClusterConfig.of_size(workers=1, control_planes=0))
    other.wait_ready()

    assert other.kubectl("get", "nodes", "--output=name") == "node/gpu-1\n"
    assert other.node("gpu-1").address == cluster.node("control-plane-1").address
    assert is_ready(cluster, "gpu-1")


def test_a_second_cluster_in_the_same_folder_is_refused(cluster: LocalCluster) -> None:
    with pytest.raises(LocalClusterError, match="already running"):
        LocalCluster(cluster.directory).start(ClusterConfig.of_size(workers=1))
    assert cluster.is_running()


def test_an_address_in_use_is_named(start: Callable[..., LocalCluster]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        own = start(ClusterConfig(nodes=[], listen=address))
        with pytest.raises(LocalClusterError, match=f"cannot listen on {address}"):
            own.wait_ready()


def test_a_component_that_dies_is_named_with_the_end_of_its_log(start: Callable[..., LocalCluster]) -> None:
    own = start(ClusterConfig(nodes=[], component_flags={"kube-apiserver": ["--no-such-flag"]}))

    with pytest.raises(LocalClusterError, match=r"kube-apiserver ended unexpectedly.*\n.*no-such-flag"):
        own.wait_ready()


OWNER = """
import sys, time
from functools import partial
from pathlib import Path
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig
cluster = LocalCluster(Path(sys.argv[1]))
cluster.start(ClusterConfig.of_size(workers=1))
cluster.wait_ready()
print("ready", flush=True)
time.sleep(3600)
"""


@contextlib.contextmanager
def owner_of_a_cluster(folder: Path) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, "-c", OWNER, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        try:
            assert owner.stdout is not None
            assert owner.stdout.readline() == "ready\n"
            yield owner
        finally:
            owner.kill()


def descendants(root: int) -> set[int]:
    found = {root}
    known = list(processes.running())
    while more := {process.pid for process in known if process.parent in found} - found:
        found |= more
    return found


@pytest.mark.parametrize("victim", ["the owner", "the supervisor"])
def test_no_process_outlives_a_kill(tmp_path: Path, victim: str) -> None:
    with owner_of_a_cluster(tmp_path / "cluster") as owner:
        supervisor = int((tmp_path / "cluster" / "lock").read_text())
        cluster = descendants(supervisor)
        assert len(cluster) > 8, (
            "a supervisor of two parts, three components, two nodes of three processes, a scheduler"
        )

        os.kill({"the owner": owner.pid, "the supervisor": supervisor}[victim], signal.SIGKILL)

        def alive() -> set[int]:
            return {
                process.pid
                for process in processes.running()
                if process.pid in cluster and not is_zombie(process.pid)
            }

        wait_until("every process has ended", lambda: not alive(), explain=lambda: str(alive()))


def is_zombie(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


@pytest.fixture
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a short path: sockets lie in it."""
    return tmp_path_factory.mktemp("cli")


def test_the_command_line_starts_shows_and_stops_a_cluster(state: Path) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(state)}

    def localcluster(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "gpushare_localcluster.cli", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    up = localcluster("up", "--name=tried", "--nodes=1")
    try:
        assert up.stdout == f"export KUBECONFIG={state}/gpushare/tried/kubeconfig\n", up.stderr
        assert localcluster("--name=tried", "status").stdout.endswith("\nready\n")
        nodes = localcluster("--name=tried", "kubectl", "get", "nodes", "--output=name").stdout
        assert nodes == "node/control-plane-1\nnode/gpu-1\n"
        assert (
            localcluster("--name=tried", "node", "exec", "gpu-1", "--", "sh", "-c", "exit 5").returncode == 5
        )
        assert "Ready" not in localcluster("--name=tried", "logs").stdout
    finally:
        down = localcluster("down", "--name=tried")
    assert down.returncode == 0
    after = localcluster("--name=tried", "kubectl", "get", "nodes")
    assert (after.returncode, after.stderr) == (
        1,
        "localcluster: No cluster called tried is running: start it with `localcluster up --name tried`.\n",
    )
