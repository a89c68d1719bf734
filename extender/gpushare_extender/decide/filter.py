"""Which of the nodes that kube-scheduler offers a request fits, and why it does not fit the others. Pure."""

from dataclasses import dataclass, field

from gpushare_extender.ledger.ledger import Ledger, UnfitReason, unfit_reason
from gpushare_extender.ledger.node_ledger import FreeUnits


@dataclass(frozen=True, slots=True)
class FilterResult:
    """Every offered name is in exactly one of the three."""

    passing: list[str]
    failed: dict[str, str] = field(default_factory=dict)
    """Node -> why not; the request would fit if other pods went."""
    unresolvable: dict[str, str] = field(default_factory=dict)
    """Node -> why not; evicting pods would be of no use."""


def filter_nodes(ledger: Ledger, names: list[str], *, uid: str, units: int) -> FilterResult:
    """Returns which of the nodes in ``names`` take a pod that requests ``units`` on one card.

    A pod that already holds units (the scheduler tries again after a bind whose end it did not see) only
    passes where it holds them: it must not get a second share.
    """
    if units <= 0:
        return FilterResult(names)
    if holder := ledger.holder(uid):
        return _only(holder.node, names)
    free = ledger.largest_free
    passing = [name for name in names if free.get(name, 0) >= units]
    if len(passing) == len(names):
        return FilterResult(passing)
    return _with_reasons(ledger, names, passing=passing, units=units)


def _only(node: str, names: list[str]) -> FilterResult:
    message = f"pod already holds GPU memory on node {node}, where it is being bound"
    passing = [name for name in names if name == node]
    return FilterResult(passing, unresolvable={name: message for name in names if name != node})


def _with_reasons(ledger: Ledger, names: list[str], *, passing: list[str], units: int) -> FilterResult:
    """Hundreds of nodes have few different reasons: each is put into words once."""
    result = FilterResult(passing)
    reasons: dict[FreeUnits, UnfitReason] = {}
    fits = set(passing)
    for name in names:
        if name in fits:
            continue
        free = ledger.free_units(name)
        if free and free not in reasons:
            reasons[free] = unfit_reason(units, free)
        reason = reasons[free] if free else ledger.unfit_reason(name, units)
        (result.failed if reason.resolvable else result.unresolvable)[name] = reason.message
    return result
