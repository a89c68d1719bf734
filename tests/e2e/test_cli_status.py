"""``kubectl gpushare``, ``status`` and ``version`` as a user has them, on the shared cluster."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from tests.e2e.command_line import COMMANDS, gpushare
from tests.e2e.product import SYSTEM, Product
from tests.e2e.rights import await_right
from tests.e2e.workloads import create, pod
from tests.fakes.interrupts import takes_interrupts

from gpushare_core.api.names import CORDON_ANNOTATION
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("shared_policy")]

Json = dict[str, object]


def reasons(cluster: LocalCluster) -> set[str]:
    done = gpushare(cluster, "-o", "json")
    assert done.returncode in (0, 1), done.stderr
    return {problem["reason"] for problem in json.loads(done.stdout)["problems"]}


def await_well(cluster: LocalCluster) -> None:
    wait_until(
        "status says that all is well",
        lambda: not reasons(cluster),
        interval=0.5,
        explain=lambda: gpushare(cluster).stdout,
    )


def test_a_cluster_that_is_well(cluster: LocalCluster) -> None:
    await_well(cluster)
    done = gpushare(cluster)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("gpushare is well\n")
    lines = done.stdout.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines[:-1])) <= 80
    assert "default  True     3/3  24/24" in done.stdout
    assert "KubeScheduler" in done.stdout
    assert f"Kubernetes {cluster_version(cluster)}" in done.stdout


def cluster_version(cluster: LocalCluster) -> str:
    answer = json.loads(cluster.kubectl("version", "-o", "json"))
    return str(answer["serverVersion"]["gitVersion"])


def test_versions(cluster: LocalCluster) -> None:
    done = gpushare(cluster, "version")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert rows["plugin"][1:] == ["3", "nodes"]
    assert rows["operator"][0] == rows["plugin"][0] == rows["client"][0]
    assert rows["Kubernetes"][0] == cluster_version(cluster)


def test_a_cordoned_card_is_a_note_and_a_word_that_names_no_card_a_warning(cluster: LocalCluster) -> None:
    try:
        cluster.kubectl("annotate", "gpusharenode", "gpu-2", f"{CORDON_ANNOTATION}=5,nothing")
        wait_until(
            "status shows both",
            lambda: reasons(cluster) == {"CardCordoned", "UnknownCards"},
            interval=0.3,
        )
        done = gpushare(cluster)
        assert done.returncode == 1
        assert done.stdout.startswith("1 problem, 1 note\nwarning: node gpu-2: its cordon names something")
        assert "note: card gpu-2/5: the card is cordoned" in done.stdout
        assert "    kubectl gpushare uncordon gpu-2 5\n" in done.stdout
    finally:
        cluster.kubectl("annotate", "gpusharenode", "gpu-2", f"{CORDON_ANNOTATION}-")
    await_well(cluster)


def test_a_pod_that_waits_is_a_note_with_the_question_to_ask(cluster: LocalCluster, namespace: str) -> None:
    create(cluster, namespace, [pod("large", {"main": 17})])
    wait_until("it is noted", lambda: "PodsWaiting" in reasons(cluster), interval=0.3)
    done = gpushare(cluster)
    assert done.returncode == 0
    assert f"    kubectl gpushare why large -n {namespace}\n" in done.stdout


def test_a_policy_that_selects_nothing(cluster: LocalCluster, product: Product) -> None:
    nobody = {
        "apiVersion": "gpushare.io/v1alpha1",
        "kind": "GPUSharePolicy",
        "metadata": {"name": "nobody"},
        "spec": {"nodes": [{"selector": {"matchLabels": {"no": "such"}}, "mode": "Memory"}]},
    }
    product.apply(nobody)
    try:
        wait_until("it is said", lambda: reasons(cluster) == {"NoNodesSelected"}, interval=0.3)
        done = gpushare(cluster, "status")
        assert done.returncode == 1
        assert "error: policy nobody: it shares no node\n" in done.stdout
    finally:
        product.delete("nobody")


@contextmanager
def no_operator(cluster: LocalCluster) -> Iterator[None]:
    def scale(replicas: int) -> None:
        cluster.kubectl("scale", "-n", SYSTEM, "deployment/gpushare-operator", f"--replicas={replicas}")

    try:
        scale(0)
        yield
    finally:
        scale(1)
        cluster.kubectl("rollout", "status", "-n", SYSTEM, "deployment/gpushare-operator", "--timeout=240s")


def test_without_an_operator_nothing_it_said_is_taken_for_true(cluster: LocalCluster) -> None:
    with no_operator(cluster):
        wait_until("it is said", lambda: "OperatorScaledDown" in reasons(cluster), interval=0.3)
        done = gpushare(cluster)
    assert done.returncode == 1
    assert "    kubectl -n gpushare-system scale deployment/gpushare-operator --replicas=2\n" in done.stdout
    await_well(cluster)


def test_who_may_read_policies_alone_is_told_what_is_unknown(cluster: LocalCluster) -> None:
    role = ["--verb=list", "--resource=gpusharepolicies.gpushare.io"]
    cluster.kubectl("create", "clusterrole", "policies-alone", *role)
    cluster.kubectl(
        "create", "clusterrolebinding", "policies-alone", "--clusterrole=policies-alone", "--user=eve"
    )
    try:
        await_right(cluster, "list", "gpusharepolicies", "--as=eve")
        done = gpushare(cluster, "--as", "eve")
    finally:
        cluster.kubectl("delete", "clusterrolebinding,clusterrole", "policies-alone")
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout.startswith("Nothing is wrong in what could be read\n")
    (unknown,) = [line for line in done.stdout.splitlines() if line.startswith("Unknown: you may not read")]
    assert "GPUShareNodes" in unknown
    assert "Traceback" not in done.stderr


def read_until(terminal: int, holds: Callable[[bytes], bool], *, seconds: float = 240.0) -> bytes:
    seen, deadline = b"", time.monotonic() + seconds
    while not holds(seen):
        readable, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert readable, f"waited {seconds} s, and read {seen!r}"
        seen += os.read(terminal, 65536)
    return seen


def test_watching_redraws_a_terminal_and_ends_with_ctrl_c(cluster: LocalCluster) -> None:
    master, slave = pty.openpty()
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig), "TERM": "xterm", "COLUMNS": "80"}
    program = [str(COMMANDS / "kubectl-gpushare"), "status", "--every", "0.2"]
    watching = subprocess.Popen(
        program,
        env=environment,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=takes_interrupts,
    )
    os.close(slave)
    try:
        seen = read_until(master, lambda seen: seen.count(b"gpushare is well") >= 3)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=240) == 130
        seen += read_until(master, lambda seen: b"\x1b[?1049l" in seen)
    finally:
        watching.kill()
        watching.wait()
        os.close(master)
    assert seen.count(b"\x1b[?1049h") == seen.count(b"\x1b[?1049l") == 1
    assert seen.index(b"\x1b[?25h") > seen.index(b"\x1b[?25l")


def test_a_reader_that_leaves_ends_a_watch_quietly(cluster: LocalCluster) -> None:
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    program = [str(COMMANDS / "kubectl-gpushare"), "-o", "json", "--every", "0.1"]
    with subprocess.Popen(
        program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert watching.stdout.readline() == "{\n"
        watching.stdout.close()
        assert watching.wait(timeout=240) == 141
        assert watching.stderr.read() == ""


def test_a_word_that_is_no_command(cluster: LocalCluster) -> None:
    done = gpushare(cluster, "inspct")
    assert done.returncode == 2
    assert "there is no command 'inspct'; did you mean inspect?" in done.stderr
