"""What is in use of one card."""

from functools import lru_cache
from typing import NamedTuple

from gpushare_core.placement.requests import ResourceClass


class CardUse(NamedTuple):
    """What is in use of one card."""

    lock: ResourceClass | None
    """The class that it serves alone; None where it is used as two by mistake: then it serves nobody else."""
    units: int
    """Booked, or given out by the kubelet, whichever is more for each pod."""


@lru_cache(maxsize=4096)
def card_use(lock: ResourceClass | None, units: int) -> CardUse:
    """Cards of a whole cluster have few different ones, and share them."""
    return CardUse(lock, units)
