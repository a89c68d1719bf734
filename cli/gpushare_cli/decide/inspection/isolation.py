"""What keeps containers to the memory of their units, as their GPUShareNode says. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from msgspec.structs import replace

from gpushare_cli.decide.inspection.shared_card import CardHolder, ContainerHolding, SharedCard
from gpushare_cli.decide.inspection.shared_node import ShownIsolation
from gpushare_cli.decide.objects.share_node import IsolationText, ObservedShareNode
from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.names import ISOLATION_IN_FORCE
from gpushare_core.api.timestamps import read_rfc3339, rfc3339


def node_isolation(node: ObservedShareNode, cards: Sequence[SharedCard]) -> ShownIsolation | None:
    asked = node.spec.isolation
    is_held = any(container.isolation for _, container in _containers(cards))
    if asked.memory == MemoryIsolation.NONE and not asked.evicts and not is_held:
        return None
    in_force = node.condition(ISOLATION_IN_FORCE)
    return ShownIsolation(
        asked=asked.memory,
        given=node.status.isolation,
        in_force=in_force.status if in_force else "",
        on_excess=asked.on_excess,
        grace_seconds=asked.grace_seconds if asked.evicts else 0,
    )


def eviction_time(exceeded_since: str, asked: IsolationText) -> str:
    """Returns when the operator evicts a pod of which a container has more since then; empty: never."""
    since = read_rfc3339(exceeded_since) if exceeded_since and asked.evicts else None
    return rfc3339(since + timedelta(seconds=asked.grace_seconds)) if since else ""


def with_driver_limits(cards: Sequence[SharedCard]) -> Sequence[SharedCard]:
    """The driver has one limit for all cards of a container: the smallest of its shares."""
    smallest: dict[tuple[str, str], int] = {}
    for holder, container in _containers(cards):
        if container.isolation == MemoryIsolation.DRIVER and container.limit_bytes is not None:
            key = (holder.uid, container.container)
            smallest[key] = min(smallest.get(key, container.limit_bytes), container.limit_bytes)
    if not smallest:
        return cards
    return [replace(card, holders=[_limited(holder, smallest) for holder in card.holders]) for card in cards]


def _limited(holder: CardHolder, limits: Mapping[tuple[str, str], int]) -> CardHolder:
    containers = [
        replace(own, limit_bytes=limits.get((holder.uid, own.container), own.limit_bytes))
        for own in holder.containers
    ]
    return replace(holder, containers=containers)


def _containers(cards: Iterable[SharedCard]) -> Iterable[tuple[CardHolder, ContainerHolding]]:
    for card in cards:
        for holder in card.holders:
            for container in holder.containers:
                yield holder, container
