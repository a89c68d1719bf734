"""What ``cordon`` and ``uncordon`` report."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec

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
    unread: Sequence[str] = ()
    """Sentences: what could not be read, and what is therefore not known."""

    @property
    def is_confirmed(self) -> bool:
        return all(card.in_force is self.is_cordon for card in self.cards)

    @property
    def names(self) -> Sequence[str]:
        return [f"gpusharenode/{self.node}"]

    @property
    def exit_status(self) -> ExitStatus:
        return ExitStatus.GOOD if self.is_dry_run or self.is_confirmed else ExitStatus.NO
