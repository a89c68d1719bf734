"""What is around a pod that is asked about: nodes, policies, quotas, programs, short to write."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from tests.samples.why import card_json, memory_pod, share_node_json, situation

from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.objects.pod_surroundings import KnownClaim, KnownProgram, KnownQuota
from gpushare_cli.decide.objects.policy import ObservedPolicy
from gpushare_cli.decide.why.cluster_facts import ClusterFacts
from gpushare_cli.decide.why.finding import Finding
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_core.text.json_object import Json

READY = {"Ready": ("True", "Serving", "")}
ALLOCATABLE = {"cpu": "8", "memory": "32Gi", "pods": "110"}


def node(
    name: str = "gpu-1",
    *,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Json] = (),
    unschedulable: bool = False,
    offered: Mapping[str, str] | None = None,
) -> KubeNode:
    """``offered``: of allocatable, in place of or beside the usual."""
    body = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": [*taints], "unschedulable": unschedulable},
        "status": {"allocatable": {**ALLOCATABLE, **(offered or {})}},
    }
    return msgspec.convert(body, KubeNode)


def policy(
    name: str = "default",
    *,
    conditions: Mapping[str, tuple[str, str, str]] | None = None,
    rules: Iterable[Json] = ({"names": ["gpu-1"], "mode": "Memory"},),
    backend: str = "KubeScheduler",
    engine: str = "",
    seen: bool = True,
    **metadata: Any,
) -> ObservedPolicy:
    """``conditions``: type -> status, reason, message. ``engine``: empty, as an older operator leaves it."""
    known = [
        {"type": type_, "status": status, "reason": reason, "message": message}
        for type_, (status, reason, message) in {**READY, **(conditions or {})}.items()
    ]
    body = {
        "metadata": {"name": name, "generation": 2, **metadata},
        "spec": {"dialect": "gpushare.io", "nodes": [*rules]},
        "status": {
            "observedGeneration": 2 if seen else 1,
            "backend": backend,
            "engine": engine,
            "conditions": known,
        },
    }
    return msgspec.convert(body, ObservedPolicy)


def program(component: str, *, ready: int = 1, desired: int = 1) -> KnownProgram:
    labels = {"app.kubernetes.io/component": component}
    status = {"readyReplicas": ready, "numberReady": ready, "desiredNumberScheduled": desired}
    return msgspec.convert(
        {"metadata": {"name": component, "labels": labels}, "status": status}, KnownProgram
    )


def quota(hard: str, used: str, name: str = "cards", key: str = "requests.gpushare.io/memory") -> KnownQuota:
    status = {"hard": {key: hard}, "used": {key: used}}
    return msgspec.convert({"metadata": {"name": name}, "status": status}, KnownQuota)


def claim(name: str, phase: str) -> KnownClaim:
    return msgspec.convert({"metadata": {"name": name}, "status": {"phase": phase}}, KnownClaim)


PROGRAMS = (program("operator"), program("extender"))


def asked(
    pod: Json | None = None,
    *,
    nodes: Iterable[KubeNode] | None = None,
    share_nodes: Iterable[Json] | None = None,
    exists: bool = False,
    more: Mapping[str, Any] | None = None,
    **cluster: Any,
) -> PodSituation:
    """A pod of 4 units in a cluster of one node with a card of 16 units, where all is well but for what is
    given. ``more``: of the situation."""
    sharing = [share_node_json("gpu-1", card_json(0))] if share_nodes is None else share_nodes
    known = [node()] if nodes is None else nodes
    facts = {"policies": [policy()], "programs": PROGRAMS, "asking_schedulers": frozenset(), **cluster}
    return situation(
        pod or memory_pod(4),
        sharing,
        exists=exists,
        cluster=ClusterFacts(nodes={each.name: each for each in known}, **facts),
        **(more or {}),
    )


Cause = Callable[[PodSituation], Iterable[Finding]]


def found(cause: Cause, situation: PodSituation) -> Finding:
    """Returns the only finding."""
    (finding,) = cause(situation)
    return finding


def said(cause: Cause, situation: PodSituation) -> list[str]:
    """Returns what is found, a sentence each."""
    return [finding.sentence for finding in cause(situation)]
