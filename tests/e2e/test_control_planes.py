"""Three control planes edited one after the other, while one is rewritten, one fails, and pods go on."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from tests.e2e.observe import POLICIES, Json, condition, get, watch_until
from tests.e2e.product import SYSTEM, Product, named, policy
from tests.e2e.traffic import Traffic, flowing

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig
from gpushare_localcluster.waiting import wait_until

pytestmark = pytest.mark.e2e

FIRST, SECOND, THIRD = NAMES = tuple(f"control-plane-{number}" for number in (1, 2, 3))
MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
OURS = b"gpushare-scheduler-config"
TIMEOUT = 120
"""Seconds for a restart, after which a failing edit is undone. An edit that works takes half a minute on a
busy machine."""

MAX_WAIT = 180.0
"""Seconds that an ordinary pod may wait: a leader that is killed keeps its Lease for 15; the rest is for a
busy machine."""

CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
WRAPPER = "/etc/kubernetes/own/kube-scheduler"
REFUSING = """\
#!/bin/sh
# The administrator's: no configuration but our own.
case "$*" in *--config=*) echo "--config is not allowed here" >&2; exit 1;; esac
exec kube-scheduler "$@"
"""
TOLERANT = '#!/bin/sh\nexec kube-scheduler "$@"\n'

Manifests = dict[str, bytes]


@dataclass
class Story:
    """What was seen, in order. ``phases`` are when each began, by ``time.monotonic``."""

    before: Manifests
    failed: Manifests
    connected: Manifests
    restored: Manifests
    rewritten: bytes
    retries: int
    said: str
    traffic: Traffic
    phases: dict[str, float]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster with three control planes, and the product without a policy."""
    with LocalCluster(tmp_path_factory.mktemp("three")) as running:
        running.start(ClusterConfig.of_size(workers=1, control_planes=3))
        running.wait_ready()
        Product(running).install()
        wrap(running, SECOND)
        yield running


def manifests(cluster: LocalCluster) -> Manifests:
    return {name: manifest_path(cluster, name).read_bytes() for name in NAMES}


def manifest_path(cluster: LocalCluster, name: str) -> Path:
    return cluster.node_path(name, MANIFEST)


def write(cluster: LocalCluster, name: str, content: bytes) -> None:
    """As an upgrade does: written elsewhere and moved in."""
    staged = "/etc/kubernetes/kube-scheduler.edited"
    cluster.node_path(name, staged).write_bytes(content)
    cluster.node_path(name, staged).rename(manifest_path(cluster, name))


def write_wrapper(cluster: LocalCluster, name: str, script: str) -> None:
    path = cluster.node_path(name, WRAPPER)
    path.parent.mkdir(exist_ok=True)
    path.write_text(script)
    path.chmod(0o755)


def wrap(cluster: LocalCluster, name: str) -> None:
    """Have the scheduler of a node started by a program that refuses every ``--config``."""
    write_wrapper(cluster, name, REFUSING)
    before = manifest_path(cluster, name).read_bytes()
    wrapped = (
        before.replace(b"    - kube-scheduler\n", f"    - {WRAPPER}\n".encode())
        .replace(
            b"    volumeMounts:\n", b"    volumeMounts:\n    - {mountPath: /etc/kubernetes/own, name: own}\n"
        )
        .replace(b"  volumes:\n", b"  volumes:\n  - {hostPath: {path: /etc/kubernetes/own}, name: own}\n")
    )
    assert wrapped.count(b"/etc/kubernetes/own") == 3, "the manifest no longer looks as this test expects"
    started = pod_uid(cluster, name)
    write(cluster, name, wrapped)
    watch_until(
        cluster,
        "/api/v1/namespaces/kube-system/pods",
        lambda pods: any(is_restarted(pod, name, before=started) for pod in pods),
        what=f"the wrapped kube-scheduler of {name} is ready",
    )


def pod_uid(cluster: LocalCluster, name: str) -> str:
    pod = get(cluster, f"/api/v1/namespaces/kube-system/pods/kube-scheduler-{name}")
    return str(pod["metadata"]["uid"])


def is_restarted(pod: Json, name: str, *, before: str) -> bool:
    is_new = named(pod, f"kube-scheduler-{name}") and pod["metadata"]["uid"] != before
    return is_new and condition(pod, "Ready").get("status") == "True"


def rewrite_while_the_edit_waits(cluster: LocalCluster, name: str) -> bytes:
    """As soon as our edit is there, replace it by the manifest of before with one more flag."""
    path = manifest_path(cluster, name)
    before = path.read_bytes()
    flag = b"    - --leader-elect=true\n"
    rewritten = before.replace(flag, flag + b"    - --v=1\n")
    assert rewritten != before, "the manifest no longer looks as this test expects"
    wait_until(
        f"{name} is edited",
        lambda: OURS in path.read_bytes(),
        timeout=480,
        interval=0.02,
        explain=lambda: policy_status(cluster),
    )
    write(cluster, name, rewritten)
    return rewritten


def label_control_plane(cluster: LocalCluster, name: str) -> None:
    cluster.kubectl("label", "node", name, f"{CONTROL_PLANE_LABEL}=")


