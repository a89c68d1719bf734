"""Which container uses how much of which card, by what a source of devices measures."""

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
"""Names of containers, by their processes' cgroups."""


class ContainerShare(NamedTuple):
    """A container's part of one card."""

    pod: PodName
    uid: str
    container: str
    card: str
    """UUID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredUse:
    cards: Mapping[str, int] = field(default_factory=dict)
    """UUID -> bytes. A card whose use is unknown is missing."""
    containers: Mapping[ContainerShare, int] = field(default_factory=dict)
    """Bytes. A container that is missing uses nothing of a card in ``cards``."""
    requested: Mapping[ContainerShare, int] = field(default_factory=dict)
    """Bytes that each container asked for."""
    exceeded_lately: frozenset[ContainerShare] = frozenset()
    """Shares whose containers use more than that, or did a while ago."""
    problem: Problem | None = None
    """Why nothing is known now, or nothing of containers."""


def measured_use(
    use: Use, layout: Layout, allocations: Sequence[PodAllocation], names: ContainerNames
) -> MeasuredUse:
    """Returns ``use`` by the containers that hold units; what others use counts for the cards alone."""
    requested = requested_memory(layout, allocations)
    containers: Counter[ContainerShare] = Counter()
    by_name = {(share.uid, share.container, share.card): share for share in requested}
    for container in use.containers:
        if share := by_name.get((container.uid, container.container, container.card)):
            containers[share] += container.used
    finder = _ShareFinder(allocations, requested, names)
    for process in use.processes:
        if share := finder.share(process):
            containers[share] += process.used
    return MeasuredUse(cards=use.cards, containers=dict(containers), requested=requested, problem=use.problem)


def requested_memory(layout: Layout, allocations: Iterable[PodAllocation]) -> dict[ContainerShare, int]:
    """Returns the bytes of the units that each container holds of the cards in ``layout``."""
    placed = {card.uuid: card for card in layout.cards}
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
    """Returns the bytes in use of the shares whose containers use more than they asked for."""
    return {share: size for share, size in used.items() if size > requested.get(share, size)}


def loads(allocations: Iterable[PodAllocation]) -> list[Load]:
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
    """Returns the containers whose names have to be looked up: several of their pod hold units of a card."""
    finder = _ShareFinder(allocations, requested_memory(layout, allocations), names)
    return dict(unnamed for process in use.processes if (unnamed := finder.unnamed(process)))


class _ShareFinder:
    """Finds the share of which a process uses memory."""

    def __init__(
        self, allocations: Iterable[PodAllocation], shares: Iterable[ContainerShare], names: ContainerNames
    ) -> None:
        self._names = names
        self._uids = {allocation.pod.kubelet_uid: allocation.pod.uid for allocation in allocations}
        self._on_card: dict[tuple[str, str], list[ContainerShare]] = defaultdict(list)
        for share in shares:
            self._on_card[share.uid, share.card].append(share)

    def share(self, process: ProcessUse) -> ContainerShare | None:
        """Returns None where no container around the process holds units of its card, or no name is known."""
        for owner, shares in self._candidates(process):
            if len(shares) == 1:
                return shares[0]
            name = self._names.get(owner)
            return next((share for share in shares if share.container == name), None)
        return None

    def unnamed(self, process: ProcessUse) -> tuple[CgroupOwner, PodName] | None:
        for owner, shares in self._candidates(process):
            is_open = len(shares) > 1 and owner.container_id and owner not in self._names
            return (owner, shares[0].pod) if is_open else None
        return None

    def _candidates(self, process: ProcessUse) -> Iterator[tuple[CgroupOwner, list[ContainerShare]]]:
        """Yields the containers around the process and their pods' shares of its card, the outermost first: a
        pod may itself run a cluster."""
        for owner in cgroup_owners(process.cgroup):
            uid = self._uids.get(owner.pod_uid)
            if uid is not None and (shares := self._on_card.get((uid, process.card))):
                yield owner, shares
