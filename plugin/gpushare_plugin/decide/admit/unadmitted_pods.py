"""What is annotated to pods which the kubelet has not admitted yet."""

from collections import Counter
from collections.abc import Iterable, Iterator

from gpushare_core.allocation_annotation import Allocation
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.held.allocations import annotated_classes, forgotten_containers
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import Pod


def promised_units(pods: Iterable[Pod], assigned: AssignedDevices) -> dict[str, int]:
    """Returns card UUID -> units that are annotated to pods which the kubelet has not admitted yet."""
    promised: Counter[str] = Counter()
    for allocation in _promises(pods, assigned):
        promised.update(allocation.held())
    return dict(promised)


def promised_classes(pods: Iterable[Pod], assigned: AssignedDevices) -> dict[str, ResourceClass]:
    """Returns card UUID -> what is annotated of it to pods which the kubelet has not admitted yet."""
    promises = _promises(pods, assigned)
    return {card: each for promise in promises for card, each in annotated_classes(promise).items()}


def _promises(pods: Iterable[Pod], assigned: AssignedDevices) -> Iterator[Allocation]:
    for pod in pods:
        unseen = not assigned.has_units(pod) and not forgotten_containers(pod, assigned)
        if unseen and (allocation := pod.allocation):
            yield allocation
