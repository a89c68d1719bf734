"""The Deployment of a second kube-scheduler, for each engine.

Both have the same name, Lease of leadership and probes, so a change of engine is a rollout.
"""

from dataclasses import dataclass

from gpushare_core.api.names import DEDICATED_EXTENDER_ACCOUNT, DEDICATED_SCHEDULER
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
from gpushare_operator.policies.engine_choice import EngineChoice, choose_engine
from gpushare_operator.policies.scheduler_settings import SchedulerSettings

REPLICAS = 2
"""One leads; the other takes over within seconds."""
FOLDER = "/run/gpushare"
"""In the pod: what its containers share. It is in memory, because the extender's keys are there."""
SCHEDULER_PORT = 10259


@dataclass(frozen=True, slots=True, kw_only=True)
class _Programs:
    """Those of a pod, for one engine."""

    account: str
    """The ServiceAccount that may do what they do, and no more."""
    arguments: list[str]
    """By which hostctl writes the engine into kube-scheduler's configuration."""
    scheduler: Json
    """The fields of kube-scheduler's container for its image."""
    beside: list[Json]
    """The containers that run beside kube-scheduler."""
    grace_seconds: int
    """A bind that is under way takes 15 s at most."""


def scheduler_image(installation: Installation, choice: EngineChoice, version: str) -> str:
    """Returns the image of kube-scheduler for a server of ``version``, such as ``v1.36.3``."""
    if choice.minor:
        return installation.engine_image_for(choice.minor)
    return installation.scheduler_image_for(version)


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
    programs = _programs(installation, settings, version)
    return {
        "serviceAccountName": programs.account,
        **pull_secrets(installation),
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "affinity": _apart(),
        "terminationGracePeriodSeconds": programs.grace_seconds,
        "securityContext": unprivileged(),
        "initContainers": [_preparation(installation, programs.arguments)],
        "containers": [_scheduler(programs.scheduler), *programs.beside],
        "volumes": [{"name": "shared", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
    }


def _programs(installation: Installation, settings: SchedulerSettings, version: str) -> _Programs:
    choice = choose_engine(settings.engine, version)
    image = scheduler_image(installation, choice, version)
    if choice.minor:
        return _Programs(
            account=DEDICATED_SCHEDULER,
            arguments=settings.plugin_arguments,
            scheduler=pulled(installation, image),
            beside=[],
            grace_seconds=30,
        )
    return _Programs(
        account=DEDICATED_EXTENDER_ACCOUNT,
        arguments=settings.extender_arguments,
        # When it is pulled follows from its tag, which Kubernetes gives to one image for ever.
        scheduler={"image": image},
        beside=[_extender(installation, settings.port)],
        # Before its binds end the extender answers open requests; then it gives its Lease back.
        grace_seconds=40,
    )


def _apart() -> Json:
    term = {
        "labelSelector": {"matchLabels": selector(SCHEDULER)},
        "topologyKey": "kubernetes.io/hostname",
    }
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def _preparation(installation: Installation, arguments: list[str]) -> Json:
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
            *arguments,
        ],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": confined(),
        "volumeMounts": [mount("shared", FOLDER)],
        "resources": resources_of(installation.programs.extender, RESOURCES),
    }


def _scheduler(image: Json) -> Json:
    return {
        "name": "kube-scheduler",
        **image,
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
