"""The books of the local cluster, read independently of the product, and compared by its auditor.

1. the annotation on the pod, 2. the kubelet's PodResources, 3. its checkpoint, 4. the environment of the
container's process, 5. the status of the GPUShareNode, and where a control plane's extender serves, 6. its
ledger.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from tests.e2e.observe import SHARE_NODES, Json, get

from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.host import read_host
from gpushare_core.api.names import EXTENDER_PORT
from gpushare_core.audit.auditor import differences
from gpushare_core.audit.difference import Difference
from gpushare_core.audit.readers import cluster_records, read_environment, read_ledger
from gpushare_core.audit.records import (
    ClusterRecords,
    ContainerKey,
    HostRecords,
    LedgerRecord,
    NodeRecords,
    PodKey,
    SeenCards,
)
from gpushare_core.audit.rules.claims import claims
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube.paths import PODS as ALL_PODS
from gpushare_localcluster.cluster import LocalCluster

KUBELET = "/var/lib/kubelet"
INSPECT = """
import ssl, sys, urllib.request
folder = "/etc/kubernetes/gpushare/"
context = ssl.create_default_context(cafile=folder + "extender/authorities.pem")
context.load_cert_chain(folder + "keys/client.pem")
print(urllib.request.urlopen(sys.argv[1], timeout=30, context=context).read().decode())
"""
"""Asks the extender of the host for a URL, as who has the host's keys."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A container."""

    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class Share:
    """What one container has: its card, or several in order with commas between them, and units of all."""

    card: str
    units: int

    @classmethod
    def of(cls, shares: Mapping[str, int]) -> "Share | None":
        """``shares``: card -> units."""
        return cls(",".join(sorted(shares)), sum(shares.values())) if shares else None

    @property
    def cards(self) -> list[str]:
        return self.card.split(",")


Book = dict[Key, Share]


@dataclass(frozen=True, slots=True)
class Books:
    """What the books say of the containers in one namespace."""

    namespace: str
    audited: ClusterRecords
    """Those of the whole cluster."""

    @property
    def annotation(self) -> Book:
        """Without ordinary init containers, of which nothing tells once they have ended."""
        return {
            Key(self.namespace, claim.pod.key.name, name): share
            for node in self.audited.nodes.values()
            for claim in claims(node).values()
            if claim.pod.key.namespace == self.namespace and claim.pod.phase == "Running"
            for name, shares in claim.allocation.containers.items()
            if claim.pod.request and name not in claim.pod.request.init_containers
            if (share := Share.of(shares))
        }

    @property
    def environment(self) -> Book:
        return {
            Key(self.namespace, key.pod.name, key.container): Share(
                ",".join(sorted(seen.cards)), seen.units or 0
            )
            for node in self.audited.nodes.values()
            for key, seen in (node.environments or {}).items()
            if seen and key.pod.namespace == self.namespace
        }

    @property
    def status(self) -> Book:
        found: dict[Key, dict[str, int]] = defaultdict(dict)
        for node in self.audited.nodes.values():
            for card in node.share_node.cards if node.share_node else ():
                for holder in card.holders:
                    pod, name = holder.key
                    if pod.namespace == self.namespace and name not in _init_containers(node, pod.uid):
                        found[Key(pod.namespace, pod.name, name)][card.uuid] = holder.units
        return {key: share for key, shares in found.items() if (share := Share.of(shares))}

    def differences(self) -> list[Difference]:
        """Returns what is not as it must be on this namespace's pods, and on cards and nodes."""
        own = f"{self.namespace}/"
        found = differences(self.audited)
        return [difference for difference in found if not difference.pod or difference.pod.startswith(own)]

    def disagreements(self) -> list[str]:
        """As ``differences``, for people; empty when the books agree."""
        return [str(difference) for difference in self.differences()]


def _init_containers(node: NodeRecords, uid: str) -> frozenset[str]:
    pod = (node.pods or {}).get(uid)
    return pod.request.init_containers if pod and pod.request else frozenset()


def read_books(cluster: LocalCluster, namespace: str) -> Books:
    return Books(namespace, read_cluster(cluster))


def read_cluster(cluster: LocalCluster) -> ClusterRecords:
    """Returns all books of the cluster as far as they can be read now, the kubelets' last."""
    pods: list[Json] = get(cluster, ALL_PODS)["items"]
    share_nodes: list[Json] = get(cluster, SHARE_NODES)["items"]
    ledger = read_extender(cluster)
    environments = _environments(cluster)
    hosts = {
        node.name: _host(cluster, node.name, environments.get(node.name, {}))
        for node in cluster.status().nodes
        if node.is_on and any(share_node["metadata"]["name"] == node.name for share_node in share_nodes)
    }
    return cluster_records(share_nodes, pods, ledger=ledger, hosts=hosts)


def _host(
    cluster: LocalCluster, node: str, environments: Mapping[ContainerKey, SeenCards | None]
) -> HostRecords:
    """Nothing of a kubelet that does not answer."""
    try:
        found = read_host(cluster.node_path(node, KUBELET))
    except CannotLookError:
        return HostRecords(environments=environments)
    return HostRecords(resources=found.resources, checkpoint=found.checkpoint, environments=environments)


def _environments(cluster: LocalCluster) -> dict[str, dict[ContainerKey, SeenCards | None]]:
    """Node -> running container -> what its process really was given."""
    found: dict[str, dict[ContainerKey, SeenCards | None]] = defaultdict(dict)
    for container in cluster.containers():
        if container.state == "running":
            pod = PodKey(container.namespace, container.pod, container.pod_uid)
            found[container.node][ContainerKey(pod, container.container)] = read_environment(container.env)
    return found


def read_extender(cluster: LocalCluster) -> dict[str, LedgerRecord] | None:
    """Returns the ledger of the extender on the first control plane; None where none answers."""
    for node in cluster.status().nodes:
        if node.name.startswith("control-plane") and node.is_on:
            url = f"https://127.0.0.1:{EXTENDER_PORT}{GPUSHARE.inspect_path}"
            answer = cluster.node_exec(node.name, [sys.executable, "-c", INSPECT, url])
            if answer.returncode == 0:
                return read_ledger(json.loads(answer.stdout))
    return None
