"""The four books of the fakes, as core's auditor compares them: each is read from its keeper."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import msgspec
from tests.fakes.books import Given, Kubelet
from tests.fakes.books_cluster import Cluster

from gpushare_core.audit.readers import read_environment, read_ledger, read_pod, read_share_node
from gpushare_core.audit.records import (
    ClusterRecords,
    ContainerKey,
    HeldUnits,
    LedgerRecord,
    ListedContainer,
    NodeRecords,
    PodKey,
    PodRecord,
    SeenCards,
    StoredContainer,
)
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.text.json_object import Json
from gpushare_extender.verbs.inspection import inspect_all
from gpushare_plugin.decide.units.unit_ids import known_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenContainer:
    """What one container has, by its kubelet, or by the environment its process was started with."""

    pod: PodKey
    container: str
    given: tuple[Given, ...]
    is_init: bool = False
    """Whether it is an ordinary init container: the kubelet does not list it, and in a running pod it has
    ended."""

    @property
    def key(self) -> ContainerKey:
        return ContainerKey(self.pod, self.container)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletBooks:
    """What one kubelet says, and what the processes of its node see."""

    listed: Iterable[GivenContainer]
    stored: Iterable[GivenContainer]
    running: Iterable[GivenContainer]


def node_books(
    name: str,
    *,
    share_node: Json | None,
    pods: Iterable[Json],
    kubelet: KubeletBooks,
    ledger: LedgerRecord | None,
    hardware: Mapping[str, int] | None = None,
    read: Callable[[Json], PodRecord] = read_pod,
) -> NodeRecords:
    """Returns the books of the node ``name``; the objects are as the API server has them."""
    return NodeRecords(
        node=name,
        share_node=read_share_node(share_node) if share_node else None,
        pods={pod["metadata"]["uid"]: read(pod) for pod in pods},
        resources=[
            ListedContainer(key=_unnamed(container), units=_held(container))
            for container in kubelet.listed
            if not container.is_init
        ],
        checkpoint={_unlisted(container): _stored(container) for container in kubelet.stored},
        environments={
            container.key: _told(container) for container in kubelet.running if not container.is_init
        },
        ledger=ledger,
        hardware=hardware,
    )


def ledger_books(ledger: Ledger) -> dict[str, LedgerRecord]:
    answer: Json = msgspec.to_builtins(inspect_all(ledger))
    return read_ledger(answer)


def _unnamed(each: GivenContainer) -> ContainerKey:
    """PodResources know no UID."""
    return ContainerKey(PodKey(each.pod.namespace, each.pod.name), each.container)


def _unlisted(each: GivenContainer) -> ContainerKey:
    """The checkpoint knows nothing else."""
    return ContainerKey(PodKey("", "", each.pod.uid), each.container)


def _stored(each: GivenContainer) -> StoredContainer:
    return StoredContainer(units=_held(each), response=_told(each))


def _held(each: GivenContainer) -> tuple[HeldUnits, ...]:
    return tuple(
        HeldUnits(resource=given.resource, numbers=sorted({*known_numbers(given.ids)}))
        for given in each.given
    )


def _told(each: GivenContainer) -> SeenCards | None:
    variables: dict[str, str] = {}
    for given in each.given:
        variables |= given.variables
    return read_environment(variables)


# The cluster without time


def read_books(cluster: Cluster) -> ClusterRecords:
    """Returns the books of all nodes of ``cluster``."""
    ledger = ledger_books(cluster.ledger)
    return ClusterRecords(
        {
            name: node_books(
                name,
                share_node=cluster.share_nodes.get(name),
                pods=(pod.body for pod in cluster.bound_to(name)),
                kubelet=_kubelet_books(node.kubelet),
                ledger=ledger.get(name, LedgerRecord()),
                hardware=node.cards.sizes(_cards_in_use(node.kubelet)),
            )
            for name, node in cluster.nodes.items()
        }
    )


def _cards_in_use(kubelet: Kubelet) -> set[str]:
    return {
        uuid for container in _containers(kubelet) for given in container.given for uuid, _ in given.cards()
    }


def _kubelet_books(kubelet: Kubelet) -> KubeletBooks:
    running = [*_containers(kubelet)]
    held = [
        container
        for container in running
        if (container.pod.namespace, container.pod.name) not in kubelet.forgotten
    ]
    return KubeletBooks(listed=held, stored=held, running=running)


def _containers(kubelet: Kubelet) -> Iterator[GivenContainer]:
    for pod, containers in kubelet.pods.values():
        for container, given in containers.items():
            yield GivenContainer(
                pod=PodKey(*pod.name, pod.uid),
                container=container,
                given=tuple(given),
                is_init=container in pod.request.init_containers,
            )
