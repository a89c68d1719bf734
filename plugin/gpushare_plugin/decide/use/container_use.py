"""Which container uses how much of which card, of all that a source of devices tells."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpushare_core.api.served import Problem
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.units.layout import Layout
from gpushare_plugin.decide.use.cgroups import CgroupOwner, cgroup_owners
from gpushare_plugin.devices.use import Load, ProcessUse, Use

ContainerNames = Mapping[CgroupOwner, str]
"""Names of containers, by what their processes' cgroups are called."""


class ContainerShare(NamedTuple):
    """Units of one card that one container has."""

    pod: PodName
    uid: str
    container: str
    card: str
    """UUID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredUse:
    """What is in use, at one moment."""

    cards: Mapping[str, int] = field(default_factory=dict)
    """UUID -> bytes. A card of which it cannot be told is missing."""
    containers: Mapping[ContainerShare, int] = field(default_factory=dict)
    """Bytes. With it and ``cards``, what is missing uses nothing."""
    requested: Mapping[ContainerShare, int] = field(default_factory=dict)
    """Bytes that each container asked for."""
    exceeded_lately: frozenset[ContainerShare] = frozenset()
    """Who used more than that, now or a while ago."""
    problem: Problem | None = None
    """Why nothing can be told now, or nothing of containers."""


def measured_use(
    use: Use, layout: Layout, allocations: Sequence[PodAllocation], names: ContainerNames
) -> MeasuredUse:
    """Returns ``use`` by those who hold units; what others use counts for the cards alone."""
    requested = requested_memory(layout, allocations)
    containers: Counter[ContainerShare] = Counter()
    by_name = {(key.uid, key.container, key.card): key for key in requested}
    for told in use.containers:
        if key := by_name.get((told.uid, told.container, told.card)):
            containers[key] += told.used
    finder = _HolderFinder(allocations, requested, names)
    for process in use.processes:
        if holder := finder.holder(process):
            containers[holder] += process.used
    return MeasuredUse(cards=use.cards, containers=dict(containers), requested=requested, problem=use.problem)


def requested_memory(layout: Layout, allocations: Iterable[PodAllocation]) -> dict[ContainerShare, int]:
    """Returns the bytes that each holding is worth; of cards that are not in the layout nothing."""
    placed = {each.uuid: each for each in layout.cards}
    return {
        ContainerShare(allocation.pod.name, allocation.pod.uid, container, card): layout.of(
            allocation.classes.get(card, layout.classes[0])
        ).memory_of(units, placed[card])
        for allocation in allocations
        for container, shares in allocation.containers.items()
        for card, units in shares.items()
        if card in placed
    }


def exceeding(
    used: Mapping[ContainerShare, int], requested: Mapping[ContainerShare, int]
) -> dict[ContainerShare, int]:
    """Returns the bytes of those who use more than they asked for."""
    return {key: size for key, size in used.items() if size > requested.get(key, size)}


def loads(allocations: Iterable[PodAllocation]) -> list[Load]:
    """Returns the pods of which a load is to be simulated."""
    return [
        Load(
            pod=str(allocation.pod.name),
            uid=allocation.pod.uid,
            containers={name: sorted(cards) for name, cards in allocation.containers.items()},
            text=allocation.pod.simulated_load,
        )
        for allocation in allocations
        if allocation.pod.simulated_load
    ]


def unnamed_owners(
    use: Use, layout: Layout, allocations: Sequence[PodAllocation], names: ContainerNames
) -> dict[CgroupOwner, PodName]:
    """Returns of which containers the names have to be known: several of their pod have units of a card."""
    finder = _HolderFinder(allocations, requested_memory(layout, allocations), names)
    return dict(each for process in use.processes if (each := finder.unnamed(process)))


class _HolderFinder:
    """Who of those that hold units a process belongs to."""

    def __init__(
        self, allocations: Iterable[PodAllocation], holdings: Iterable[ContainerShare], names: ContainerNames
    ) -> None:
        self._names = names
        self._uids = {allocation.pod.kubelet_uid: allocation.pod.uid for allocation in allocations}
        self._on_card: dict[tuple[str, str], list[ContainerShare]] = defaultdict(list)
        for holding in holdings:
            self._on_card[holding.uid, holding.card].append(holding)

    def holder(self, process: ProcessUse) -> ContainerShare | None:
        """Returns None for a process of nobody who has units of its card, or while that cannot be told."""
        for owner, holdings in self._candidates(process):
            if len(holdings) == 1:
                return holdings[0]
            name = self._names.get(owner)
            return next((holding for holding in holdings if holding.container == name), None)
        return None

    def unnamed(self, process: ProcessUse) -> tuple[CgroupOwner, PodName] | None:
        for owner, holdings in self._candidates(process):
            is_open = len(holdings) > 1 and owner.container_id and owner not in self._names
            return (owner, holdings[0].pod) if is_open else None
        return None

    def _candidates(self, process: ProcessUse) -> Iterator[tuple[CgroupOwner, list[ContainerShare]]]:
        """Yields what may have the process, the outermost first: a pod may itself run a cluster."""
        for owner in cgroup_owners(process.cgroup):
            uid = self._uids.get(owner.pod_uid)
            if uid is not None and (holdings := self._on_card.get((uid, process.card))):
                yield owner, holdings
