"""What ``cordon`` and ``uncordon`` report."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

import msgspec

from gpushare_cli.decide.drain.cordon import cordon_reasons, is_asked_for
from gpushare_cli.decide.objects.share_node import ObservedCard, ObservedShareNode
from gpushare_cli.report import CommandReport, ExitStatus


class CardTenant(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that has units of a card."""

    namespace: str
    name: str
    uid: str
    units: int
    orphaned: bool = False
    """The API server does not have it, and the kubelet still keeps its units."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Kubelets tell no UID of some pods that nobody knows any more."""
        return self.namespace, self.name, self.uid


class CardCordon(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One card, as it is after the command."""

    index: int
    uuid: str
    model: str
    units: int
    allocated_units: int
    cordoned: bool
    """Whether people asked for that, by the annotation."""
    in_force: bool
    """Whether the plugin has taken it over."""
    reason: str
    health: str
    health_reason: str
    pods: Sequence[CardTenant]

    @property
    def is_sick(self) -> bool:
        return self.health not in ("", "Healthy")


class CordonReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "CardCordons"
    node: str
    is_cordon: bool
    """False: uncordoned."""
    is_dry_run: bool
    is_changed: bool
    """Whether the annotation was, or would be, another one."""
    cards: Sequence[CardCordon]
    seconds: float = 0.0
    """How long the plugin took, or was waited for."""

    @property
    def is_confirmed(self) -> bool:
        return all(card.in_force is self.is_cordon for card in self.cards)

    @property
    def names(self) -> Sequence[str]:
        return [f"gpusharenode/{self.node}"]

    @property
    def exit_status(self) -> ExitStatus:
        return ExitStatus.GOOD if self.is_dry_run or self.is_confirmed else ExitStatus.NO


def tenants_of(cards: Iterable[ObservedCard]) -> list[CardTenant]:
    """Returns each pod once, by name, with its units of all the cards."""
    units: Counter[tuple[str, str, str, bool]] = Counter()
    for share in (share for card in cards for share in card.pods or ()):
        units[share.namespace, share.name, share.uid, share.orphaned] += share.units
    return [
        CardTenant(namespace=namespace, name=name, uid=uid, units=held, orphaned=orphaned)
        for (namespace, name, uid, orphaned), held in sorted(units.items())
    ]


def card_cordons(
    share_node: ObservedShareNode, cards: Sequence[ObservedCard], annotations: Mapping[str, str]
) -> list[CardCordon]:
    """``annotations``: those that are asked for, which the object may not have yet."""
    reasons = cordon_reasons(annotations)
    present = {card.uuid: card for card in share_node.cards}
    return [
        CardCordon(
            index=card.index,
            uuid=card.uuid,
            model=card.model,
            units=card.units,
            allocated_units=card.allocated_units,
            cordoned=is_asked_for(card, annotations),
            in_force=card.cordoned,
            reason=reasons.get(card.uuid, ""),
            health=card.health,
            health_reason=card.health_reason,
            pods=tenants_of([card]),
        )
        for card in (present.get(card.uuid, card) for card in cards)
    ]
