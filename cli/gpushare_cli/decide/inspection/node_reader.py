"""From a GPUShareNode and the ledger's sums to a node that people are shown. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from msgspec import Raw

from gpushare_cli.decide.inspection.card_reader import CardReader, memory_bytes
from gpushare_cli.decide.inspection.cluster_reading import ClusterReading
from gpushare_cli.decide.inspection.isolation import node_isolation, with_driver_limits
from gpushare_cli.decide.inspection.problems import node_problems
from gpushare_cli.decide.inspection.shared_card import SharedCard
from gpushare_cli.decide.inspection.shared_node import UNREADABLE, NodeProblem, NodeResource, SharedNode
from gpushare_cli.decide.ledger import node_ledger
from gpushare_cli.decide.objects.share_node import ObservedShareNode
from gpushare_core.api.conditions import UNKNOWN
from gpushare_core.api.enums import MeasurementScope
from gpushare_core.api.names import MEMORY_EXCEEDED, REGISTERED
from gpushare_core.placement.modes.table import mode_dividing, mode_serving
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.share_node import ShareNode, node_unit, read_share_node
from gpushare_core.text.json_object import UNREADABLE_JSON

_DECODER = msgspec.json.Decoder(ObservedShareNode)


def shared_nodes(reading: ClusterReading) -> list[SharedNode]:
    """Returns every node that shares its cards, in order of name."""
    bound, starting = reading.bound_pods(), reading.starting_pods()
    read = (
        _shared_node(raw, bound, unschedulable=reading.unschedulable_nodes, starting=starting)
        for raw in reading.share_nodes
    )
    found = {node.name: node for node in read if node}
    return [found[name] for name in sorted(found)]


def _shared_node(
    raw: Raw,
    bound: Mapping[str, Collection[PodUpdate]],
    *,
    unschedulable: Collection[str],
    starting: Collection[str],
) -> SharedNode | None:
    """Returns None where not even the name can be read."""
    try:
        share_node = read_share_node(raw)
    except UNREADABLE_JSON:
        return None
    try:
        node = _DECODER.decode(raw)
    except UNREADABLE_JSON as error:
        return _unreadable(share_node, str(error))
    ledger = node_ledger(share_node, bound.get(share_node.name, ()))
    unmeasured, knows_cards, knows_containers = _measurement(node)
    is_unschedulable = node.name in unschedulable
    is_closed = bool(ledger.closed_reason) or is_unschedulable
    reader = CardReader(
        node=node,
        ledger=ledger,
        share_node=share_node,
        is_closed=is_closed,
        starting=starting,
        knows_cards_use=knows_cards,
        knows_containers_use=knows_containers,
        faults={fault.uuid: fault for fault in node.status.faults or () if not fault.cleared},
    )
    cards = with_driver_limits([*reader.cards()])
    unit = node_unit(share_node.unit)
    return SharedNode(
        name=node.name,
        policy=node.spec.policy,
        mode=mode_dividing(unit).name if unit else node.spec.mode,
        dialect=share_node.dialect.name,
        unit=share_node.unit,
        reserved_bytes=memory_bytes(node.spec.reserved_memory),
        strategy=share_node.strategy.value,
        measures=node.spec.measurement.scope,
        unmeasured_reason=unmeasured,
        isolation=node_isolation(node, cards),
        plugin_version=node.status.plugin_version,
        takes_pods=not is_closed,
        closed_reason=ledger.closed_reason or ("kubectl cordon" if is_unschedulable else ""),
        resources=[*_resources(ledger, share_node, cards, is_closed=is_closed)],
        memory_bytes=sum(card.memory_bytes for card in cards),
        held_bytes=sum(card.held_bytes for card in cards),
        free_bytes=sum(card.free_bytes for card in cards),
        used_bytes=_known_sum([card.used_bytes for card in cards]),
        problems=[*node_problems(node, cards, ledger.closed_reason, is_unschedulable=is_unschedulable)],
        cards=cards,
    )


def _measurement(node: ObservedShareNode) -> tuple[str, bool, bool]:
    """Returns why use is not known, all of it or that of containers; whether that of cards is known, and
    whether that of containers is."""
    registered = node.condition(REGISTERED)
    if registered is not None and registered.status == UNKNOWN:
        return f"what it says of use is old: {registered.message or registered.reason}", False, False
    scope = node.spec.measurement.scope
    field = f"spec.plugin.measurement.scope of GPUSharePolicy {node.spec.policy}"
    if scope == MeasurementScope.OFF:
        return f"nothing is measured: {field} is Off. Set it to Cards or Containers.", False, False
    if scope == MeasurementScope.CARDS:
        return f"the use of containers is not measured: {field} is Cards. Set it to Containers.", True, False
    exceeded, is_asked = node.condition(MEMORY_EXCEEDED), scope == MeasurementScope.CONTAINERS
    if not is_asked or exceeded is None:
        return "the plugin has not said what it measures", is_asked, False
    if exceeded.status == UNKNOWN:
        return exceeded.message or exceeded.reason, True, False
    return "", True, True


def _unreadable(share_node: ShareNode, error: str) -> SharedNode:
    problem = NodeProblem(
        reason=UNREADABLE,
        message=f"its GPUShareNode cannot be read: {error}",
        advice="This client may be older than the plugin of the node.",
        command="kubectl gpushare version",
    )
    return SharedNode(
        name=share_node.name, takes_pods=False, closed_reason=share_node.closed_reason, problems=[problem]
    )


def _resources(
    ledger: NodeLedger, share_node: ShareNode, cards: Sequence[SharedCard], *, is_closed: bool
) -> Iterable[NodeResource]:
    """In mode Mixed a card that serves another class counts for nothing."""
    if len(share_node.resources) == 1:
        (name, resource), *_ = share_node.resources.items()
        amounts = [(card.units, card.held_units, card.free_units) for card in cards]
        yield _resource(name, resource, share_node, amounts)
        return
    for name, resource in share_node.resources.items():
        yield _resource(
            name,
            resource,
            share_node,
            [
                (card.units, card.allocated, max(0, card.free) if card.healthy and not is_closed else 0)
                for card in ledger.cards(resource)
                if ledger.lock_of(card.uuid) in (None, resource)
            ],
        )


def _resource(
    name: str, resource: ResourceClass, share_node: ShareNode, amounts: Sequence[tuple[int, int, int]]
) -> NodeResource:
    """``amounts``: units of each card, those that are held, and those that are free."""
    total, held, free = zip(*amounts, strict=True) if amounts else ((), (), ())
    return NodeResource(
        name=name,
        unit=share_node.unit_of(resource),
        total_units=sum(total),
        held_units=sum(held),
        free_units=sum(free),
        largest_free=mode_serving(resource).greatest(free),
    )


def _known_sum(amounts: Sequence[int | None]) -> int | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
