"""What allocation annotations give out of each card, as pods come and go."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpushare_core.allocation_annotation import decode_allocation
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.text.json_object import Json


@dataclass(slots=True)
class CardSums:
    """Cards by UUID, all of the same size. ``used``: units of pods that stay all the while."""

    card_units: int
    used: Counter[str] = field(default_factory=Counter)
    over: set[str] = field(default_factory=set)
    """Cards of which more was given out at some moment than they have."""
    _shares: dict[str, Mapping[str, int]] = field(default_factory=dict)

    def see(self, pod: Json) -> None:
        """Counts a pod from now on, if it has an allocation."""
        uid, shares = pod["metadata"]["uid"], shares_of(pod)
        if not shares or uid in self._shares:
            return
        self._shares[uid] = shares
        self.used.update(shares)
        self.over.update(card for card in shares if self.used[card] > self.card_units)

    def forget(self, pod: Json) -> None:
        """Counts a pod no longer: it is gone."""
        self.used.subtract(self._shares.pop(pod["metadata"]["uid"], {}))


def shares_of(pod: Json) -> Mapping[str, int]:
    """Returns card (UUID) -> units by the annotation of ``pod``; nothing without one."""
    metadata = pod["metadata"]
    text = (metadata.get("annotations") or {}).get(GPUSHARE.allocation_annotation)
    return decode_allocation(text, uid=metadata["uid"]).held() if text else {}


def overcommitted(pods: Iterable[Json], card_units: int) -> list[str]:
    """Returns the cards (UUID) of which the annotations of ``pods`` give out more than ``card_units``."""
    sums = CardSums(card_units)
    for pod in pods:
        sums.see(pod)
    return sorted(sums.over)
