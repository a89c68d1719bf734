"""Pods and their controllers as a user of the product writes them."""

import json
from collections.abc import Iterable, Mapping

from tests.e2e.observe import watch_until

from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster

MEMORY = "gpushare.io/memory"
SLICE = "gpushare.io/slice"
CARD = "gpushare.io/card"


def container(name: str, units: int, *, command: str = "exec sleep infinity", resource: str = MEMORY) -> Json:
    resources = {"limits": {resource: str(units)}} if units else {}
    return {"name": name, "image": "busybox:stable", "command": ["sh", "-c", command], "resources": resources}


def pod(
    name: str,
    units: Mapping[str, int],
    *,
    node: str | None = None,
    on: str | None = None,
    restart: str = "Always",
    command: str = "exec sleep infinity",
    resource: str = MEMORY,
) -> Json:
    """A pod with a container for every entry of ``units``.

    ``node`` binds it past the scheduler by ``nodeName``; ``on`` only lets the scheduler choose that node.
    """
    spec: Json = {
        "containers": [
            container(name, amount, command=command, resource=resource) for name, amount in units.items()
        ],
        "terminationGracePeriodSeconds": 1,
        "restartPolicy": restart,
    }
    if node:
        spec["nodeName"] = node
    if on:
        spec["nodeSelector"] = {"kubernetes.io/hostname": on}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def replica_set(name: str, *, units: int, replicas: int) -> Json:
    """Replaces pods that the kubelet rejected, as any controller does."""
    template = pod("", {"main": units})
    labels = {"burst": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def create_namespace(cluster: LocalCluster, name: str) -> None:
    """Waits for its ServiceAccount, too, which a controller creates: pods are refused without it."""
    cluster.kubectl("create", "namespace", name)
    watch_until(
        cluster,
        f"/api/v1/namespaces/{name}/serviceaccounts",
        lambda accounts: any(account["metadata"]["name"] == "default" for account in accounts),
        what=f"namespace {name} has its ServiceAccount",
    )


def create(cluster: LocalCluster, namespace: str, bodies: Iterable[Json]) -> None:
    """All at once, in one call."""
    everything = {"apiVersion": "v1", "kind": "List", "items": list(bodies)}
    cluster.kubectl("create", "-n", namespace, "-f", "-", stdin=json.dumps(everything))
