"""What holds the containers of a pod to their share of a card, and what becomes of those that have more."""

from collections.abc import Iterator, Mapping, Sequence

from gpushare_cli.decide.inspection.card_reader import CardReader
from gpushare_cli.decide.inspection.isolation import with_driver_limits
from gpushare_cli.decide.inspection.shared_card import ContainerHolding, earliest
from gpushare_cli.decide.objects.share_node import ObservedShareNode
from gpushare_cli.decide.why.evictions import eviction_sentences
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.words import seconds_since, seconds_text
from gpushare_cli.wording import memory_text
from gpushare_core.api.conditions import TRUE
from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.names import ISOLATION_IN_FORCE
from gpushare_core.api.timestamps import read_rfc3339

_HOLDS: Mapping[str, str] = {
    MemoryIsolation.HOOK: "the hook refuses what it asks of CUDA beyond {limits}",
    MemoryIsolation.DRIVER: "the driver refuses what it allocates beyond {limits}",
}

Holdings = Sequence[tuple[int, ContainerHolding]]
"""What one container has: the index of each of its cards, and its part of it."""


def isolation_sentences(situation: PodSituation) -> list[str]:
    """Returns nothing where the node's plugin knows nothing of isolation."""
    node = situation.share_nodes.get(situation.node)
    if node is None:
        return []
    containers = _containers(situation, node)
    return [
        *_held(containers, node, f"pod {situation.namespace}/{situation.name} "),
        *(sentence for name, own in containers.items() for sentence in _excess(situation, node, name, own)),
        *eviction_sentences(situation),
    ]


def _containers(situation: PodSituation, node: ObservedShareNode) -> Mapping[str, Holdings]:
    """Returns what the containers of the pod have, by name."""
    ledger, uid = situation.ledger.node(node.name), situation.kube_pod.metadata.uid
    if ledger is None or ledger.share_node is None:
        return {}
    reader = CardReader(
        node=node,
        ledger=ledger,
        share_node=ledger.share_node,
        knows_cards_use=True,
        knows_containers_use=True,
    )
    found: dict[str, list[tuple[int, ContainerHolding]]] = {}
    for card in with_driver_limits([*reader.cards()]):
        for holder in card.holders:
            for container in holder.containers if holder.uid == uid else ():
                found.setdefault(container.container, []).append((card.index, container))
    return found


def _held(containers: Mapping[str, Holdings], node: ObservedShareNode, own_name: str) -> Iterator[str]:
    is_held = any(share.isolation for own in containers.values() for _, share in own)
    policy, asked, given = node.spec.policy, node.spec.isolation.memory, node.status.isolation
    hope = ": a new pod has it" if given == asked else ""
    if containers and not is_held and given == asked == MemoryIsolation.NONE:
        yield f"Nothing: policy {policy} asks for no isolation."
    for name, own in containers.items():
        if any(share.lacks_isolation for _, share in own):
            yield f"Container {name}: nothing. Policy {policy} asks for isolation {asked}{hope}."
        elif limits := [(index, share) for index, share in own if share.limit_bytes is not None]:
            yield f"Container {name}: {_limits(limits)}."
    in_force = node.condition(ISOLATION_IN_FORCE)
    if is_held and in_force and (in_force.status != TRUE or own_name in in_force.message):
        yield f"On {node.name} IsolationInForce is {in_force.status} ({in_force.reason}): {in_force.message}"


def _limits(limits: Holdings) -> str:
    kind = limits[0][1].isolation
    bounds = [f"{memory_text(share.limit_bytes or 0)} of card {index}" for index, share in limits]
    holds = _HOLDS.get(kind, f"isolation {kind} holds it to {{limits}}")
    return holds.format(limits=" and ".join(bounds))


def _excess(situation: PodSituation, node: ObservedShareNode, name: str, own: Holdings) -> Iterator[str]:
    seconds = seconds_since(earliest(share.exceeded_since for _, share in own), situation.now)
    if seconds is None:
        return
    eviction, after = read_rfc3339(earliest(share.evicted_from for _, share in own)), ""
    if eviction:
        left = int((eviction - situation.now).total_seconds())
        when = f"in {seconds_text(left)}" if left > 0 else "now"
        after = f" Its pod is evicted {when}, by isolation.onExcess of policy {node.spec.policy}."
    yield f"Container {name} has used more memory than it asked for, for {seconds_text(seconds)}.{after}"
