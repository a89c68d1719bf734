"""The annotation that says which card each container of a pod has.

It is part of the Binding object, so that a pod gets node and card in one step. Whoever copies a pod copies
its annotations, too: the pod's UID in the annotation shows whether it is a copy.
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
    """Where a pod's units are."""

    node: str
    uid: str
    """Of the pod."""
    at: str
    """RFC 3339, UTC."""
    unit: str
    """Size of one unit when it was granted, for example ``1Gi``."""
    containers: dict[str, dict[str, int]]
    """Container that asks for units, ordinary init containers too -> card UUID -> units."""
    resource: ResourceClass = ResourceClass.MEMORY
    """Class of the units. An annotation without it is from a version that had only memory."""
    cards: dict[str, int] = field(default_factory=dict)
    """Card UUID -> units of the whole pod. They may be less than the sum over ``containers``: ordinary init
    containers lend their units to the containers after them."""
    cpu: str = "0"
    memory: str = "0"
    other_units: dict[str, str] = field(default_factory=dict)
    """Card UUID -> size of one unit, of the cards where that is not ``unit``: a pod may have several
    classes."""

    def unit_of(self, card: str) -> str:
        return self.other_units.get(card, self.unit)

    def held(self) -> dict[str, int]:
        """Returns card UUID -> units of the whole pod."""
        return dict(self.cards) if self.cards else sum_shares(self.containers)


class MalformedAllocationError(ValueError):
    """No program of ours wrote this annotation for this pod."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason[:MAX_REASON])


def sum_shares(containers: Mapping[str, Shares]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for shares in containers.values():
        total.update(shares)
    return dict(total)


def encode_allocation(allocation: Allocation) -> str:
    """Returns compact JSON with keys in a fixed order: admission policies look at its beginning."""
    written = msgspec.to_builtins(allocation)
    if not allocation.other_units:
        del written["other_units"]
    return msgspec.json.encode(written).decode()


_DECODER = msgspec.json.Decoder(Allocation)


def decode_allocation(text: str, *, uid: str) -> Allocation:
    """Returns the allocation of the pod with ``uid``.

    Raises:
        MalformedAllocationError: ``text`` is something else, or an allocation of another pod.
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
    """An admission policy sees the first of two equal keys, a decoder the last: the text has to begin so."""
    node, uid = msgspec.json.encode(allocation.node), msgspec.json.encode(allocation.uid)
    return f'{{"node":{node.decode()},"uid":{uid.decode()},'
