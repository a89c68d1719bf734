"""What a node gives new containers, and what its containers were given."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import PurePosixPath

from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import Isolation, NodeStatus
from gpushare_core.placement.quantity import parse_memory
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import StoredContainers
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.isolation.kind import (
    IsolatedShare,
    IsolationChoice,
    IsolationFacts,
    IsolationFinding,
)
from gpushare_plugin.decide.isolation.table import ISOLATION_KINDS, NO_ISOLATION
from gpushare_plugin.decide.units.layout import Layout
from gpushare_plugin.decide.use.container_use import ContainerShare, requested_memory
from gpushare_plugin.devices.card import Reading

UNAVAILABLE = "Unavailable"
"""In a GPUShareNode's ``status.isolation``: what is asked for cannot be had."""

GivenKinds = Mapping[tuple[str, str], str]
"""UID of a pod and name of a container -> which kind it was given."""
Findings = Sequence[tuple[IsolatedShare, IsolationFinding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationDecision:
    asked: MemoryIsolation = MemoryIsolation.NONE
    choice: IsolationChoice = NO_ISOLATION
    """What containers get; with a ``problem`` nothing, for only those that are on the node already may start
    again."""
    problem: Problem | None = None
    """Why the node cannot have what is asked for."""

    @property
    def word(self) -> str:
        return UNAVAILABLE if self.problem else self.asked.value


NONE_ASKED = IsolationDecision()
NOT_DECIDED = IsolationDecision(
    problem=Problem("Starting", "the plugin has just started, and has not checked yet whether it is possible")
)
"""Before the first round."""


def asked_kind(asked: Isolation | None) -> MemoryIsolation:
    return asked.memory if asked else MemoryIsolation.NONE


def decide_isolation(asked: Isolation | None, facts: IsolationFacts, *, folder: str) -> IsolationDecision:
    if asked is None or asked.memory is MemoryIsolation.NONE:
        return NONE_ASKED
    kind = ISOLATION_KINDS.get(asked.memory)
    if kind is None:
        unserved = f"this version of the plugin does not serve isolation.memory {asked.memory}"
        return IsolationDecision(asked=asked.memory, problem=Problem("NotServed", unserved))
    if problem := kind.unable(facts):
        return IsolationDecision(asked=asked.memory, problem=problem)
    context = parse_memory(asked.context_memory)
    choice = IsolationChoice(kind=kind, context_memory=context, folder=folder)
    return IsolationDecision(asked=asked.memory, choice=choice)


def beside_inventory(isolation: IsolationDecision, reading: Reading) -> IsolationDecision:
    """Returns ``isolation``, or that it cannot be had where a card comes with a mount that its own mounts
    would be in, or the other way round: then no container with both could start."""
    equipment = (card.equipment for card in reading.cards if card.equipment)
    mounted = {mount.container_path for one in equipment for mount in one.mounts}
    for own, other in product(isolation.choice.kind.paths, sorted(mounted)):
        if PurePosixPath(own).is_relative_to(other) or PurePosixPath(other).is_relative_to(own):
            message = (
                f"the node's inventory mounts {other} into containers, where isolation has {own}: give it"
                " another containerPath, or set isolation.memory of the policy to None"
            )
            return replace(isolation, choice=NO_ISOLATION, problem=Problem("InventoryInTheWay", message))
    return isolation


def closed_without_isolation(reading: Reading, isolation: IsolationDecision) -> Reading:
    """Returns cards that take no new pods where these would run without what is asked for."""
    if isolation.problem is None:
        return reading
    return replace(reading, cards=tuple(replace(card, closed=True) for card in reading.cards))


def isolated_shares(
    assigned: AssignedDevices, allocations: Sequence[PodAllocation], layout: Layout | None
) -> list[IsolatedShare]:
    """Returns the shares of containers that were given isolation, by what the kubelet keeps of them."""
    isolated = [one for one in allocations if _has_isolation(assigned.stored_of(one.pod))]
    requested = requested_memory(layout, isolated) if layout else {}
    found = []
    for allocation in isolated:
        stored = assigned.stored_of(allocation.pod)
        for container, cards in allocation.containers.items():
            entry = stored.get(container)
            if entry is None or entry.isolation is None:
                continue
            for card in cards:
                share = ContainerShare(allocation.pod.name, allocation.pod.uid, container, card)
                memory = requested.get(share, 0)
                found.append(
                    IsolatedShare(share=share, given=entry.isolation, numbers=entry.numbers, memory=memory)
                )
    return found


def _has_isolation(stored: StoredContainers) -> bool:
    return any(entry.isolation for entry in stored.values())


def findings(shares: Iterable[IsolatedShare], facts: IsolationFacts) -> Findings:
    return [(isolated, _finding(isolated, facts)) for isolated in shares]


def _finding(isolated: IsolatedShare, facts: IsolationFacts) -> IsolationFinding:
    kind = ISOLATION_KINDS.get(isolated.given.kind)
    if kind is None:
        return IsolationFinding(
            in_force=None, seen=f"this version of the plugin does not serve {isolated.given.kind}"
        )
    return kind.in_force(isolated, facts)


def given_kinds(
    assigned: AssignedDevices, allocations: Iterable[PodAllocation], recorded: NodeStatus
) -> GivenKinds:
    """Returns what containers were given. Where the kubelet's checkpoint does not have a container, what was
    recorded of it counts: it runs on as it was started."""
    before = {(share.uid, share.container): share.isolation for card in recorded.cards for share in card.pods}
    found: dict[tuple[str, str], str] = {}
    for allocation in allocations:
        stored = assigned.stored_of(allocation.pod)
        for container in allocation.containers:
            key, entry = (allocation.pod.uid, container), stored.get(container)
            if entry is None:
                found[key] = before.get(key, "")
            elif entry.isolation:
                found[key] = entry.isolation.kind.value
    return {key: kind for key, kind in found.items() if kind}
