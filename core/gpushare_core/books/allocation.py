"""The annotation that says which card each container of a pod has: the books' durable form.

It travels on the Binding object, so node and card become true in one step.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

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
    at: str
    """RFC 3339, UTC."""
    unit: str
    """Size of one unit when it was granted, for example ``1Gi``."""
    containers: dict[str, dict[str, int]]
    cards: dict[str, int] = field(default_factory=dict)
    cpu: str = "0"
    memory: str = "0"

    def held(self) -> dict[str, int]:
        """Returns the units that the pod holds of each card."""
        return dict(self.cards) if self.cards else sum_shares(self.containers)


class MalformedAllocationError(ValueError):
    """An annotation that no program of ours wrote."""


def sum_shares(containers: Mapping[str, Shares]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for shares in containers.values():
        total.update(shares)
    return dict(total)


def encode_allocation(allocation: Allocation) -> str:
    """Returns compact JSON, keys in a fixed order."""
    return msgspec.json.encode(allocation).decode()


_DECODER = msgspec.json.Decoder(Allocation)


def _refuse_repeated_keys(pairs: list[tuple[str, object]]) -> None:
    """An admission policy reads the first of two equal keys, a decoder the last one."""
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key stands there twice")


def decode_allocation(text: str) -> Allocation:
    """Returns what ``encode_allocation`` was given.

    Raises:
        MalformedAllocationError: ``text`` is anything else.
    """
    try:
        allocation = _DECODER.decode(text)
        json.loads(text, object_pairs_hook=_refuse_repeated_keys)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise MalformedAllocationError(f"not an allocation: {error}") from error
    every = [*allocation.containers.values(), allocation.cards]
    if any(units < 0 for shares in every for units in shares.values()):
        raise MalformedAllocationError("not an allocation: negative units")
    return allocation
