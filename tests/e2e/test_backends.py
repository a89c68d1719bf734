"""Scheduler backends that people or Volcano share in: what the operator does, and what it leaves alone."""

import json
import shutil
from collections.abc import Iterator, Sequence
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml
from tests.e2e.books import read_books
from tests.e2e.control_plane import CONTROL_PLANE, MANIFEST, edit_manifest
from tests.e2e.fixtures import await_agreement
from tests.e2e.observe import PODS, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import ROOT, SYSTEM, Product, named, policy
from tests.e2e.test_scheduler_reconnection import JOBS, await_reason
from tests.e2e.workloads import create, pod

from gpushare_core.api.names import CORDON_ANNOTATION, SCHEDULER_LABEL
from gpushare_core.dialects.volcano import VOLCANO
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_localcluster.build.modules import Volcano, ensure_volcano
from gpushare_localcluster.cluster import LocalCluster, to_stderr
from gpushare_localcluster.config import python_programs
from gpushare_localcluster.waiting import wait_until
from gpushare_operator.backends.volcano.config_edit import enable

pytestmark = pytest.mark.e2e

HOSTCTL = str(python_programs()[0] / "gpushare-hostctl")
VOLCANO_SYSTEM = "volcano-system"
CONFIG_MAP = "volcano-scheduler-configmap"
KEY = "volcano-scheduler.conf"
VOLCANO_NODE = "gpu-3"
VOLCANO_FOLDER = "/etc/kubernetes/volcano"
MEMORY = "volcano.sh/gpu-memory"


def with_backend(backend: str, **extra: Any) -> Json:
    asked = policy("default", nodes=["gpu-1"], cards=2)
    asked["spec"]["scheduler"] = {"backend": backend}
    asked["spec"].update(extra)
    return asked


def on_control_plane(cluster: LocalCluster, *command: str) -> CompletedProcess[str]:
    done = cluster.node_exec(CONTROL_PLANE, list(command))
    assert done.returncode == 0, done.stderr
    return done


# External.


@pytest.fixture
def manifest(cluster: LocalCluster) -> Iterator[bytes]:
    """What the administrator's kube-scheduler is, before and afterwards."""
    path = cluster.node_path(CONTROL_PLANE, MANIFEST)
    before = path.read_bytes()
    yield before
    edit_manifest(cluster, before)
    on_control_plane(
        cluster, "rm", "-rf", "/etc/kubernetes/gpushare", "/etc/kubernetes/gpushare-scheduler.yaml"
    )
    await_scheduler(cluster, lambda words: not any("gpushare" in word for word in words))


def await_scheduler(cluster: LocalCluster, fits: Any) -> None:
    def serves(pods: Any) -> bool:
        schedulers = [pod for pod in pods if pod["metadata"].get("labels", {}).get("component")]
        words = [word for scheduler in schedulers for word in scheduler["spec"]["containers"][0]["command"]]
        return bool(schedulers) and fits(words) and all(is_running(scheduler) for scheduler in schedulers)

    watch_until(
        cluster,
        PODS.format(namespace="kube-system"),
        serves,
        what="kube-scheduler with these flags",
        seconds=240,
        describe=lambda pods: [(pod["spec"]["containers"][0]["command"], pod["status"]) for pod in pods],
    )


def edited_by_hand(manifest: bytes, instructions: str) -> bytes:
    """The manifest with the flag and the mounts that ``instructions`` name."""
    body = yaml.safe_load(manifest)
    (container,) = body["spec"]["containers"]
    flag = next(word for word in instructions.split() if word.startswith("--config="))
    container["command"].append(flag.rstrip(","))
    start = instructions.index("     volumeMounts:")
    mounts = yaml.safe_load(instructions[start : instructions.index("\n5. ")])
    container.setdefault("volumeMounts", []).extend(mounts["volumeMounts"])
    body["spec"].setdefault("volumes", []).extend(mounts["volumes"])
    return yaml.safe_dump(body).encode()


