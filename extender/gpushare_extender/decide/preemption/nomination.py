"""Whether a pod that fits nowhere can still get the node that kube-scheduler has nominated for it. Pure.

What becomes free there is held for the pod until then.

kube-scheduler counts a nominated pod on its node, for all pods that are no more important. It leaves the pod
there while its preemption ends with an error, or with candidates that no extender takes. Where a node has
enough in sum and on no card, that is so at every attempt, and pods that would fit beside it wait as long.
kube-scheduler takes a nomination back whenever a filter answers with an error.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress

from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.ledger.hold import HOLD_SECONDS
from gpushare_core.scheduling.ledger.ledger import DoesNotFitError, Ledger
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.scheduling.preemption.bound_pods import BoundPod


def is_doubtful(ledger: Ledger, pod: KubePod, request: PodRequest) -> bool:
    """Returns whether ``pod``, which fits nowhere now, may be nominated in vain: it has no units, no card is
    held for it, and its node takes pods."""
    uid, node = pod.metadata.uid, pod.nominated_node
    has_units = ledger.holder(uid) or ledger.holds.get(uid)
    is_open = bool(node) and ledger.room(node) is not None
    return is_open and pod.may_preempt and bool(request.resources) and not has_units


def given_up_reason(
    ledger: Ledger, pod: KubePod, request: PodRequest, *, ending: Collection[BoundPod]
) -> str:
    """Returns for people why the nomination is given up; empty where the pod fits its node once the pods
    ``ending`` there are gone."""
    node = pod.nominated_node
    if fits_once_gone(ledger, pod, request, node=node, ending=ending):
        return ""
    reason = ledger.unfit_reason(node, request).message
    return f"the nomination of node {node} is given up, the pods that end there do not free enough: {reason}"


def fits_once_gone(
    ledger: Ledger, pod: KubePod, request: PodRequest, *, node: str, ending: Iterable[BoundPod] = ()
) -> bool:
    """Returns whether the pod fits ``node`` without any more evictions: once the pods ``ending`` are gone,
    and the kubelet has released the units of those that are gone already."""
    return ledger.fits(node, request, gone=_ignorable(ledger, pod, node) | _going(ledger, node, ending))


def fits_now(ledger: Ledger, pod: KubePod, request: PodRequest, *, node: str) -> bool:
    """Returns whether the pod fits ``node`` without waiting for anybody."""
    return ledger.fits(node, request, gone=_ignorable(ledger, pod, node))


def hold_for(
    ledger: Ledger,
    pod: KubePod,
    request: PodRequest,
    *,
    node: str,
    ending: Collection[BoundPod],
    now: float,
) -> None:
    """Holds for the pod what becomes free on ``node``: as long as the pods ``ending`` may take, and then
    kube-scheduler. Without effect where that is not what the pod needs."""
    grace = max((other.grace for other in ending), default=0)
    with suppress(DoesNotFitError):
        ledger.hold(
            pod.reference,
            node=node,
            request=request,
            priority=pod.priority,
            gone=_going(ledger, node, ending),
            until=now + grace + HOLD_SECONDS,
        )


def _ignorable(ledger: Ledger, pod: KubePod, node: str) -> set[str]:
    return ledger.holds.ignorable_for(node, uid=pod.metadata.uid, priority=pod.priority)


def _going(ledger: Ledger, node: str, ending: Iterable[BoundPod]) -> set[str]:
    return {*ledger.unreleased(node), *(pod.uid for pod in ending)}
