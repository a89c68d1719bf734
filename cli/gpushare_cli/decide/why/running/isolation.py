"""What holds the containers of a pod to their share of a card, and what becomes of those that have more."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gpushare_cli.decide.inspection.card_reader import memory_bytes, served_class
from gpushare_cli.decide.inspection.isolation import eviction_time
from gpushare_cli.decide.inspection.shared_card import earliest
from gpushare_cli.decide.objects.share_node import ObservedCard, ObservedShare, ObservedShareNode
from gpushare_cli.decide.why.evictions import eviction_sentences
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import seconds_since, seconds_text
from gpushare_cli.wording import memory_text
from gpushare_core.api.conditions import TRUE
from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.names import ISOLATION_IN_FORCE
from gpushare_core.api.timestamps import read_rfc3339
from gpushare_core.placement.requests import ResourceClass

_HOLDS: Mapping[str, str] = {
    MemoryIsolation.HOOK: "the hook refuses what it asks of CUDA beyond {limits}",
    MemoryIsolation.DRIVER: "the driver refuses what it allocates beyond {limits}",
}


class _HeldShare(NamedTuple):
    """What a container has of one card."""

    share: ObservedShare
    card: ObservedCard
    limit: int | None
    """Bytes to which isolation holds it, or would; None for a whole card of which nothing is reserved."""


def isolation_sentences(situation: PodSituation) -> list[str]:
    """Returns nothing where the node's plugin knows nothing of isolation."""
    node = situation.share_nodes.get(situation.node)
    if node is None:
        return []
    return [*_held(situation, node), *eviction_sentences(situation)]


def _held(situation: PodSituation, node: ObservedShareNode) -> Iterator[str]:
    shares = _shares(situation, node)
    is_held = any(held.share.isolation for own in shares.values() for held in own)
    if node.spec.isolation.memory == MemoryIsolation.NONE and not is_held:
        if shares and node.status.isolation == MemoryIsolation.NONE:
            yield f"Nothing: policy {node.spec.policy} asks for no isolation."
    else:
        for name, own in shares.items():
            yield from _container(name, own, node)
    in_force = node.condition(ISOLATION_IN_FORCE)
    if is_held and in_force and in_force.status != TRUE:
        yield f"On {node.name} IsolationInForce is {in_force.status} ({in_force.reason}): {in_force.message}"
    for name, own in shares.items():
        yield from _excess(situation, node, name, own)


def _shares(situation: PodSituation, node: ObservedShareNode) -> Mapping[str, Sequence[_HeldShare]]:
    """Returns what each container of the pod has."""
    uid, found = situation.kube_pod.metadata.uid, dict[str, list[_HeldShare]]()
    for card in node.cards:
        for share in card.pods or ():
            if share.uid == uid:
                held = _HeldShare(share, card, _limit(situation, node, card, share))
                found.setdefault(share.container, []).append(held)
    return found


def _limit(
    situation: PodSituation, node: ObservedShareNode, card: ObservedCard, share: ObservedShare
) -> int | None:
    ledger = situation.ledger.node(node.name)
    if ledger is None or ledger.share_node is None:
        return None
    shown, reserved = ledger.share_node, memory_bytes(node.spec.reserved_memory)
    serving = ledger.lock_of(card.uuid) or next(iter(shown.classes), ResourceClass.MEMORY)
    served = served_class(shown.dialect.name, shown.unit, serving)
    if served.is_whole and not reserved:
        return None
    return served.worth(share.units, max(0, memory_bytes(card.memory) - reserved))


def _container(name: str, own: Sequence[_HeldShare], node: ObservedShareNode) -> Iterator[str]:
    """Yields nothing for one that may have all of its cards."""
    kind, limits = own[0].share.isolation, [held for held in own if held.limit is not None]
    if not limits:
        return
    if not kind:
        asked = f"Policy {node.spec.policy} asks for isolation {node.spec.isolation.memory}"
        yield f"Container {name}: nothing. {asked}: a new pod in its place has it."
        return
    bounds = [f"{memory_text(held.limit or 0)} of card {held.card.index}" for held in limits]
    if kind == MemoryIsolation.DRIVER and len(limits) > 1:
        bounds = [f"{memory_text(min(held.limit or 0 for held in limits))} of each of its cards"]
    holds = _HOLDS.get(kind, "something newer than this client holds it to {limits}")
    yield f"Container {name}: {holds.format(limits=' and '.join(bounds))}."


def _excess(
    situation: PodSituation, node: ObservedShareNode, name: str, own: Sequence[_HeldShare]
) -> Iterator[str]:
    since = earliest(held.share.exceeded_since for held in own)
    seconds = seconds_since(since, situation.now) if since else None
    if seconds is None:
        return
    eviction = read_rfc3339(eviction_time(since, node.spec.isolation))
    after = ""
    if eviction:
        left = int((eviction - situation.now).total_seconds())
        when = f"in {seconds_text(left)}" if left > 0 else "now"
        after = f" Its pod is evicted {when}, by isolation.onExcess of policy {node.spec.policy}."
    yield f"Container {name} has more memory than it asked for, for {seconds_text(seconds)}.{after}"