def test_people_connect_kube_scheduler_with_what_render_says(
    cluster: LocalCluster, product: Product, namespace: str, manifest: bytes
) -> None:
    product.apply(with_backend("External"))
    message = await_reason(cluster, "SchedulerConfigured", "ExtenderNotReady")
    assert "gpushare-hostctl keys --root /" in message
    on_control_plane(cluster, HOSTCTL, "keys", "--root", "/")

    message = await_reason(cluster, "SchedulerConfigured", "WaitingForCalls")
    _, _, command = message.partition("to put where on each of control-plane-1: gpushare-hostctl ")
    rendered = on_control_plane(
        cluster, HOSTCTL, *command.split(), "--kubernetes-version", cluster.kubernetes.name
    )
    target = cluster.node_path(CONTROL_PLANE, "/etc/kubernetes/gpushare-scheduler.yaml")
    target.write_text(rendered.stdout)
    by_hand = edited_by_hand(manifest, rendered.stderr)
    edit_manifest(cluster, by_hand)
    await_scheduler(cluster, lambda words: any("gpushare-scheduler.yaml" in word for word in words))

    create(cluster, namespace, [pod("shares", {"main": 4})])
    (shares,) = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(is_running(pod) for pod in pods),
        what="a pod that shares a card runs",
    )
    assert json.loads(shares["metadata"]["annotations"]["gpushare.io/allocation"])["node"] == "gpu-1"
    ready = product.await_ready("default")
    (connected,) = [
        condition for condition in ready["status"]["conditions"] if condition["type"] == "SchedulerConfigured"
    ]
    assert connected["reason"] == "Called"
    assert connected["message"].startswith(
        f"kube-scheduler calls the extender: port 22766 of {CONTROL_PLANE}. "
    )

    assert get(cluster, JOBS)["items"] == [], "no run of hostctl"
    product.delete("default")
    assert cluster.node_path(CONTROL_PLANE, MANIFEST).read_bytes() == by_hand
    assert SCHEDULER_LABEL not in get(cluster, f"{paths.NODES}/{CONTROL_PLANE}")["metadata"]["labels"]


# Volcano.

CONFIG = """actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang   # all or nothing
    enablePreemptable: false
- plugins:
  - name: drf
  - name: predicates
  - name: nodeorder
"""


def config_map(text: str) -> str:
    metadata = {"name": CONFIG_MAP, "namespace": VOLCANO_SYSTEM}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {KEY: text}})


def configured(cluster: LocalCluster) -> Json:
    body = get(cluster, paths.config_map_path(VOLCANO_SYSTEM, CONFIG_MAP))
    kept: Json = body["data"]
    assert "gpushare" not in json.dumps({**body["metadata"], "managedFields": None})
    return kept


def await_text(cluster: LocalCluster, text: str, *, what: str) -> None:
    wait_until(
        what,
        lambda: configured(cluster) == {KEY: text},
        interval=0.5,
        explain=lambda: str(configured(cluster)),
    )


@pytest.fixture
def volcano_system(cluster: LocalCluster) -> Iterator[None]:
    """Volcano's namespace, with nothing in it."""
    cluster.kubectl("create", "namespace", VOLCANO_SYSTEM)
    yield
    cluster.kubectl("delete", "namespace", VOLCANO_SYSTEM)


@pytest.mark.usefixtures("volcano_system")
def test_volcanos_config_map_is_edited_repaired_and_restored(cluster: LocalCluster, product: Product) -> None:
    product.apply(with_backend("Volcano", dialect="volcano.sh"))
    message = await_reason(cluster, "SchedulerConfigured", "ConfigMapForbidden")
    assert "kubectl apply -f manifests/volcano/rbac.yaml" in message
    cluster.kubectl("apply", "-f", str(ROOT / "manifests" / "volcano" / "rbac.yaml"))
    message = await_reason(cluster, "SchedulerConfigured", "ConfigMapMissing")
    assert f"ConfigMap {VOLCANO_SYSTEM}/{CONFIG_MAP}: it is not there" in message

    cluster.kubectl("create", "-f", "-", stdin=config_map(CONFIG))
    await_text(cluster, enable(CONFIG).text, what="GPU sharing is switched on")
    await_reason(cluster, "SchedulerConfigured", "Configured")

    theirs = CONFIG.replace("- name: nodeorder", "- name: binpack # since today")
    cluster.kubectl("replace", "-f", "-", stdin=config_map(theirs))
    await_text(cluster, enable(theirs).text, what="what was overwritten is edited again")

    product.delete("default")
    await_text(cluster, theirs, what="every byte is as people wrote it last")
    backups = get(cluster, paths.config_maps(SYSTEM))["items"]
    assert [backup for backup in backups if "volcano" in backup["metadata"]["name"]] == []


@pytest.fixture(scope="module")
def volcano() -> Volcano:
    return ensure_volcano(report=to_stderr)


