"""The annotation that says which card each container of a pod has: the books' durable form.

It travels on the Binding object, so node and card become true in one step. Whatever copies a pod copies its
annotations, too: the pod's UID in it tells an allocation from a copy of another pod's.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.json_object import MAX_REASON, UNREADABLE_JSON

Shares = Mapping[str, int]
"""Card UUID -> units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Where a pod's units are.

    ``containers`` names every container that asks for units, ordinary init containers included.
    ``cards`` is what the pod as a whole holds of each card: ordinary init containers lend their units to
    the containers after them, so this can be less than the sum over ``containers``.
    """

    node: str
    uid: str
    """Of the pod."""
    at: str
    """RFC 3339, UTC."""
    unit: str
    """Size of one unit when it was granted, for example ``1Gi``."""
    containers: dict[str, dict[str, int]]
    resource: ResourceClass = ResourceClass.MEMORY
    """What the units are of. An annotation that does not say it is from a version that knew only memory."""
    cards: dict[str, int] = field(default_factory=dict)
    cpu: str = "0"
    memory: str = "0"
    other_units: dict[str, str] = field(default_factory=dict)
    """Card UUID -> size of one unit of it, where that is not ``unit``: a pod of several classes has its cards
    of each."""

    def unit_of(self, card: str) -> str:
        """Returns the size of one unit of ``card`` (UUID)."""
        return self.other_units.get(card, self.unit)

    def held(self) -> dict[str, int]:
        """Returns the units that the pod holds of each card."""
        return dict(self.cards) if self.cards else sum_shares(self.containers)


class MalformedAllocationError(ValueError):
    """An annotation that no program of ours wrote, or wrote for another pod."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason[:MAX_REASON])


def sum_shares(containers: Mapping[str, Shares]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for shares in containers.values():
        total.update(shares)
    return dict(total)


def encode_allocation(allocation: Allocation) -> str:
    """Returns compact JSON, keys in a fixed order: the admission policies look at how it begins."""
    written = msgspec.to_builtins(allocation)
    if not allocation.other_units:
        del written["other_units"]
    return msgspec.json.encode(written).decode()


_DECODER = msgspec.json.Decoder(Allocation)


def decode_allocation(text: str, *, uid: str) -> Allocation:
    """Returns what ``encode_allocation`` was given for the pod with ``uid``.

    Raises:
        MalformedAllocationError: ``text`` is anything else, an allocation of another pod among it.
    """
    try:
        allocation = _DECODER.decode(text)
    except UNREADABLE_JSON as error:
        raise MalformedAllocationError(f"not an allocation: {error}") from error
    if not text.startswith(_beginning(allocation)):
        raise MalformedAllocationError("not an allocation: it has to begin with node and uid, each once")
    if allocation.uid != uid:
        raise MalformedAllocationError(f"the allocation of another pod, with UID {allocation.uid}")
    every = [*allocation.containers.values(), allocation.cards]
    if any(units < 0 for shares in every for units in shares.values()):
        raise MalformedAllocationError("not an allocation: negative units")
    return allocation


def _beginning(allocation: Allocation) -> str:
    """Of two equal keys an admission policy sees the first, a decoder the last: both have to say the same."""
    node, uid = msgspec.json.encode(allocation.node), msgspec.json.encode(allocation.uid)
    return f'{{"node":{node.decode()},"uid":{uid.decode()},'
