"""A card of a GPUShareNode's status, as the auditor compares it, of whatever model it was read into."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gpushare_core.audit.records import ContainerKey, PodKey, StatusCard, StatusHolder
from gpushare_core.placement.modes.table import class_of_lock
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.placement.requests import ResourceClass

HEALTHY = "Healthy"


class HolderFields(Protocol):
    """What the API calls them: ``cards[].pods[]``."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def container(self) -> str: ...
    @property
    def units(self) -> int: ...
    @property
    def orphaned(self) -> bool: ...


class CardFields(Protocol):
    """What the API calls them: ``cards[]``."""

    @property
    def uuid(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def memory(self) -> str: ...
    @property
    def units(self) -> int: ...
    @property
    def allocated_units(self) -> int: ...
    @property
    def first_unit(self) -> int | None: ...
    @property
    def health(self) -> str: ...
    @property
    def cordoned(self) -> bool: ...
    @property
    def lock(self) -> str: ...
    @property
    def offers(self) -> Mapping[str, int] | None: ...
    @property
    def pods(self) -> Sequence[HolderFields] | None: ...


def status_card(card: CardFields) -> StatusCard:
    """Raises ``ValueError`` for amounts and classes that nobody knows."""
    return StatusCard(
        uuid=card.uuid,
        index=card.index,
        memory=parse_memory(card.memory),
        units=card.units,
        allocated=card.allocated_units,
        first_unit=card.first_unit,
        lock=class_of_lock(card.lock),
        offers={ResourceClass(name): units for name, units in (card.offers or {}).items()},
        healthy=card.health == HEALTHY,
        cordoned=card.cordoned,
        holders=tuple(map(_holder, card.pods or ())),
    )


def _holder(holder: HolderFields) -> StatusHolder:
    pod = PodKey(holder.namespace, holder.name, holder.uid)
    return StatusHolder(key=ContainerKey(pod, holder.container), units=holder.units, orphaned=holder.orphaned)