@pytest.fixture
def volcano_scheduler(cluster: LocalCluster, volcano: Volcano, volcano_system: None) -> Iterator[None]:
    """Volcano's own scheduler as its chart runs it, with GPU sharing off."""
    del volcano_system
    cluster.kubectl("apply", "-f", str(volcano.crds))
    cluster.kubectl("apply", "-f", str(ROOT / "manifests" / "volcano" / "rbac.yaml"))
    cluster.kubectl("create", "-f", "-", stdin=config_map(CONFIG))
    cluster.kubectl("create", "serviceaccount", "-n", VOLCANO_SYSTEM, "volcano-scheduler")
    account = f"{VOLCANO_SYSTEM}:volcano-scheduler"
    cluster.kubectl(
        "create",
        "clusterrolebinding",
        "volcano",
        "--clusterrole=cluster-admin",
        f"--serviceaccount={account}",
    )
    # Copied onto its node, which shows its own /tmp: the cache may lie in the host's.
    folder = cluster.node_path(VOLCANO_NODE, VOLCANO_FOLDER)
    folder.mkdir(exist_ok=True)
    shutil.copy2(volcano.scheduler, folder / "volcano-scheduler")
    cluster.kubectl("create", "-n", VOLCANO_SYSTEM, "-f", "-", stdin=json.dumps(scheduler_pod()))
    watch_until(
        cluster,
        PODS.format(namespace=VOLCANO_SYSTEM),
        lambda pods: any(is_running(pod) for pod in pods),
        what="Volcano's scheduler runs",
        describe=lambda pods: [pod["status"] for pod in pods],
    )
    await_log(cluster, "priority gang drf predicates nodeorder")
    yield
    cluster.kubectl("delete", "pod", "-n", VOLCANO_SYSTEM, "volcano-scheduler")
    cluster.kubectl("delete", "clusterrolebinding", "volcano")
    cluster.kubectl("delete", "-f", str(volcano.crds))
    shutil.rmtree(folder)


def scheduler_pod() -> Json:
    flags = [
        f"--scheduler-conf=/volcano.scheduler/{KEY}",
        "--leader-elect=false",
        "--enable-metrics=false",
        "--enable-healthz=false",
        "--logtostderr",
        "-v=2",
    ]
    mounts = [
        {"name": "config", "mountPath": "/volcano.scheduler"},
        {"name": "program", "mountPath": "/volcano", "readOnly": True},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "volcano-scheduler"},
        "spec": {
            "nodeName": VOLCANO_NODE,
            "serviceAccountName": "volcano-scheduler",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "scheduler",
                    "image": "volcano:test",
                    "command": ["/volcano/volcano-scheduler", *flags],
                    "env": [{"name": "DEBUG_SOCKET_DIR", "value": "/run/volcano"}],
                    "volumeMounts": mounts,
                }
            ],
            "volumes": [
                {"name": "config", "configMap": {"name": CONFIG_MAP}},
                {"name": "program", "hostPath": {"path": VOLCANO_FOLDER}},
            ],
        },
    }


def log_of_scheduler(cluster: LocalCluster) -> str:
    return cluster.kubectl("logs", "-n", VOLCANO_SYSTEM, "volcano-scheduler", "--tail=2000")


def await_log(cluster: LocalCluster, text: str) -> None:
    wait_until(
        f"Volcano's scheduler says {text}",
        lambda: text in log_of_scheduler(cluster),
        interval=1,
        explain=lambda: log_of_scheduler(cluster)[-2000:],
    )


def for_volcano(name: str, *, memory: int) -> list[Json]:
    """A pod and its group, which Volcano's controllers would make."""
    body = pod(name, {"main": memory}, resource=MEMORY, on="gpu-2")
    body["spec"]["schedulerName"] = "volcano"
    body["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": name}
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": 1, "queue": "default"},
    }
    return [group, body]


def sharing_with_volcano() -> Json:
    """Two cards of 8000 MiB, which Volcano's scheduler places pods on and our plugin gives out."""
    body = policy("default", nodes=["gpu-2"], unit="1Mi", cards=2, memory="8000Mi")
    body["spec"] |= {"scheduler": {"backend": "Volcano"}, "dialect": "volcano.sh"}
    return body


