"""The books of a cluster without sockets, as the auditor reads them."""

from collections.abc import Iterator

import msgspec
from tests.fakes.books import Given, Node, Pod
from tests.fakes.books_cluster import Cluster

from gpushare_core.audit.readers import read_environment, read_ledger, read_pod, read_share_node
from gpushare_core.audit.records import (
    ClusterRecords,
    ContainerKey,
    HeldUnits,
    ListedContainer,
    NodeRecords,
    PodKey,
    PodRecord,
    SeenCards,
    StoredContainer,
)
from gpushare_core.dialects.table import RESOURCES
from gpushare_extender.verbs.inspection import inspect_all
from gpushare_plugin.decide.units.unit_ids import known_numbers


def read_books(cluster: Cluster) -> ClusterRecords:
    ledger = read_ledger(msgspec.to_builtins(inspect_all(cluster.ledger)))
    return ClusterRecords(
        {
            name: NodeRecords(
                node=name,
                share_node=read_share_node(cluster.share_nodes[name]),
                pods={pod.uid: _pod(pod) for pod in cluster.bound_to(name)},
                resources=[*_listed(node)],
                checkpoint=_stored(node),
                environments=dict(_environments(node)),
                ledger=ledger.get(name),
                hardware={card.uuid: card.memory for card in node.cards.present.values()},
            )
            for name, node in cluster.nodes.items()
        }
    )


def _pod(pod: Pod) -> PodRecord:
    return read_pod({**pod.body, "status": {"phase": pod.phase}})


def _listed(node: Node) -> Iterator[ListedContainer]:
    for pod in node.kubelet.listed().pod_resources:
        for container in pod.containers:
            units = [
                HeldUnits(resource=device.resource_name, numbers=sorted({*known_numbers(device.device_ids)}))
                for device in container.devices
                if device.resource_name in RESOURCES
            ]
            if units:
                key = ContainerKey(PodKey(pod.namespace, pod.name), container.name)
                yield ListedContainer(key=key, units=tuple(units))


def _stored(node: Node) -> dict[ContainerKey, StoredContainer]:
    found: dict[ContainerKey, StoredContainer] = {}
    told = {
        (pod.uid, container): _seen(given)
        for pod, containers in node.kubelet.pods.values()
        for container, given in containers.items()
    }
    for entry in node.kubelet.stored:
        key = ContainerKey(PodKey("", "", entry.uid), entry.container)
        units = HeldUnits(resource=entry.name, numbers=entry.numbers)
        found[key] = StoredContainer(units=(units,), response=told.get((entry.uid, entry.container)))
    return found


def _seen(given: list[Given]) -> SeenCards | None:
    return read_environment(given[0].variables)


def _environments(node: Node) -> Iterator[tuple[ContainerKey, SeenCards | None]]:
    """Ordinary init containers have ended."""
    for pod, containers in node.kubelet.pods.values():
        if pod.phase != "Running":
            continue
        for container, given in containers.items():
            if container not in pod.request.init_containers:
                yield ContainerKey(PodKey("default", pod.name.name, pod.uid), container), _seen(given)
