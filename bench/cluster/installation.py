"""A cluster for measuring, and the product on it, installed by its own manifests."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.measuring.figures import NotMeasuredError
from bench.readings import audit_log

from gpushare_core.api.names import NAMESPACE
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig
from gpushare_localcluster.scheduler import add_scheduler

ROOT = Path(__file__).resolve().parents[2]
WORKER = "gpu-1"
CONTROL_PLANE = "control-plane-1"
UNLIMITED = ("--kube-api-qps=2000", "--kube-api-burst=2000")
"""Of kube-scheduler's client: with its default of 50 a second it waits for itself."""
READY_SECONDS = 180
POLICY_KIND = "gpusharepolicy"
ADMISSION_BINDINGS = "validatingadmissionpolicybindings,mutatingadmissionpolicybindings"


def workers(backend: str) -> tuple[str, ...]:
    """Returns the real nodes that pods may go to, ``WORKER`` first.

    The kube-scheduler of backend Dedicated has two replicas, and those on one node of a local cluster would
    share its ports.
    """
    return (WORKER, "gpu-2") if backend == "Dedicated" else (WORKER,)


def config(folder: Path, *, backend: str, flags: Mapping[str, Sequence[str]]) -> ClusterConfig:
    """Returns one control plane and ``workers``; the API server's audit log is in ``folder``.

    ``flags``: more of kube-scheduler and kube-controller-manager.
    """
    # Nodes that only exist as objects never send a heartbeat.
    controllers = ["--node-monitor-grace-period=24h", *flags.get("kube-controller-manager", ())]
    return ClusterConfig(
        nodes=ClusterConfig.of_size(workers=len(workers(backend))).nodes,
        component_flags={
            "kube-apiserver": audit_log.flags(folder),
            "kube-controller-manager": controllers,
            "kube-scheduler": flags.get("kube-scheduler", ()),
        },
    )


def policy(backend: str, engine: str = "") -> Json:
    """The worker, with simulated cards."""
    simulated = [{"count": 8, "memory": "16Gi"}]
    rule = {"names": [WORKER], "devices": {"source": "Simulated", "simulated": simulated}}
    scheduler = {"backend": backend, **({"engine": engine} if engine else {})}
    return {
        "apiVersion": "gpushare.io/v1alpha1",
        "kind": "GPUSharePolicy",
        "metadata": {"name": "default"},
        "spec": {"nodes": [rule], "scheduler": scheduler},
    }


def install_crds(cluster: LocalCluster) -> None:
    """Installs what ``bench.fill_cluster`` needs, without anything that runs."""
    cluster.kubectl("apply", "-k", str(ROOT / "crds"))
    cluster.kubectl("wait", "--for=condition=Established", "crd/gpusharenodes.gpushare.io", "--timeout=30s")


def install_programs(cluster: LocalCluster, backend: str) -> None:
    """Installs what runs before there is any policy, with the rights that ``backend`` needs."""
    add_scheduler(cluster, VERSION)
    cluster.kubectl("apply", "-k", str(ROOT / "manifests"))
    if backend == "Dedicated":
        cluster.kubectl("apply", "-k", str(ROOT / "manifests" / "dedicated"))


def install(cluster: LocalCluster, backend: str, engine: str = "") -> None:
    """Installs everything and waits until a policy for the one worker is Ready.

    Raises:
        NotMeasuredError: another engine than ``engine`` places pods.
    """
    install_programs(cluster, backend)
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(policy(backend, engine)))
    waiting = ("--for=condition=Ready", f"--timeout={READY_SECONDS}s")
    cluster.kubectl("wait", *waiting, f"{POLICY_KIND}/default", timeout=READY_SECONDS + 20)
    if engine:
        _require_engine(json.loads(cluster.kubectl("get", f"{POLICY_KIND}/default", "-o", "json")), engine)


def _require_engine(found: Json, engine: str) -> None:
    status = found["status"]
    if (present := status.get("engine")) != engine:
        said = {condition["type"]: condition["message"] for condition in status.get("conditions") or ()}
        why = said.get("SchedulerConfigured", "")
        raise NotMeasuredError(f"engine {present} places pods, not {engine}: {why}")


def remove_admission(cluster: LocalCluster) -> Json:
    """Takes the bindings of all admission policies away, and returns them."""
    found: Json = json.loads(cluster.kubectl("get", ADMISSION_BINDINGS, "-o", "json"))
    cluster.kubectl("delete", ADMISSION_BINDINGS, "--all")
    return found


def restore_admission(cluster: LocalCluster, removed: Json) -> None:
    """Puts back what ``remove_admission`` took away."""
    items = [{**item, "metadata": _given(item["metadata"])} for item in removed["items"]]
    cluster.kubectl("create", "-f", "-", stdin=json.dumps({**removed, "items": items}))


def _given(metadata: Json) -> Json:
    """Returns what whoever created the object has said of it."""
    return {name: metadata[name] for name in ("name", "labels", "annotations") if name in metadata}


def stop_operator(cluster: LocalCluster) -> None:
    """Stops the operator, which would take back GPUShareNodes that no policy asked for."""
    cluster.kubectl("scale", "deployment/gpushare-operator", "-n", NAMESPACE, "--replicas=0")
    labels = ("-n", NAMESPACE, "-l", "app.kubernetes.io/component=operator")
    cluster.kubectl("wait", "pod", *labels, "--for=delete", "--timeout=60s")
