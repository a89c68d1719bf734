"""What another scheduler, or the extender that was replaced, annotated: where it wants pods that it bound.

Anybody may have written it. So it helps to choose between cards that have room, and nothing else follows.
"""

from collections import Counter
from collections.abc import Iterable

from gpushare_core.dialects.dialect import Dialect
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.decide.units.layout import Layout


def hinted_cards(pod: Pod, layout: Layout, dialect: Dialect) -> tuple[str, ...]:
    """Returns the UUIDs of the cards that the annotations of ``dialect`` name by their index."""
    return tuple(_hinted(pod, layout, dialect))


def hinted_units(
    pods: Iterable[Pod], assigned: AssignedDevices, layout: Layout, dialect: Dialect
) -> dict[str, int]:
    """Returns card UUID -> units that pods are meant to get there which the kubelet has not admitted yet.

    Those that our extender bound are left out: our own annotation promises them their card.
    """
    units: Counter[str] = Counter()
    for pod in pods:
        if pod.allocation is None and not (assigned.has_units(pod) or assigned.forgotten_of(pod)):
            units.update(_hinted(pod, layout, dialect))
    return dict(units)


def _hinted(pod: Pod, layout: Layout, dialect: Dialect) -> dict[str, int]:
    legacy = pod.legacy(dialect.codec)
    if legacy is None or pod.request is None:
        return {}
    by_index = {placed.card.index: placed.uuid for placed in layout.cards}
    shares = legacy.shares(pod.request.total)
    return {by_index[index]: units for index, units in shares.items() if index in by_index}