@pytest.mark.usefixtures("volcano_scheduler")
def test_volcanos_own_scheduler_chooses_cards_and_our_plugin_follows(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    product.apply(sharing_with_volcano())
    await_reason(cluster, "SchedulerConfigured", "Configured")
    # The kubelet shows a ConfigMap anew when it syncs the pod: at once after any change of the pod.
    cluster.kubectl("annotate", "pod", "-n", VOLCANO_SYSTEM, "volcano-scheduler", "synced=now")
    await_log(cluster, "priority gang drf deviceshare predicates nodeorder")
    product.await_ready("default")

    asked = {"a": 6000, "b": 1000, "c": 4000, "d": 1000, "e": 1000}
    for together in ("a", "b", "c", "de"):
        bodies = (body for name in together for body in for_volcano(name, memory=asked[name]))
        create(cluster, namespace, bodies)
        pods = await_served(cluster, namespace, *together)

    cards = {name: annotations(pod)["volcano.sh/gpu-index"] for name, pod in pods.items()}
    assert [cards.pop(name) for name in "abc"] == ["0", "0", "1"], "4000 MiB do not fit beside 7000 of 8000"
    assert sorted(cards.values()) == ["0", "1"], "1000 MiB are left on card 0"
    assert all(int(annotations(pod)["volcano.sh/predicate-time"]) for pod in pods.values())
    assert {pod["spec"]["nodeName"] for pod in pods.values()} == {"gpu-2"}
    for name, memory in asked.items():
        check_followed(cluster, pods[name], memory=memory)
    await_agreement(cluster, namespace)
    assert len(read_books(cluster, namespace).status) == len(pods)
    check_cordon(cluster, namespace)

    product.delete("default")
    await_text(cluster, CONFIG, what="the ConfigMap is restored")
    await_closed_cards(cluster, None)


def check_cordon(cluster: LocalCluster, namespace: str) -> None:
    """Card 0, which has room again and would come first, is cordoned: Volcano takes the other one."""
    cluster.kubectl("delete", "pods", "a", "b", "-n", namespace)
    cluster.kubectl("annotate", "gpusharenode", "gpu-2", f"{CORDON_ANNOTATION}=0")
    await_closed_cards(cluster, "0")
    create(cluster, namespace, for_volcano("f", memory=1000))
    pods = await_served(cluster, namespace, "f")
    assert annotations(pods["f"])["volcano.sh/gpu-index"] == "1"


def await_closed_cards(cluster: LocalCluster, expected: str | None) -> None:
    key = VOLCANO.closed_cards_annotation
    watch_until(
        cluster,
        paths.NODES,
        lambda nodes: any(named(node, "gpu-2") and annotations(node).get(key) == expected for node in nodes),
        what=f"node gpu-2 says {expected} in {key}",
        describe=lambda nodes: [annotations(node) for node in nodes if named(node, "gpu-2")],
    )


def annotations(pod: Json) -> Json:
    found: Json = pod["metadata"].get("annotations", {})
    return found


def await_served(cluster: LocalCluster, namespace: str, *names: str) -> dict[str, Json]:
    """Wait until these pods run and are annotated by Volcano, its plugin's stand-in and us; return all."""
    keys = {"volcano.sh/gpu-index", "volcano.sh/gpu-assigned", "gpushare.io/allocation"}

    def served(pods: Sequence[Json]) -> set[str]:
        running = (pod for pod in pods if is_running(pod))
        return {pod["metadata"]["name"] for pod in running if keys <= annotations(pod).keys()}

    pods = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: served(pods) >= {*names},
        what=f"{names} run on the cards that Volcano gave them",
        describe=lambda pods: [(annotations(pod), pod["status"]) for pod in pods],
    )
    return {pod["metadata"]["name"]: pod for pod in pods}


def check_followed(cluster: LocalCluster, pod: Json, *, memory: int) -> None:
    """Checks that the container has the card that Volcano chose, and that the pod says so in both words."""
    metadata, said = pod["metadata"], annotations(pod)
    told = cluster.container(namespace=metadata["namespace"], pod=metadata["name"], container="main").env
    assert told["GPUSHARE_CARD_INDEX"] == said["volcano.sh/gpu-index"]
    assert told["NVIDIA_VISIBLE_DEVICES"] == told["GPUSHARE_CARD"]
    assert (told["VOLCANO_GPU_ALLOCATED"], told["VOLCANO_GPU_MEMORY_TOTAL"]) == (str(memory), "8000")
    assert said["volcano.sh/gpu-assigned"] == "true"
    ours = json.loads(said["gpushare.io/allocation"])
    assert (ours["uid"], ours["node"]) == (metadata["uid"], "gpu-2")
    assert ours["cards"] == {told["GPUSHARE_CARD"]: memory}