def hide_control_planes(cluster: LocalCluster, *names: str) -> None:
    """Remove the nodes' labels: until a label is back, the operator edits no kube-scheduler there.

    Without this the order is open: the host whose extender is created first is edited first.
    """
    cluster.kubectl("label", "nodes", *names, f"{CONTROL_PLANE_LABEL}-")


def policy_status(cluster: LocalCluster) -> str:
    return str(get(cluster, POLICIES)["items"][0].get("status"))


def await_told(cluster: LocalCluster, text: str) -> str:
    """Wait until the policy's condition says so; returns all that it says."""
    said: list[str] = []

    def tells(policies: list[Json]) -> bool:
        said[:] = [str(condition(policy, "SchedulerConfigured").get("message")) for policy in policies]
        return any(text in message for message in said)

    watch_until(
        cluster,
        POLICIES,
        lambda policies: tells(list(policies)),
        what=f"SchedulerConfigured says {text!r}",
        seconds=480,
        describe=lambda _: said,
    )
    return " ".join(said)


def last_attempt(cluster: LocalCluster, name: str) -> int:
    """The number of the last run of hostctl on a node."""
    jobs = get(cluster, f"/apis/batch/v1/namespaces/{SYSTEM}/jobs")["items"]
    return max(
        int(job["metadata"]["labels"]["gpushare.io/sequence"])
        for job in jobs
        if job["spec"]["template"]["spec"]["nodeName"] == name
    )


@pytest.fixture(scope="module")
def story(three: LocalCluster) -> Story:
    """A policy comes, the second control plane fails and is mended, the policy goes; pods all the time."""
    product, before, phases = Product(three), manifests(three), dict[str, float]()
    asked = policy("default", nodes=["gpu-1"])
    asked["spec"]["scheduler"] = {"timeoutSeconds": TIMEOUT}
    with flowing(three) as traffic:
        phases["install"] = time.monotonic()
        hide_control_planes(three, SECOND, THIRD)
        product.apply(asked)
        rewritten = rewrite_while_the_edit_waits(three, FIRST)
        label_control_plane(three, SECOND)
        wait_until(
            "the second is edited",
            lambda: OURS in manifest_path(three, SECOND).read_bytes(),
            timeout=480,
            explain=lambda: policy_status(three),
        )
        label_control_plane(three, THIRD)
        phases["failure and rollback"] = time.monotonic()
        said = await_told(three, "earlier manifest is back")
        failed, attempt = manifests(three), last_attempt(three, SECOND)
        phases["install after mending"] = time.monotonic()
        # The kubelet looks for the folder of the keys less and less often; for a new pod it begins anew.
        three.kubectl("delete", "pods", "-n", SYSTEM, "--field-selector=status.phase=Pending")
        write_wrapper(three, SECOND, TOLERANT)
        three.kubectl("annotate", "gpusharepolicy", "default", "gpushare.io/retry=1")
        product.await_ready("default", seconds=600)
        connected, retries = manifests(three), last_attempt(three, SECOND) - attempt
        phases["restore"] = time.monotonic()
        product.delete("default", seconds=600)
        phases["end"] = time.monotonic()
    return Story(
        before=before,
        failed=failed,
        connected=connected,
        restored=manifests(three),
        rewritten=rewritten,
        retries=retries,
        said=said,
        traffic=traffic,
        phases=phases,
    )


def test_a_control_plane_that_fails_is_restored_and_keeps_the_next_from_being_edited(story: Story) -> None:
    assert OURS in story.failed[FIRST]
    assert story.failed[SECOND] == story.before[SECOND]
    assert story.failed[THIRD] == story.before[THIRD]


def test_the_condition_says_what_failed_and_where(story: Story) -> None:
    assert SECOND in story.said
    assert "no restarted kube-scheduler served" in story.said
    assert FIRST not in story.said


def test_mended_and_asked_for_it_goes_on(story: Story) -> None:
    assert all(OURS in content for content in story.connected.values())
    assert story.retries == 1


def test_a_manifest_rewritten_while_the_edit_waits_is_kept_edited_and_restored(story: Story) -> None:
    assert OURS not in story.rewritten
    assert b"--v=1" in story.connected[FIRST]
    assert story.restored == {**story.before, FIRST: story.rewritten}


def test_nothing_of_ours_is_left_on_any_control_plane(story: Story, three: LocalCluster) -> None:
    assert not any(OURS in content for content in story.restored.values())
    assert not [name for name in NAMES if three.node_path(name, "/etc/kubernetes/gpushare").exists()]


def test_ordinary_pods_are_scheduled_all_the_time(story: Story) -> None:
    waits = {
        phase: story.traffic.longest_wait(since, until)
        for (phase, since), (_, until) in pairwise(story.phases.items())
    }
    for phase, seconds in waits.items():
        print(f"longest wait of an ordinary pod, {phase}: {seconds:.1f} s")
    assert story.traffic.is_done(), "every pod found its node"
    assert max(waits.values()) < MAX_WAIT, waits
