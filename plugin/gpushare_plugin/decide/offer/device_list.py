"""The list of devices that the kubelet gets: its bytes, and its size before anything is sent.

Source: ``ListAndWatchResponse`` of the device plugin API v1beta1, protobuf wire format. A list that is too
long breaks the registration, because the kubelet's client takes no message above ``MESSAGE_LIMIT``.
"""

import re
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.units import MemoryUnit, NodeUnit, with_memory
from gpushare_plugin.decide.offer.replaced_plugin_units import NO_REPLACED_PLUGIN, DevicesOfReplacedPlugin
from gpushare_plugin.decide.units.layout import Layout, PlacedCard, lay_out
from gpushare_plugin.decide.units.locks import Locks, open_cards
from gpushare_plugin.decide.units.unit_ids import CAPACITY, ID_LENGTH, encode_id
from gpushare_plugin.devices.card import PhysicalCard

MESSAGE_LIMIT = 4 * 2**20
"""Bytes. Source: ``defaultClientMaxReceiveMessageSize`` of grpc-go, which the kubelet does not raise."""

_DEVICES, _ID, _HEALTH, _TOPOLOGY, _NODES = b"\x0a", b"\x0a", b"\x12", b"\x1a", b"\x0a"
_ENTRY_HEAD = 2 + 2 + ID_LENGTH
"""Bytes of one device before its health, at most: tag and length of the device, tag and length of its ID, and
the ID."""

_HEALTHY = _HEALTH + b"\x07Healthy"
_UNHEALTHY = _HEALTH + b"\x09Unhealthy"
_NO_HEALTH = b""
"""The kubelet takes everything but ``Healthy`` for unhealthy; this is the short way to say it."""


_NO_UNITS: frozenset[int] = frozenset()


def device_lists(
    layout: Layout,
    dialect: Dialect,
    locks: Locks,
    devices_of_replaced_plugin: DevicesOfReplacedPlugin = NO_REPLACED_PLUGIN,
    *,
    kept: Container[int] = _NO_UNITS,
) -> dict[str, bytes]:
    """Returns name of an extended resource of ``dialect`` -> the list that the kubelet gets of it.

    A card that serves one class is in no other list: the capacity of the others shrinks by it. ``kept``:
    units of cordoned cards that pods have.
    """
    return {
        dialect.resource_name(resource): encode_devices(
            open_cards(layout.of(resource), locks), devices_of_replaced_plugin, kept=kept
        )
        for resource in layout.classes
    }


def encode_devices(
    layout: Layout,
    devices_of_replaced_plugin: DevicesOfReplacedPlugin = NO_REPLACED_PLUGIN,
    *,
    kept: Container[int] = _NO_UNITS,
    limit: int = MESSAGE_LIMIT,
) -> bytes:
    """Returns the whole message for one class; above ``limit`` bytes without what the kubelet can spare.

    Units of a cordoned card that are not ``kept`` are unhealthy: what is allocatable on the node, less what
    its pods have, is then what other cards have free.
    """
    ids = [text.encode() for text in devices_of_replaced_plugin.ids.get(layout.only.resource, ())]
    foreign = b"".join(_head(len(identifier), _HEALTHY) + identifier + _HEALTHY for identifier in ids)
    nodes = {placed.card.numa_node for placed in layout.cards}
    # There is something to align: more than one NUMA node, all of them known.
    with_topology = len(nodes) > 1 and min(nodes) >= 0
    tails = _tails(layout.cards, unhealthy=_UNHEALTHY, with_topology=with_topology)
    if _size(layout.cards, tails) + len(foreign) > limit:
        tails = _tails(layout.cards, unhealthy=_NO_HEALTH, with_topology=False)
    message = bytearray()  # joined from a list of entries, the largest would take 20 MB for a moment
    for entry in _entries(layout.cards, tails, devices_of_replaced_plugin.withheld, kept):
        message += entry
    if len(message) + len(foreign) <= limit:
        message += foreign
    return bytes(message)


def fits(layout: Layout, *, limit: int = MESSAGE_LIMIT) -> bool:
    """Whether all units have IDs and the list of all of them, healthy, can be sent."""
    tails = [_Tails(_HEALTHY, _HEALTHY)] * len(layout.cards)
    sizes = (_size(layout.of(resource).cards, tails) for resource in layout.classes)
    return layout.end <= CAPACITY and max(sizes) <= limit


def finest_unit(
    cards: Sequence[PhysicalCard], unit: NodeUnit, *, reserved: int, limit: int = MESSAGE_LIMIT
) -> MemoryUnit:
    """Returns the smallest unit of memory, a whole number in its suffix in ``unit``, so that ``cards`` fit.

    Units get coarser until they do: one unit a card always fits.
    """
    suffix = re.sub(r"^\d+", "", unit.parts[0].text)
    coarsest = max(card.memory for card in cards) // MemoryUnit.parse(f"1{suffix}").size + 1
    low, high = 1, coarsest
    while low < high:
        middle = (low + high) // 2
        candidate = MemoryUnit.parse(f"{middle}{suffix}")
        enough = fits(lay_out(cards, with_memory(unit, candidate), reserved=reserved), limit=limit)
        low, high = (low, middle) if enough else (middle + 1, high)
    return MemoryUnit.parse(f"{low}{suffix}")


class _Tails(NamedTuple):
    """What follows the ID in the devices of a card."""

    free: bytes
    kept: bytes
    """Where the unit is kept for its pod although the card is cordoned."""


def _tails(cards: Sequence[PlacedCard], *, unhealthy: bytes, with_topology: bool) -> list[_Tails]:
    found = []
    for placed in cards:
        topology = _topology(placed.card.numa_node) if with_topology else b""
        free = _HEALTHY if placed.card.is_open else unhealthy
        kept = _HEALTHY if placed.card.healthy else unhealthy
        found.append(_Tails(free + topology, kept + topology))
    return found


def _topology(node: int) -> bytes:
    number = b"\x08" + bytes([node]) if node else b""  # proto3 leaves zero out
    inner = _NODES + bytes([len(number)]) + number
    return _TOPOLOGY + bytes([len(inner)]) + inner


def _size(cards: Sequence[PlacedCard], tails: Sequence[_Tails]) -> int:
    return sum(
        placed.units * (_ENTRY_HEAD + max(map(len, tail))) for placed, tail in zip(cards, tails, strict=True)
    )


def _entries(
    cards: Sequence[PlacedCard], tails: Sequence[_Tails], withheld: Container[int], kept: Container[int]
) -> Iterator[bytes]:
    for placed, tail in zip(cards, tails, strict=True):
        offered = (number for number in placed.numbers if number not in withheld)
        heads = [[_head(length, ending) for length in range(ID_LENGTH + 1)] for ending in tail]
        for number in offered:
            unit_id = encode_id(number).encode()
            which = tail.free != tail.kept and number in kept
            yield heads[which][len(unit_id)] + unit_id + tail[which]


def _head(length: int, tail: bytes) -> bytes:
    """Returns what is before an ID of ``length`` bytes. Lengths below 128 take one byte."""
    return _DEVICES + bytes([2 + length + len(tail)]) + _ID + bytes([length])
