"""Which of the nodes that the scheduler offers take a pod, and why the others do not. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpushare_extender.ledger.ledger import Ledger, Refusal, Room, lack
from gpushare_extender.ledger.node import CLOSED


@dataclass(frozen=True, slots=True)
class Sieve:
    """Every offered name is in exactly one of the three; ``unresolvable`` is no use evicting pods from."""

    passing: list[str]
    failed: dict[str, str] = field(default_factory=dict)
    unresolvable: dict[str, str] = field(default_factory=dict)


def filter_nodes(ledger: Ledger, names: list[str], *, uid: str, units: int) -> Sieve:
    """Offer a pod that asks for ``units`` on one card to the nodes in ``names``.

    A pod that already holds units (the scheduler tries again after a bind whose end it did not see) only
    passes where it holds them: it must not get a second share.
    """
    if units <= 0:
        return Sieve(names)
    if held := ledger.holding(uid):
        return _only(names, held.node)
    free = ledger.largest_free
    passing = [name for name in names if free.get(name, CLOSED) >= units]
    if len(passing) == len(names):
        return Sieve(passing)
    return _explained(ledger, names, passing=passing, units=units)


def _only(names: Iterable[str], node: str) -> Sieve:
    sieve = Sieve([])
    reason = f"pod already holds GPU memory on node {node}, where it is being bound"
    for name in names:
        if name == node:
            sieve.passing.append(name)
        else:
            sieve.unresolvable[name] = reason
    return sieve


def _explained(ledger: Ledger, names: list[str], *, passing: list[str], units: int) -> Sieve:
    """Names by the hundred have few different reasons: each is put into words once."""
    sieve = Sieve(passing)
    lacks: dict[Room, Refusal] = {}
    taken = set(passing)
    for name in names:
        if name in taken:
            continue
        room = ledger.room(name)
        if room and room not in lacks:
            lacks[room] = lack(units, room)
        refusal = lacks[room] if room else ledger.refusal(name, units)
        (sieve.failed if refusal.resolvable else sieve.unresolvable)[name] = refusal.reason
    return sieve
