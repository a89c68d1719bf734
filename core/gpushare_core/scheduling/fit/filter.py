"""Which of the nodes that kube-scheduler offers a request fits, and why it does not fit the others. Pure."""

import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from gpushare_core.dialects.annotation_room import lack_of_room, worst_size
from gpushare_core.placement.modes.table import crowded_container_reason, too_many_units_reason
from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.fit.candidates import Alike, Offer, alike, offer
from gpushare_core.scheduling.ledger.fit_index import Answer, Fit
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.unfit_reason import OF_THE_POD, Refusal, UnfitReason, messages

_LAST = (sys.maxsize,)
"""A ranking key after all others."""


@dataclass(frozen=True, slots=True)
class FilterResult:
    """Every offered name is in exactly one of the first four.

    The response does not name the nodes that are left out. For a name in no list it takes evicting pods to
    be of no use (``NewDefaultNodeToStatus`` of 1.36; 1.30 looks for victims there, and finds that none is
    needed). That is right, and thousands of names would cost more than the rest of the response.
    """

    passing: list[str]
    failed: dict[str, str] = field(default_factory=dict)
    """Node -> why not; the request would fit if other pods went."""
    unresolvable: dict[str, str] = field(default_factory=dict)
    """Node -> why not; evicting pods would be of no use."""
    left_out: list[str] = field(default_factory=list)
    """Nodes that the request fits, and that are not offered because others are better."""
    kinds: set[Refusal] = field(default_factory=set, compare=False)
    """The kinds of the reasons in ``failed`` and ``unresolvable``."""

    @property
    def is_for_good(self) -> bool:
        """Whether the pod itself is the reason: no node takes it, and more room does not help."""
        return not self.kinds.isdisjoint(OF_THE_POD)


@dataclass(frozen=True, slots=True)
class Narrowing:
    """Only the best of the nodes that fit are to pass, as many as their policies say."""

    nominated_node: str = ""
    """Where kube-scheduler has evicted others for the pod: this node passes in any case. Empty where none."""


def filter_nodes(
    ledger: Ledger,
    names: list[str],
    *,
    uid: str,
    request: PodRequest,
    annotations_size: int = 0,
    narrowing: Narrowing | None = None,
) -> FilterResult:
    """Returns which of the nodes in ``names`` take a pod with ``request``; with ``narrowing`` the best ones.

    ``annotations_size``: bytes of the pod's own annotations. Ours have to fit beside them.

    A pod that already holds units (kube-scheduler tries again after a bind whose end it did not see) passes
    only where it holds them: it must not get a second share.
    """
    if not request.resources:
        return FilterResult(names)
    if holder := ledger.holder(uid):
        return _only(holder.node, names)
    if reason := crowded_container_reason(request):
        return _refused(names, reason, Refusal.CROWDED_CONTAINER)
    if reason := too_many_units_reason(request):
        return _refused(names, reason, Refusal.TOO_MANY_UNITS)
    if reason := lack_of_room(annotations_size, worst_size(request)):
        return _refused(names, reason, Refusal.ANNOTATIONS_FULL)
    answers = ledger.answers(names, request)
    if not ledger.holds.nodes().isdisjoint(names):
        answers = _ignoring_holds(ledger, names, answers, uid=uid, request=request)
    nodes = alike(names, answers)
    made = _offer(ledger, nodes, uid=uid, narrowing=narrowing) if narrowing else Offer()
    return _result(names, nodes, made, request)


def passing_nodes(ledger: Ledger, names: Iterable[str], request: PodRequest) -> list[str]:
    """Returns those of ``names`` that ``request`` fits, whoever asks. The ledger knows what a node offers of
    each resource alone, and the most that any node does."""
    if any(ledger.most(asked.name) < asked.total for asked in request.resources):
        return []
    passing = list(names)
    for asked in request.resources:
        greatest, amount = ledger.greatest[asked.name], asked.total
        passing = [name for name in passing if greatest.get(name, 0) >= amount]
    if len(request.resources) == 1:
        return passing
    answers = ledger.answers(passing, request)
    return [name for name, answer in zip(passing, answers, strict=True) if isinstance(answer, Fit)]


def fitting_nodes(ledger: Ledger, *, uid: str, request: PodRequest) -> set[str]:
    """Returns the nodes that take the pod with ``request``, also where units are held for this pod or for a
    less important one."""
    fitting = passing_nodes(ledger, ledger.greatest[request.resources[0].name], request)
    held = ledger.holds.nodes()
    answers = _ignoring_holds(ledger, [*held], ledger.answers(held, request), uid=uid, request=request)
    return {*fitting, *(name for name, answer in zip(held, answers, strict=True) if isinstance(answer, Fit))}


def _ignoring_holds(
    ledger: Ledger, names: Sequence[str], answers: Sequence[Answer], *, uid: str, request: PodRequest
) -> list[Answer]:
    """Returns ``answers``; a node fits also where it does so without holds for this pod or less important
    ones."""
    held = ledger.holds.nodes()
    return [
        _ignoring_holds_on(ledger, name, answer, uid=uid, request=request) if name in held else answer
        for name, answer in zip(names, answers, strict=True)
    ]


def _ignoring_holds_on(ledger: Ledger, node: str, answer: Answer, *, uid: str, request: PodRequest) -> Answer:
    ignorable = ledger.holds.ignorable_for(node, uid=uid, priority=request.priority)
    share_node = ledger.share_node(node)
    if isinstance(answer, Fit) or share_node is None or not ledger.fits(node, request, gone=ignorable):
        return answer
    return Fit(share_node.strategy, share_node.candidates, _LAST)


def _refused(names: Iterable[str], reason: str, kind: Refusal) -> FilterResult:
    return FilterResult([], unresolvable=dict.fromkeys(names, reason), kinds={kind})


def _only(node: str, names: list[str]) -> FilterResult:
    message = f"node(s) other than {node}, where the pod already holds its share of cards and is being bound"
    passing = [name for name in names if name == node]
    others = {name: message for name in names if name != node}
    return FilterResult(passing, unresolvable=others, kinds={Refusal.HELD_ELSEWHERE})


def _offer(ledger: Ledger, nodes: Alike, *, uid: str, narrowing: Narrowing) -> Offer:
    """A node on which units are held for the pod is always offered."""
    hold = ledger.holds.get(uid)
    always = {narrowing.nominated_node, hold.node if hold else ""}
    return offer(nodes, uid=uid, always=always - {""})


def _result(names: list[str], nodes: Alike, made: Offer, request: PodRequest) -> FilterResult:
    """Where nothing is left out, those that pass stay in the order of ``names``."""
    reasons = [node for node in nodes if isinstance(node, UnfitReason)]
    if not reasons and not made.left_out:
        return FilterResult(names)
    result = FilterResult(
        made.offered
        if made.left_out
        else _without(names, {name for reason in reasons for name in nodes[reason]}),
        left_out=made.left_out,
        kinds={reason.kind for reason in reasons},
    )
    by_container = {resource.name: resource.by_container for resource in request.resources}
    for reason, message in messages(reasons).items():
        refused = result.failed if reason.resolvable else result.unresolvable
        refused.update(dict.fromkeys(nodes[reason], message + by_container.get(reason.resource, "")))
    return result


def _without(names: Iterable[str], others: Collection[str]) -> list[str]:
    return [name for name in names if name not in others]
