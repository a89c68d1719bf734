"""The metrics of policies: what their status says, as numbers."""

from collections.abc import Iterable, Iterator

from gpushare_core.process.metrics import Gauge, Sample
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.status.totals import byte_count

NODES = Gauge("gpushare_policy_nodes", "Nodes that the policy shares.", ("policy", "state"))
CARDS = Gauge("gpushare_policy_cards", "Cards that the policy shares.", ("policy", "health"))
UNITS = Gauge("gpushare_policy_units", "Units that the policy shares, of all resources.", ("policy", "state"))
MEMORY = Gauge("gpushare_policy_memory_bytes", "Memory that the policy shares.", ("policy",))
ALLOCATED_MEMORY = Gauge("gpushare_policy_memory_allocated_bytes", "Memory that pods hold.", ("policy",))
USED_MEMORY = Gauge("gpushare_policy_memory_used_bytes", "Memory that is in use.", ("policy",))
CONDITION = Gauge(
    "gpushare_policy_condition", "Conditions of the policy: 1 True, 0 False.", ("policy", "type")
)
BACKEND = Gauge(
    "gpushare_policy_backend",
    "Always 1; the labels say what places the policy's pods.",
    ("policy", "backend", "engine"),
)
"""Without an engine where none of ours places pods."""

POLICY_GAUGES = (BACKEND, NODES, CARDS, UNITS, MEMORY, ALLOCATED_MEMORY, USED_MEMORY, CONDITION)


def policy_figures(policies: Iterable[PolicyObject]) -> Iterator[Sample]:
    """Yields as many samples for a policy of one node as for one of thousands."""
    for policy in policies:
        name, status = policy.name, policy.status
        yield NODES.at(status.nodes.ready, name, "ready")
        yield NODES.at(max(0, status.nodes.enabled - status.nodes.ready), name, "not_ready")
        yield CARDS.at(status.cards.healthy, name, "Healthy")
        yield CARDS.at(max(0, status.cards.total - status.cards.healthy), name, "Unhealthy")
        yield UNITS.at(status.units.allocated, name, "allocated")
        yield UNITS.at(max(0, status.units.total - status.units.allocated), name, "free")
        yield MEMORY.at(byte_count(status.memory.total), name)
        yield ALLOCATED_MEMORY.at(byte_count(status.memory.allocated), name)
        yield USED_MEMORY.at(byte_count(status.memory.used), name)
        if status.backend:
            yield BACKEND.at(1, name, status.backend, status.engine)
        for condition in status.conditions:
            if condition.status in ("True", "False"):
                yield CONDITION.at(condition.status == "True", name, condition.type)
