"""What a node offers of each resource that it serves."""

from functools import lru_cache
from typing import NamedTuple

from gpushare_core.placement.modes.sharing_mode import Room, SharingMode


class ResourceRoom(NamedTuple):
    """What a node offers of one resource to one request."""

    name: str
    mode: SharingMode
    room: Room


NodeRoom = tuple[ResourceRoom, ...]
"""Of each resource that the node serves. Tuples: a filter hashes them for every node that fails."""


@lru_cache(maxsize=4096)
def shared_room(room: NodeRoom) -> NodeRoom:
    """Returns an equal one, once in memory: thousands of nodes have few different ones."""
    return room


def room_of(name: str, rooms: NodeRoom) -> ResourceRoom | None:
    return next((room for room in rooms if room.name == name), None)
