"""I3: a container that runs and asks for units has them in some book."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from gpushare_core.audit.difference import ANNOTATION, STATUS, Difference, DifferenceKind
from gpushare_core.audit.holdings import Holding
from gpushare_core.audit.records import ContainerKey, NodeRecords, PodKey, PodRecord
from gpushare_core.audit.rules.claims import Claim
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS


class _Asked(NamedTuple):
    resource: str
    units: int


def without_units(
    records: NodeRecords, held: Iterable[Holding], claims: Mapping[str, Claim]
) -> Iterator[Difference]:
    """Yields the containers of running pods that ask for our units, and that are in no book that was read.

    The kubelet (1.36) starts what is bound past the scheduler and asks for an extended resource that it does
    not know (``removeMissingExtendedResources``): before a plugin registered, or of a class that the node
    does not offer. Where a book has something for the container, others say what is wrong.
    """
    dialect = DIALECTS.get(records.share_node.dialect) if records.share_node else None
    if dialect is None:
        return
    known = {(holding.key.pod.uid, holding.key.container) for holding in held}
    known |= {*_by_status(records), *_by_annotations(claims)}
    for pod in (records.pods or {}).values():
        for container, asked in _running(pod, {*dialect.resources, *GPUSHARE.resources}).items():
            key = ContainerKey(pod.key, container)
            if (pod.key.uid, container) not in known and _has_nothing(records, pod, container):
                yield _difference(records, key, asked)


def _by_status(records: NodeRecords) -> Iterator[tuple[str, str]]:
    for card in records.share_node.cards if records.share_node else ():
        for holder in card.holders:
            yield holder.key.pod.uid, holder.key.container


def _by_annotations(claims: Mapping[str, Claim]) -> Iterator[tuple[str, str]]:
    for uid, claim in claims.items():
        for container, shares in claim.allocation.containers.items():
            if claim.justified and any(shares.values()):
                yield uid, container


def _running(pod: PodRecord, names: Collection[str]) -> dict[str, _Asked]:
    """Returns what the pod's running containers ask for; nothing unless the kubelet has admitted the pod."""
    if pod.request is None or pod.phase != "Running" or pod.deleting:
        return {}
    request = pod.request.of(names)
    return {
        container: _Asked(resource.name, resource.containers[container])
        for resource in request.resources
        for container in request.running_containers
        if container in resource.containers
    }


def _has_nothing(records: NodeRecords, pod: PodRecord, container: str) -> bool:
    """Whether the container is not in the checkpoint, and its environment names no card.

    1. A kubelet that has just started has its checkpoint before its PodResources list any pod.
    2. A container that sees cards was given them once, even if nobody holds them now.
    """
    uids = {pod.key.uid, pod.kubelet_uid}
    is_stored = any(
        ContainerKey(PodKey("", "", uid), container) in (records.checkpoint or {}) for uid in uids
    )
    return not is_stored and not any(
        seen and key.pod.uid in uids and key.container == container
        for key, seen in (records.environments or {}).items()
    )


def _difference(records: NodeRecords, key: ContainerKey, asked: _Asked) -> Difference:
    is_read = records.resources is not None or records.checkpoint is not None
    none = "the kubelet holds none" if is_read else f"neither {ANNOTATION} nor {STATUS} has any"
    return Difference.of_container(
        records,
        key,
        DifferenceKind.WITHOUT_UNITS,
        f"{key} runs and asks for {asked.units} of {asked.resource}, and {none} for it: somebody"
        " bound the pod to a node that did not offer that, and the kubelet started it without. It has no"
        " card, or uses all of them if its image asks for that; delete the pod, and let the scheduler choose"
        " its node",
    )
