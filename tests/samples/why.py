"""Pods, GPUShareNodes and what else ``kubectl gpushare why`` knows, short to write."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from gpushare_cli.decide.objects.pod_event import ObservedEvent
from gpushare_cli.decide.objects.share_node import ObservedShareNode
from gpushare_cli.decide.why.situation import PodSituation, read_kube_pod
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.holder import read_pod
from gpushare_core.scheduling.objects.share_node import read_share_node
from gpushare_core.scheduling.preemption.bound_pods import BoundPod, OwnedPod, PodList
from gpushare_core.text.json_object import Json

NOW = datetime(2026, 11, 21, 10, 5, tzinfo=UTC)
MEMORY, SLICE, CARD = "gpushare.io/memory", "gpushare.io/slice", "gpushare.io/card"
UNITS = {"Memory": "1Gi", "Slices": "1/2 card", "Exclusive": "1 card", "Mixed": "1Gi, 1/2 card, 1 card"}


def pod_json(
    name: str = "train", *, namespace: str = "ml", init: Mapping[str, Json] | None = None, **containers: Json
) -> Json:
    """``main={MEMORY: 4}`` stands for a container that asks for 4 units."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-11-21T10:00:00Z",
        },
        "spec": {
            "containers": [container_json(one, asks) for one, asks in containers.items()],
            **({"initContainers": [container_json(one, asks) for one, asks in init.items()]} if init else {}),
        },
        "status": {"phase": "Pending"},
    }


def container_json(name: str, asks: Json) -> Json:
    return {"name": name, "resources": {"limits": {resource: str(units) for resource, units in asks.items()}}}


def memory_pod(units: int, name: str = "train", **spec: Any) -> Json:
    pod = pod_json(name, main={MEMORY: units})
    return {**pod, "spec": {**pod["spec"], **spec}}


def card_json(
    index: int, units: int = 16, *, node: str = "gpu-1", held: Mapping[str, int] | None = None, **more: Any
) -> Json:
    """``held={"ml/a": 4}``: by pods whose UID is ``uid-a``."""
    pods = [
        {"namespace": pod.split("/")[0], "name": pod.split("/")[1], "uid": f"uid-{pod.split('/')[1]}"}
        | {"container": "main", "units": given, "usedMemory": "1Gi"}
        for pod, given in (held or {}).items()
    ]
    return {
        "index": index,
        "uuid": f"GPU-{node}-{index}",
        "memory": f"{units}Gi",
        "units": units,
        "health": "Healthy",
        "allocatedUnits": sum((held or {}).values()),
        "pods": pods,
        **more,
    }


def share_node_json(
    name: str, *cards: Json, mode: str = "Memory", registered: str = "True", **spec: Any
) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {"policy": "default", "mode": mode, "memoryUnit": "1Gi", "slicesPerCard": 2, **spec},
        "status": {
            "memoryUnit": UNITS[mode],
            "conditions": [{"type": "Registered", "status": registered, "message": "its plugin is silent"}],
            "cards": list(cards),
        },
    }


def full_node(name: str = "gpu-1", free: int = 0, *, cards: int = 2, **spec: Any) -> Json:
    """Cards of 16 units, each held by a pod of its own; the last one has ``free`` units."""
    held = [{f"ml/{name}-{index}": 16} for index in range(cards - 1)] + [{f"ml/{name}-last": 16 - free}]
    return share_node_json(
        name, *(card_json(index, node=name, held=units) for index, units in enumerate(held)), **spec
    )


def owned_pod(name: str, *, priority: int = 0, node: str = "", **metadata: Any) -> Json:
    pod = pod_json(name, main={MEMORY: 4})
    pod["metadata"] |= metadata
    pod["spec"] |= {"priority": priority, "nodeName": node}
    return pod


def bound_pods(*pods: Json) -> Sequence[BoundPod]:
    return PodList(items=[msgspec.convert(pod, OwnedPod) for pod in pods]).pods()


def situation(
    pod: Json,
    share_nodes: Iterable[Json] = (),
    *,
    exists: bool = True,
    bound: Iterable[Json] = (),
    waiting: Iterable[Json] = (),
    **more: Any,
) -> PodSituation:
    """``bound``: pods that are bound and not started."""
    raws = [msgspec.json.encode(node) for node in share_nodes]
    ledger = Ledger()
    ledger.replace_share_nodes(map(read_share_node, raws))
    for other in bound:
        ledger.set_pod(read_pod(msgspec.json.encode(other)))
    observed = [msgspec.json.decode(raw, type=ObservedShareNode) for raw in raws]
    kube_pod = read_kube_pod(pod)
    made = PodSituation(
        pod=pod,
        kube_pod=kube_pod,
        request=kube_pod.request(ledger.resources),
        exists=exists,
        now=NOW,
        ledger=ledger,
        share_nodes={node.name: node for node in observed},
        waiting=[msgspec.convert(other, OwnedPod) for other in waiting],
        events=(),
    )
    return replace(made, **more)


def event(
    reason: str = "FailedScheduling", note: str = "0/3 nodes are available", **more: Any
) -> ObservedEvent:
    return ObservedEvent(
        reason=reason,
        note=note,
        type="Warning",
        event_time="2026-11-21T10:00:01.000000Z",
        reporting_controller="default-scheduler",
        **more,
    )
