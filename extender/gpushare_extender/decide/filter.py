"""Which of the nodes that kube-scheduler offers a request fits, and why it does not fit the others. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gpushare_core.placement.modes import crowded_container_reason
from gpushare_core.placement.requests import PodRequest
from gpushare_extender.ledger.ledger import Ledger
from gpushare_extender.ledger.node_ledger import NodeRoom
from gpushare_extender.ledger.unfit_reason import Refusal, UnfitReason, unfit_reason


@dataclass(frozen=True, slots=True)
class FilterResult:
    """Every offered name is in exactly one of the three."""

    passing: list[str]
    failed: dict[str, str] = field(default_factory=dict)
    """Node -> why not; the request would fit if other pods went."""
    unresolvable: dict[str, str] = field(default_factory=dict)
    """Node -> why not; evicting pods would be of no use."""
    kinds: set[Refusal] = field(default_factory=set, compare=False)
    """Of these reasons, which they follow from."""


def filter_nodes(ledger: Ledger, names: list[str], *, uid: str, request: PodRequest) -> FilterResult:
    """Returns which of the nodes in ``names`` take a pod with ``request``.

    A pod that already holds units (the scheduler tries again after a bind whose end it did not see) only
    passes where it holds them: it must not get a second share.
    """
    if not request.resources:
        return FilterResult(names)
    if holder := ledger.holder(uid):
        return _only(holder.node, names)
    if reason := crowded_container_reason(request):
        unresolvable = dict.fromkeys(names, reason)
        return FilterResult([], unresolvable=unresolvable, kinds={Refusal.CROWDED_CONTAINER})
    passing = passing_nodes(ledger, names, request)
    if ledger.holds.nodes() and len(passing) < len(names):
        fitting = {*passing, *_past_holds(ledger, names, request, uid=uid)}
        passing = [name for name in names if name in fitting]
    if len(passing) == len(names):
        return FilterResult(passing)
    return _with_reasons(ledger, names, passing=passing, asked=request)


def passing_nodes(ledger: Ledger, names: Iterable[str], request: PodRequest) -> list[str]:
    """Returns those of ``names`` that ``request`` fits, whoever asks.

    The index knows what a node offers of each resource alone.
    """
    passing = list(names)
    for asked in request.resources:
        greatest, amount = ledger.greatest[asked.name], asked.total
        passing = [name for name in passing if greatest.get(name, 0) >= amount]
    return (
        passing if len(request.resources) == 1 else [name for name in passing if ledger.fits(name, request)]
    )


def _past_holds(ledger: Ledger, names: list[str], request: PodRequest, *, uid: str) -> Iterator[str]:
    """Yields the nodes that take the pod because what is held there is held for it, or for a lesser one."""
    for name in ledger.holds.nodes().intersection(names):
        passed = ledger.holds.passed(name, uid=uid, priority=request.priority)
        if ledger.fits(name, request, gone=passed):
            yield name


def _only(node: str, names: list[str]) -> FilterResult:
    message = f"node(s) other than {node}, where the pod already holds its share of cards and is being bound"
    passing = [name for name in names if name == node]
    others = {name: message for name in names if name != node}
    return FilterResult(passing, unresolvable=others, kinds={Refusal.HELD_ELSEWHERE})


def _with_reasons(ledger: Ledger, names: list[str], *, passing: list[str], asked: PodRequest) -> FilterResult:
    """Hundreds of nodes have few different reasons: each is put into words once."""
    result = FilterResult(passing)
    reasons: dict[NodeRoom, UnfitReason] = {}
    fits = set(passing)
    for name in names:
        if name in fits:
            continue
        room = ledger.room(name)
        if room is not None and room not in reasons:
            reasons[room] = unfit_reason(asked, room)
        reason = reasons[room] if room is not None else ledger.unfit_reason(name, asked)
        (result.failed if reason.resolvable else result.unresolvable)[name] = reason.message
        result.kinds.add(reason.kind)
    return result
