"""The bodies of pods."""

from chaos.operations.pod_shapes import Ask, Life, Place, PodShape
from gpushare_core.text.json_object import Json

COMMANDS = {
    Life.STAYS: "exec sleep infinity",
    Life.LINGERS: "trap '' TERM; while :; do sleep 1; done",
    Life.ENDS: "sleep 2",
    Life.CRASHES: "sleep 1; exit 1",
}
LABEL = "chaos"


def pod_body(name: str, shape: PodShape) -> Json:
    """Returns the pod as its author writes it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {LABEL: "pod"}, "annotations": dict(shape.annotations)},
        "spec": pod_spec(shape),
    }


def pod_spec(shape: PodShape) -> Json:
    containers = [_container(f"c{index}", ask, shape.life) for index, ask in enumerate(shape.asks)]
    first = [
        container
        for container, ask in zip(containers, shape.asks, strict=True)
        if ask.place is not Place.MAIN
    ]
    spec: Json = {
        "initContainers": first,
        "containers": [container for container in containers if container not in first],
        "terminationGracePeriodSeconds": shape.grace,
        "restartPolicy": "Never" if shape.life is Life.ENDS else "Always",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
    }
    return {**spec, "priorityClassName": shape.priority} if shape.priority else spec


def _container(name: str, ask: Ask, life: Life) -> Json:
    command = {Place.MAIN: COMMANDS[life], Place.INIT: "true", Place.SIDECAR: COMMANDS[Life.STAYS]}[ask.place]
    limits = {ask.resource: str(ask.amount)} if ask.resource else {}
    body: Json = {
        "name": name,
        "image": "busybox:stable",
        "command": ["sh", "-c", command],
        "resources": {"limits": limits},
    }
    return {**body, "restartPolicy": "Always"} if ask.place is Place.SIDECAR else body


def controller_body(kind: str, name: str, shape: PodShape, *, replicas: int) -> Json:
    """Returns a Job, Deployment, DaemonSet or StatefulSet of such pods."""
    labels = {LABEL: "pod", "owner": name}
    spec = pod_spec(shape)
    if shape.life is not Life.ENDS:
        spec["restartPolicy"] = "Always"
    template = {"metadata": {"labels": labels}, "spec": spec}
    selector = {"selector": {"matchLabels": {"owner": name}}}
    more: dict[str, Json] = {
        "Job": {"parallelism": replicas, "completions": replicas, "backoffLimit": 2},
        "Deployment": {"replicas": replicas, **selector},
        "DaemonSet": selector,
        "StatefulSet": {"replicas": replicas, "serviceName": name, **selector},
    }
    version = "batch/v1" if kind == "Job" else "apps/v1"
    body: Json = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
    return {**body, "spec": {"template": template, **more[kind]}}
