"""Which pods that wait as well come first."""

from collections.abc import Iterator

from gpushare_cli.decide.why.finding import Remedy
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.wording import counted, listed
from gpushare_core.scheduling.preemption.bound_pods import OwnedPod

MAX_PODS = 100
"""That are listed for programs."""


def queue_ahead(situation: PodSituation) -> Iterator[Remedy]:
    """kube-scheduler tries pods of a higher priority first, and of the same priority those that were queued
    first."""
    asking = [pod for pod in situation.waiting if _asks_for_same(situation, pod)]
    ahead = sorted((pod for pod in asking if _rank(pod) < _own_rank(situation)), key=_rank)
    if not ahead:
        return
    names = listed([str(pod.reference) for pod in ahead])
    verb = "waits" if len(ahead) == 1 else "wait"
    yield Remedy(
        code="QueueAhead",
        helps=False,
        pods=[str(pod.reference) for pod in ahead[:MAX_PODS]],
        sentence=(
            f"Waiting alone: {counted(len(ahead), 'pod')} that {verb} for cards as well come"
            f"{'s' if len(ahead) == 1 else ''} first ({names}): higher priority, or longer in the queue."
        ),
    )


def _asks_for_same(situation: PodSituation, pod: OwnedPod) -> bool:
    return pod.asks_for_any({asked.name for asked in situation.request.resources})


def _rank(pod: OwnedPod) -> tuple[int, str]:
    return -pod.priority, pod.metadata.creation_timestamp or ""


def _own_rank(situation: PodSituation) -> tuple[int, str]:
    """A manifest comes last of its priority."""
    created = str(situation.pod.get("metadata", {}).get("creationTimestamp") or "")
    return -situation.kube_pod.priority, created if situation.exists else "~"
