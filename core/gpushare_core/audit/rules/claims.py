"""What our own annotations say that pods have, as far as they are allocations of these very pods."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from gpushare_core.allocation_annotation import (
    Allocation,
    MalformedAllocationError,
    decode_allocation,
    sum_shares,
)
from gpushare_core.audit.holdings import stored_of
from gpushare_core.audit.records import NodeRecords, PodRecord, Shares, StoredContainer
from gpushare_core.audit.unit_map import UnitMap, unit_map
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import readable_unit


@dataclass(frozen=True, slots=True)
class Claim:
    """What one pod has by its annotation."""

    pod: PodRecord
    allocation: Allocation
    witnessed: bool = False
    """Whether the kubelet gave the pod as much as this, though it asks for less."""

    @property
    def justified(self) -> bool:
        """Whether the pod asks for that much, as far as it is known what it asks for, or was given
        it by the kubelet: else somebody else than our programs has written it."""
        request = self.pod.request
        return request is None or self.total <= request.total or self.witnessed

    @property
    def total(self) -> int:
        """Returns the units of all cards."""
        return sum(self.allocation.held().values())

    def class_of(self, card: str) -> ResourceClass:
        unit = readable_unit(self.allocation.unit_of(card))
        return unit.resource if unit else self.allocation.resource


def claims(records: NodeRecords) -> dict[str, Claim]:
    """Returns the claims of the pods that have not ended, by UID; empty where no pods were read."""
    return {
        uid: _claim(records, pod, allocation)
        for uid, pod in (records.pods or {}).items()
        if not pod.ended and (allocation := _allocation(pod)) is not None
    }


def _allocation(pod: PodRecord) -> Allocation | None:
    text = pod.annotations.get(Dialect.allocation_annotation)
    try:
        return None if text is None else decode_allocation(text, uid=pod.key.uid)
    except MalformedAllocationError:
        return None


def _claim(records: NodeRecords, pod: PodRecord, allocation: Allocation) -> Claim:
    claim = Claim(pod, allocation)
    return claim if claim.justified else replace(claim, witnessed=_is_witnessed(records, claim))


def _is_witnessed(records: NodeRecords, claim: Claim) -> bool:
    """Whether a pod was given, by its kubelet or else by the status, what is claimed for it.

    A kubelet that has lost its checkpoint admits ordinary init containers once more: on another card, or
    beside containers that run on with what it has forgotten. Then they lend their units to nobody. What
    neither book has of a container is believed as far as the container asks for it. Source:
    ``isContainerAlreadyRunning`` and ``devicesToReuse`` of ``devicemanager.ManagerImpl`` (1.36).
    """
    request, units = claim.pod.request, unit_map(records.share_node)
    if request is None or units is None:
        return False
    if records.checkpoint is None:
        witness = _by_status(records, claim.pod, request.init_containers)
    else:
        witness = _by_checkpoint(stored_of(records, claim.pod), units)
    most = Counter(witness.held)
    for name, shares in claim.allocation.containers.items():
        if name not in witness.shares:
            if name in request.init_containers or sum(shares.values()) > request.containers.get(name, 0):
                return False
            most.update(shares)
        elif witness.shares[name] != shares:
            return False
    return all(count <= most[card] for card, count in claim.allocation.held().items())


class _Witness(NamedTuple):
    """What one book has of a pod."""

    shares: Mapping[str, Shares]
    """By container."""
    held: Mapping[str, int]
    """Card UUID -> units of all containers, each counted once however many of them lend it to each other."""


def _by_checkpoint(stored: Mapping[str, StoredContainer], units: UnitMap) -> _Witness:
    numbers = {
        name: {(part.resource, number) for part in container.units for number in part.numbers}
        for name, container in stored.items()
    }
    shares = {name: dict(_on_cards(found, units)) for name, found in numbers.items()}
    return _Witness(shares, _on_cards(set().union(*numbers.values()), units))


def _on_cards(numbers: Iterable[tuple[str, int]], units: UnitMap) -> Counter[str]:
    blocks = (units.block(number) for _, number in numbers)
    return Counter(block.card for block in blocks if block)


def _by_status(records: NodeRecords, pod: PodRecord, inits: Collection[str]) -> _Witness:
    """Which units they are it does not say: on a card where other containers have units they lend theirs."""
    shares: dict[str, dict[str, int]] = defaultdict(dict)
    for card in records.share_node.cards if records.share_node else ():
        for holder in card.holders:
            if holder.key.pod.uid == pod.key.uid:
                shares[holder.key.container][card.uuid] = holder.units
    held = Counter(sum_shares({name: share for name, share in shares.items() if name not in inits}))
    for name in shares.keys() & inits:
        held |= Counter(shares[name])
    return _Witness(shares, held)
