"""Which figures of use stand in the status: it is written only where they have moved far.

What moves fast is for Prometheus. A write of the status reaches every follower of GPUShareNodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpushare_core.api.share_node import NodeStatus
from gpushare_core.placement.quantity import MIB, parse_memory
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.use.container_use import ContainerShare, MeasuredUse, exceeding

THRESHOLD = 0.05
"""Of a card's memory: as far a figure has to move, or to zero, or past what a container asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedUse:
    """Bytes in use, in whole MiB: what is less is nobody's concern in a status."""

    cards: Mapping[str, int] = field(default_factory=dict)
    """By UUID."""
    containers: Mapping[ContainerShare, int] = field(default_factory=dict)


NOTHING_USED = ReportedUse()


def recorded_use(status: NodeStatus) -> ReportedUse:
    """Returns what ``status`` says."""
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
    except ValueError:  # of a plugin that writes otherwise
        return 0


def reported_use(recorded: ReportedUse, measured: MeasuredUse, memory: Mapping[str, int]) -> ReportedUse:
    """Returns what the status is to say: what it says, unless something has moved far; then all of it.

    Args:
        recorded: what the status says.
        measured: what is measured now; a card that it does not know keeps its figures, with a problem all
            containers do.
        memory: card UUID -> bytes.
    """
    now = _rounded(recorded, measured)
    moved = _has_moved(recorded, now, memory) or _excess_changes(recorded, now, measured)
    return now if moved else recorded


def _excess_changes(before: ReportedUse, now: ReportedUse, measured: MeasuredUse) -> bool:
    """Who is now and then a little above what he asked for is not told of each time."""
    known, new = (exceeding(use.containers, measured.requested).keys() for use in (before, now))
    return bool(new - known or known - new - measured.exceeded_lately)


def _rounded(recorded: ReportedUse, measured: MeasuredUse) -> ReportedUse:
    kept = {
        key: used
        for key, used in recorded.containers.items()
        if key.card not in measured.cards or measured.problem
    }
    told = {key: used // MIB * MIB for key, used in measured.containers.items() if key.card in measured.cards}
    return ReportedUse(
        cards={**recorded.cards, **{card: used // MIB * MIB for card, used in measured.cards.items()}},
        containers={key: used for key, used in {**kept, **told}.items() if used},
    )


def _has_moved(before: ReportedUse, now: ReportedUse, memory: Mapping[str, int]) -> bool:
    cards = ((card, before.cards.get(card, 0), used) for card, used in now.cards.items())
    containers = (
        (key.card, before.containers.get(key, 0), now.containers.get(key, 0))
        for key in before.containers.keys() | now.containers.keys()
    )
    return any(
        _is_far(was, used, memory.get(card, 0)) for each in (cards, containers) for card, was, used in each
    )


def _is_far(before: int, now: int, memory: int) -> bool:
    return before != now and (now == 0 or abs(now - before) >= memory * THRESHOLD)
