"""Whether a pod that fits nowhere can still get the node that kube-scheduler has nominated for it. Pure.

kube-scheduler counts a nominated pod on its node for all that are no more important, and leaves it there as
long as its preemption ends with an error, or with candidates that no extender takes: where the sum of a node
would do and no card does, that is at every attempt. Pods that would fit beside it wait as long as it does.
It takes a nomination back whenever a filter answers with an error.
"""

from collections.abc import Collection

from gpushare_core.placement.requests import PodRequest
from gpushare_extender.decide.pod import Pod
from gpushare_extender.ledger.ledger import Ledger


def is_doubtful(ledger: Ledger, pod: Pod, request: PodRequest) -> bool:
    """Returns whether ``pod``, which fits nowhere now, may have been nominated in vain: it has no units, no
    card is held for it, and its node takes pods."""
    uid, node = pod.metadata.uid, pod.nominated_node
    has_units = ledger.holder(uid) or ledger.holds.of(uid)
    is_open = bool(node) and ledger.room(node) is not None
    return is_open and pod.may_preempt and bool(request.resources) and not has_units


def given_up_reason(ledger: Ledger, pod: Pod, request: PodRequest, *, ending: Collection[str]) -> str:
    """Returns for people why the nomination is given up; empty where the pod fits its node once the pods
    ``ending`` there (UIDs) are gone."""
    node = pod.nominated_node
    passed = ledger.holds.passed(node, uid=pod.metadata.uid, priority=pod.priority)
    if ledger.fits(node, request, gone={*ending, *ledger.departing(node), *passed}):
        return ""
    reason = ledger.unfit_reason(node, request).message
    return f"the nomination of node {node} is given up, nothing that ends there makes enough room: {reason}"
