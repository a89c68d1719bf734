"""What is annotated to pods that are bound to this node and that the kubelet has not admitted yet.

Hints are what another scheduler, or the extender that was replaced, annotated. Anybody may have written them:
they help to choose between cards that have room, and nothing else follows.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from gpushare_core.allocation_annotation import Allocation
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.held.allocations import annotated_classes, lost_containers
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.decide.units.layout import Layout


def units_bound_not_admitted(pods: Iterable[Pod], assigned: AssignedDevices) -> dict[str, int]:
    """Returns card UUID -> units that are annotated to such pods."""
    units: Counter[str] = Counter()
    for allocation in _bound_not_admitted(pods, assigned):
        units.update(allocation.held())
    return dict(units)


def classes_bound_not_admitted(pods: Iterable[Pod], assigned: AssignedDevices) -> dict[str, ResourceClass]:
    """Returns card UUID -> class of what is annotated there to such pods."""
    classes = map(annotated_classes, _bound_not_admitted(pods, assigned))
    return {card: resource for cards in classes for card, resource in cards.items()}


def _bound_not_admitted(pods: Iterable[Pod], assigned: AssignedDevices) -> Iterator[Allocation]:
    for pod in pods:
        unseen = not assigned.has_units(pod) and not lost_containers(pod, assigned)
        if unseen and (allocation := pod.allocation):
            yield allocation


def hinted_cards(pod: Pod, layout: Layout, dialect: Dialect) -> tuple[str, ...]:
    """Returns the UUIDs of the cards that the annotations of ``dialect`` name by their index."""
    return tuple(_hinted(pod, layout, dialect))


def hinted_units(
    pods: Iterable[Pod], assigned: AssignedDevices, layout: Layout, dialect: Dialect
) -> dict[str, int]:
    """Returns card UUID -> units that are hinted for such pods, except those that our extender bound: our own
    annotation says their card."""
    units: Counter[str] = Counter()
    for pod in pods:
        if pod.allocation is None and not (assigned.has_units(pod) or assigned.lost_of(pod)):
            units.update(_hinted(pod, layout, dialect))
    return dict(units)


def _hinted(pod: Pod, layout: Layout, dialect: Dialect) -> dict[str, int]:
    legacy = pod.legacy(dialect.codec)
    if legacy is None or pod.request is None:
        return {}
    by_index = {placed.card.index: placed.uuid for placed in layout.cards}
    shares = legacy.shares(pod.request.total)
    return {by_index[index]: units for index, units in shares.items() if index in by_index}
