"""The use that the status reports: it is written anew only where figures have moved far.

A write of the status reaches every follower of GPUShareNodes. Figures that move fast are for Prometheus.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpushare_core.api.share_node import NodeStatus
from gpushare_core.placement.quantity import MIB, parse_memory
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.use.container_use import ContainerShare, MeasuredUse, exceeding

CARD_THRESHOLD = 0.05
"""Part of a card's memory by which a figure has to move, unless it falls to zero."""
CONTAINER_THRESHOLD = 0.25
"""Part of what a container asked for: less than the above on large cards. A twentieth of 141 GiB is more than
many a container has; its use would read as 0 for good."""


Memory = Mapping[str, int]
"""Card UUID -> bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedUse:
    """Bytes in use, in whole MiB."""

    cards: Mapping[str, int] = field(default_factory=dict)
    """By UUID."""
    containers: Mapping[ContainerShare, int] = field(default_factory=dict)


NOTHING_USED = ReportedUse()


def recorded_use(status: NodeStatus) -> ReportedUse:
    return ReportedUse(
        cards={card.uuid: _bytes(card.used_memory) for card in status.cards},
        containers={
            ContainerShare(PodName(share.namespace, share.name), share.uid, share.container, card.uuid): used
            for card in status.cards
            for share in card.pods
            if (used := _bytes(share.used_memory))
        },
    )


def _bytes(quantity: str) -> int:
    try:
        return parse_memory(quantity)
    except ValueError:  # a plugin of another version wrote it otherwise
        return 0


def reported_use(recorded: ReportedUse, measured: MeasuredUse, memory: Memory) -> ReportedUse:
    """Returns the use for the status: ``recorded`` by the present one, unless a figure has moved far or an
    excess has changed. The figures of a card that was not ``measured`` stay; with a problem, those of all
    containers do."""
    now = _rounded(recorded, measured)
    known, new = (exceeding(use.containers, measured.requested).keys() for use in (recorded, now))
    # A container that is now and then a little above its request does not count each time.
    excess_changes = new - known or known - new - measured.exceeded_lately
    return now if excess_changes or _has_moved(recorded, now, measured, memory) else recorded


def _rounded(recorded: ReportedUse, measured: MeasuredUse) -> ReportedUse:
    containers = {
        share: used
        for share, used in recorded.containers.items()
        if share.card not in measured.cards or measured.problem
    }
    for share, used in measured.containers.items():
        if share.card in measured.cards:
            containers[share] = used // MIB * MIB
    return ReportedUse(
        cards={**recorded.cards, **{card: used // MIB * MIB for card, used in measured.cards.items()}},
        containers={share: used for share, used in containers.items() if used},
    )


def _has_moved(recorded: ReportedUse, now: ReportedUse, measured: MeasuredUse, memory: Memory) -> bool:
    return any(
        _is_far(recorded.cards.get(card, 0), used, memory.get(card, 0) * CARD_THRESHOLD)
        for card, used in now.cards.items()
    ) or any(
        _container_has_moved(
            recorded.containers.get(share, 0),
            now.containers.get(share, 0),
            min(
                memory.get(share.card, 0) * CARD_THRESHOLD,
                measured.requested.get(share, 0) * CONTAINER_THRESHOLD,
            ),
        )
        for share in recorded.containers.keys() | now.containers.keys()
    )


def _is_far(was: int, used: int, threshold: float) -> bool:
    return was != used and (used == 0 or abs(used - was) >= threshold)


def _container_has_moved(was: int, used: int, threshold: float) -> bool:
    """A container that begins to use a card is news, too: on a card that others use nothing else shows it."""
    return _is_far(was, used, threshold) or was == 0 < used
