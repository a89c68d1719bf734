"""What pods have by our own annotation. One that was copied from another pod does not count."""

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
    was_given: bool = False
    """Whether the kubelet gave the pod that much, though it asks for less."""

    @property
    def justified(self) -> bool:
        """Whether the pod asks for that much, or the kubelet gave it that much; True where its request is
        unknown. Any other annotation was not written by our programs."""
        request = self.pod.request
        return request is None or self.total <= request.total or self.was_given

    @property
    def total(self) -> int:
        return sum(self.allocation.held().values())

    def class_of(self, card: str) -> ResourceClass:
        unit = readable_unit(self.allocation.unit_of(card))
        return unit.resource if unit else self.allocation.resource


def claims(records: NodeRecords) -> dict[str, Claim]:
    """Returns UID -> claim of the pods that have not ended; empty where no pods were read."""
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
    return claim if claim.justified else replace(claim, was_given=_was_given(records, claim))


def _was_given(records: NodeRecords, claim: Claim) -> bool:
    """Whether the kubelet has given the pod what the annotation says, by its checkpoint or else by the
    status.

    A kubelet that has lost its checkpoint admits ordinary init containers once more, on another card, or
    beside containers that still run with lost units. Then they lend their units to nobody. For a container
    that is not in that book the annotation may say as much as the container asks for. Source:
    ``isContainerAlreadyRunning`` and ``devicesToReuse`` of ``devicemanager.ManagerImpl`` (1.36).
    """
    request, units = claim.pod.request, unit_map(records.share_node)
    if request is None or units is None:
        return False
    if records.checkpoint is None:
        given = _by_status(records, claim.pod, request.init_containers)
    else:
        given = _by_checkpoint(stored_of(records, claim.pod), units)
    limit = Counter(given.held)
    for name, shares in claim.allocation.containers.items():
        if name not in given.shares:
            if name in request.init_containers or sum(shares.values()) > request.containers.get(name, 0):
                return False
            limit.update(shares)
        elif given.shares[name] != shares:
            return False
    return all(count <= limit[card] for card, count in claim.allocation.held().items())


class _GivenUnits(NamedTuple):
    """What a pod has by one book."""

    shares: Mapping[str, Shares]
    """By container."""
    held: Mapping[str, int]
    """Card UUID -> units; a unit that containers lend to each other counts once."""


def _by_checkpoint(stored: Mapping[str, StoredContainer], units: UnitMap) -> _GivenUnits:
    numbers = {
        name: {(part.resource, number) for part in container.units for number in part.numbers}
        for name, container in stored.items()
    }
    shares = {name: dict(_on_cards(found, units)) for name, found in numbers.items()}
    return _GivenUnits(shares, _on_cards(set().union(*numbers.values()), units))


def _on_cards(numbers: Iterable[tuple[str, int]], units: UnitMap) -> Counter[str]:
    blocks = (units.block(number) for _, number in numbers)
    return Counter(block.card for block in blocks if block)


def _by_status(records: NodeRecords, pod: PodRecord, inits: Collection[str]) -> _GivenUnits:
    """The status has no unit numbers: init containers count as lending their units where others have some."""
    shares: dict[str, dict[str, int]] = defaultdict(dict)
    for card in records.share_node.cards if records.share_node else ():
        for holder in card.holders:
            if holder.key.pod.uid == pod.key.uid:
                shares[holder.key.container][card.uuid] = holder.units
    held = Counter(sum_shares({name: share for name, share in shares.items() if name not in inits}))
    for name in shares.keys() & inits:
        held |= Counter(shares[name])
    return _GivenUnits(shares, held)
