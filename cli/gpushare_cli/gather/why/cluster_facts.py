"""What is read of the cluster beside cards."""

import asyncio
from dataclasses import dataclass, field
from typing import TypeVar

from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.objects.pod_surroundings import CallsLease, KnownClaim, KnownProgram, KnownQuota
from gpushare_cli.decide.objects.policy import ObservedPolicy
from gpushare_cli.decide.scheduling.written_pod import written_pod
from gpushare_cli.decide.why.cluster_facts import NODES as NODES_NAME
from gpushare_cli.decide.why.cluster_facts import ClusterFacts
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import read_list
from gpushare_core.api.names import CALLS_COMPONENT, CALLS_LEASE, COMPONENT_LABEL
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.paths import DAEMON_SETS, DEPLOYMENTS, LEASES, NODES, POLICIES, claims, quotas
from gpushare_core.text.json_object import Json

T = TypeVar("T")

OURS = "app.kubernetes.io/name=gpushare"


@dataclass(slots=True)
class _Reader:
    client: KubeClient
    unread: dict[str, str] = field(default_factory=dict)
    is_installed: bool = True

    async def list(self, what: str, path: str, *, shape: type[T], label_selector: str = "") -> list[T] | None:
        try:
            return await read_list(self.client, path, shape=shape, label_selector=label_selector)
        except CannotLookError as error:
            cause = error.__cause__
            if path == POLICIES and isinstance(cause, ApiError) and cause.is_not_found:
                self.is_installed = False
                return None
            self.unread[what] = str(error)
            return None


async def read_cluster_facts(client: KubeClient, pod: Json, *, namespace: str) -> ClusterFacts:
    """Never raises: what cannot be read is ``unread``."""
    reader = _Reader(client)
    mounts = bool(written_pod(pod).spec.claims)
    nodes, policies, quota, mounted, programs, asking = await asyncio.gather(
        reader.list(NODES_NAME, NODES, shape=KubeNode),
        reader.list("GPUSharePolicies", POLICIES, shape=ObservedPolicy),
        reader.list("ResourceQuotas", quotas(namespace), shape=KnownQuota),
        reader.list("PersistentVolumeClaims", claims(namespace), shape=KnownClaim) if mounts else _nothing(),
        _programs(reader),
        _asking(reader),
    )
    return ClusterFacts(
        nodes=None if nodes is None else {node.name: node for node in nodes},
        policies=policies,
        is_installed=reader.is_installed,
        quotas=quota,
        claims=None if mounted is None else {claim.metadata.name: claim for claim in mounted},
        programs=programs,
        asking_schedulers=asking,
        unread=reader.unread,
    )


async def _nothing() -> None:
    """In place of what the pod does not need."""


async def _programs(reader: _Reader) -> list[KnownProgram] | None:
    deployments, daemon_sets = await asyncio.gather(
        reader.list("Deployments", DEPLOYMENTS, shape=KnownProgram, label_selector=OURS),
        reader.list("DaemonSets", DAEMON_SETS, shape=KnownProgram, label_selector=OURS),
    )
    return None if deployments is None or daemon_sets is None else [*deployments, *daemon_sets]


async def _asking(reader: _Reader) -> frozenset[str] | None:
    selector = f"{COMPONENT_LABEL}={CALLS_COMPONENT}"
    leases = await reader.list("Leases", LEASES, shape=CallsLease, label_selector=selector)
    calls = (lease for lease in leases or () if lease.metadata.name == CALLS_LEASE)
    return next((lease.asking for lease in calls), None)
