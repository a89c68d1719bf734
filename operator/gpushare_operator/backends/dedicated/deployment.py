"""The Deployment of a kube-scheduler of our own, with the extender beside it."""

from gpushare_core.api.names import DEDICATED_SCHEDULER
from gpushare_core.text.json_object import Json
from gpushare_operator.backends.extender_workload.container import RESOURCES, extender_container, health_port
from gpushare_operator.cluster.labels import SCHEDULER
from gpushare_operator.desired.names import Installation, labels, selector
from gpushare_operator.desired.pod_template import (
    confined,
    field_variable,
    mount,
    of_pods,
    probe,
    pull_secrets,
    pulled,
    resources_of,
    unprivileged,
    with_digest,
)
from gpushare_operator.policies.scheduler_settings import SchedulerSettings

REPLICAS = 2
"""One leads; the other takes over within seconds."""
FOLDER = "/run/gpushare"
"""In the pod: what its containers share. It is in memory, because it holds keys."""
SCHEDULER_PORT = 10259


def scheduler_deployment(installation: Installation, settings: SchedulerSettings, version: str) -> Json:
    """Returns the Deployment for a server of ``version``, such as ``v1.36.3``."""
    return with_digest(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": DEDICATED_SCHEDULER,
                "namespace": installation.namespace,
                "labels": labels(SCHEDULER),
            },
            "spec": {
                "replicas": REPLICAS,
                "selector": {"matchLabels": selector(SCHEDULER)},
                "strategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
                },
                "template": {
                    "metadata": of_pods(labels(SCHEDULER), {}),
                    "spec": _pod(installation, settings, version),
                },
            },
        }
    )


def _pod(installation: Installation, settings: SchedulerSettings, version: str) -> Json:
    return {
        "serviceAccountName": DEDICATED_SCHEDULER,
        **pull_secrets(installation),
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "affinity": _apart(),
        # The extender answers open requests, ends binds under way (15 s each), gives its Lease back.
        "terminationGracePeriodSeconds": 40,
        "securityContext": unprivileged(),
        "initContainers": [_preparation(installation, settings)],
        "containers": [
            _scheduler(installation, version),
            _extender(installation, settings.port),
        ],
        "volumes": [{"name": "shared", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
    }


def _apart() -> Json:
    term = {
        "labelSelector": {"matchLabels": selector(SCHEDULER)},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _preparation(installation: Installation, settings: SchedulerSettings) -> Json:
    return {
        "name": "preparation",
        **pulled(installation),
        "command": ["gpushare-hostctl"],
        "args": [
            "dedicated",
            "--folder",
            FOLDER,
            "--scheduler-name",
            DEDICATED_SCHEDULER,
            "--lease-namespace",
            installation.namespace,
            *settings.extender_arguments,
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": confined(),
        "volumeMounts": [mount("shared", FOLDER)],
        "resources": resources_of(installation.programs.extender, RESOURCES),
    }


def _scheduler(installation: Installation, version: str) -> Json:
    return {
        "name": "kube-scheduler",
        "image": installation.scheduler_image_for(version),
        "command": ["kube-scheduler"],
        "args": [f"--config={FOLDER}/kube-scheduler.yaml", f"--secure-port={SCHEDULER_PORT}"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": confined(),
        "volumeMounts": [{**mount("shared", FOLDER), "readOnly": True}],
        "livenessProbe": _secure_probe("/livez", period=10),
        "readinessProbe": _secure_probe("/readyz", period=2),
        # It keeps all pods and nodes in memory: in a cluster that grows a limit would end it.
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }


def _secure_probe(path: str, *, period: int) -> Json:
    plain = probe(path, SCHEDULER_PORT, period=period)
    return {**plain, "httpGet": {**plain["httpGet"], "scheme": "HTTPS"}}


def _extender(installation: Installation, port: int) -> Json:
    container = extender_container(
        installation,
        [port],
        mounts=[{**mount("shared", FOLDER), "readOnly": True}],
        # The kubelet asks from outside the pod.
        variable=field_variable("POD_IP", "status.podIP"),
        health_host="$(POD_IP)",
    )
    # By the port's name a PodMonitor finds it.
    ports = [{"name": "health", "containerPort": health_port([port]), "protocol": "TCP"}]
    return {**container, "ports": ports}
