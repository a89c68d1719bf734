"""What our own annotations say that pods have, as far as they are allocations of these very pods."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpushare_core.audit.books import NodeBooks, PodBook
from gpushare_core.books.allocation import Allocation, MalformedAllocationError, decode_allocation
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import readable_unit


@dataclass(frozen=True, slots=True)
class Claim:
    """What one pod has by its annotation."""

    pod: PodBook
    allocation: Allocation

    @property
    def justified(self) -> bool:
        """Whether the pod asks for that much, as far as it is known what it asks for: else somebody else than
        our programs has written it."""
        request = self.pod.request
        return request is None or sum(self.allocation.held().values()) <= request.total

    def class_of(self, card: str) -> ResourceClass:
        unit = readable_unit(self.allocation.unit_of(card))
        return unit.resource if unit else self.allocation.resource


def claims(books: NodeBooks) -> dict[str, Claim]:
    """Returns the claims of the pods that have not ended, by UID; empty where no pods were read."""
    return {
        pod.key.uid: claim for pod in (books.pods or {}).values() for claim in _claims(pod) if not pod.ended
    }


def _claims(pod: PodBook) -> Iterator[Claim]:
    text = pod.annotations.get(Dialect.allocation_annotation)
    if text is None:
        return
    try:
        yield Claim(pod, decode_allocation(text, uid=pod.key.uid))
    except MalformedAllocationError:
        return
