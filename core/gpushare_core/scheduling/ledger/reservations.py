"""Units that are kept for pods whose binds no watch has shown yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from gpushare_core.placement.card_choice import ChoiceReason
from gpushare_core.scheduling.ledger.node_ledger import CardChoice
from gpushare_core.scheduling.objects.holder import Holder


class BindState(Enum):
    """What is known of the bind that a reservation was made for."""

    UNDER_WAY = auto()
    CONFIRMED = auto()
    ABANDONED = auto()
    """It ended, and nobody knows whether its Binding takes effect."""


@dataclass(frozen=True, slots=True, eq=False)
class Reservation:
    """Units kept for a pod that no watch has shown as bound yet. Every change makes another one."""

    holder: Holder
    state: BindState
    since: float = 0.0
    """When it was confirmed or abandoned."""
    choices: Sequence[CardChoice] = ()

    @property
    def reasons(self) -> Mapping[str, ChoiceReason]:
        """Card UUID -> why the pod got this card."""
        return {card: choice.reason for choice in self.choices for card in choice.units}


class BindReservations(dict[str, Reservation]):
    """By pod UID. Without a pod whose allocation a watch has shown."""

    def put(self, holder: Holder, choices: Sequence[CardChoice]) -> None:
        """A bind is under way for what ``holder`` has."""
        self[holder.uid] = Reservation(holder, BindState.UNDER_WAY, choices=choices)

    def confirm(self, uid: str, *, now: float) -> None:
        """The pod is bound. Without effect on a pod that has none: a watch has shown its allocation since."""
        if reservation := self.get(uid):
            self[uid] = replace(reservation, state=BindState.CONFIRMED, since=now)

    def abandon(self, uid: str, *, now: float) -> None:
        """The bind has ended, nobody knows how. Without effect on a pod that has none, or whose bind was
        confirmed."""
        reservation = self.get(uid)
        if reservation and reservation.state is not BindState.CONFIRMED:
            self[uid] = replace(reservation, state=BindState.ABANDONED, since=now)

    def is_unconfirmed(self, uid: str) -> bool:
        """Returns whether the pod has a reservation, and nobody knows yet whether the pod is bound."""
        reservation = self.get(uid)
        return reservation is not None and reservation.state is not BindState.CONFIRMED

    def in_state(self, state: BindState) -> list[Reservation]:
        return [reservation for reservation in self.values() if reservation.state is state]
