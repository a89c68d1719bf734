"""GPUShareNodes, pods and manifests as commands find them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.samples.extender import ANNOTATION, annotation, container_json, pod_json

from gpushare_core.text.json_object import Json


def cards_of(
    name: str,
    *held: Mapping[str, int],
    units: int = 16,
    unit: str = "1Gi",
    policy: str = "default",
    **spec: Any,
) -> Json:
    """A GPUShareNode with a card for each of ``held``: ``{"a": 4}`` stands for 4 units of the pod ``a``."""
    return {
        "metadata": {"name": name},
        "spec": {
            "policy": policy,
            "mode": "Memory",
            "memoryUnit": unit,
            "dialect": "gpushare.io",
            "strategy": "Binpack",
            **spec,
        },
        "status": {
            "memoryUnit": unit,
            "dialect": "gpushare.io",
            "conditions": [{"type": "Registered", "status": "True", "message": ""}],
            "cards": [
                {
                    "index": index,
                    "uuid": f"{name}-{index}",
                    "units": units,
                    "memory": f"{units}Gi",
                    "health": "Healthy",
                    "allocatedUnits": sum(pods.values()),
                    "pods": [_share(pod, amount) for pod, amount in pods.items()],
                }
                for index, pods in enumerate(held)
            ],
        },
    }


def _share(pod: str, units: int) -> Json:
    return {
        "namespace": "default",
        "name": pod,
        "uid": f"uid-{pod}",
        "container": "main",
        "units": units,
    }


def running(name: str, node: str, *, owner: str = "ReplicaSet", **cards: int) -> Json:
    """A bound pod with units of cards: ``c0=4`` stands for 4 units of the first card."""
    pod = pod_json(name, units=sum(cards.values()), node=node)
    owners = [{"kind": owner, "name": "web", "controller": True}] if owner else []
    annotations = {ANNOTATION: annotation(name, node=node, **cards)}  # type: ignore[arg-type]
    pod["metadata"] |= {"annotations": annotations, "labels": {"app": "web"}, "ownerReferences": owners}
    return pod


def manifest(name: str, units: int, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container_json(units=units)], **spec},
    }


def deployment(name: str, units: int, replicas: int) -> Json:
    template = {"spec": {"containers": [container_json(units=units)]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "template": template},
    }


def policy_json(name: str, nodes: Sequence[str], *, unit: str = "1Gi", **spec: Any) -> Json:
    rule = {
        "names": [*nodes],
        "mode": "Memory",
        "devices": {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]},
    }
    return {
        "apiVersion": "gpushare.io/v1alpha1",
        "kind": "GPUSharePolicy",
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": "1"},
        "spec": {"memoryUnit": unit, "nodes": [rule], **spec},
    }
