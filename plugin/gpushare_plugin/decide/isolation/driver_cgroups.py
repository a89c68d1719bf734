"""Which limits are in force for containers: their cgroups, and what the driver says of these."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpushare_core.api.served import Problem
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.isolation.driver import (
    CGROUPS_OF_VERSION_1,
    TOOLKIT_WITHOUT_HOOK,
    driver_too_old,
)
from gpushare_plugin.decide.isolation.kind import DriverFacts
from gpushare_plugin.decide.use.cgroups import CgroupOwner
from gpushare_plugin.decide.use.container_use import ContainerNames, ContainerShare, MeasuredUse
from gpushare_plugin.devices.use import PROCESSES_UNKNOWN, CardCgroup, CgroupMemory, MemoryLimits

NOT_ANSWERED = Problem(
    "DriverNotAsked", "the driver has not said whether it can limit memory: see the condition CardsHealthy"
)
NO_CGROUP = Problem(
    "CgroupsNotSeen",
    "no cgroup of pod {pod} is seen at {root}: wait for the next check where the pod has just started;"
    " otherwise, see that the plugin's pod has the node's /sys/fs/cgroup mounted, and that the kubelet makes"
    " cgroups for pods (cgroupsPerQOS)",
)
NO_NAME = Problem(
    "ContainersNotNamed",
    "which cgroup of pod {pod} is which container's is not known yet: its status at the API server does not"
    " list all of them; wait for the next check",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCgroups:
    """What is seen of the cgroups of a node."""

    root: str
    unified: bool = True
    """Whether they are of version 2."""
    containers: Mapping[CgroupOwner, Sequence[str]] = field(default_factory=dict)
    """Folders of each container, its own first; a runtime may put its processes into one below."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitQuestion:
    """What the driver is to be asked."""

    cgroups: Mapping[ContainerShare, tuple[tuple[CardCgroup, ...], ...]] = field(default_factory=dict)
    """For each container of the share's name, which may have started anew: its cgroups."""
    not_running: frozenset[ContainerShare] = frozenset()
    problem: Problem | None = None
    """Why the cgroups of a container are not known."""

    @property
    def asked(self) -> list[CardCgroup]:
        return [cgroup for groups in self.cgroups.values() for group in groups for cgroup in group]


class _Pods:
    """The containers of pods by the UIDs that the API server knows."""

    def __init__(self, cgroups: NodeCgroups, uids: Mapping[str, str]) -> None:
        self._uids = uids
        self._owners: dict[str, list[CgroupOwner]] = defaultdict(list)
        for owner in cgroups.containers:
            self._owners[owner.pod_uid].append(owner)

    def owners(self, share: ContainerShare) -> Sequence[CgroupOwner]:
        return self._owners[self._uids.get(share.uid, share.uid)]


def unnamed_cgroups(
    shares: Collection[ContainerShare],
    cgroups: NodeCgroups,
    uids: Mapping[str, str],
    names: ContainerNames,
) -> dict[CgroupOwner, PodName]:
    """Returns the containers whose names have to be looked up, with their pods.

    ``uids``: of a pod that the kubelet knows by another UID, by the one that the API server knows.
    """
    pods = _Pods(cgroups, uids)
    return {owner: share.pod for share in shares for owner in pods.owners(share) if owner not in names}


def limit_question(
    shares: Collection[ContainerShare],
    cgroups: NodeCgroups,
    uids: Mapping[str, str],
    names: ContainerNames,
) -> LimitQuestion:
    """Returns what is to be asked about ``shares``.

    A container to which none of its pod's cgroups belongs does not run, unless one that has no name may be
    its own: a pod's sandbox has none.
    """
    pods = _Pods(cgroups, uids)
    found: dict[ContainerShare, tuple[tuple[CardCgroup, ...], ...]] = {}
    not_running: set[ContainerShare] = set()
    problem: Problem | None = None
    for share in shares:
        owners = pods.owners(share)
        own = [cgroups.containers[owner] for owner in owners if names.get(owner) == share.container]
        if own:
            found[share] = tuple(tuple(CardCgroup(share.card, path) for path in paths) for paths in own)
        elif not owners:
            problem = _about(NO_CGROUP, share, cgroups)
        elif _may_be_unnamed(owners, names):
            problem = _about(NO_NAME, share, cgroups)
        else:
            not_running.add(share)
    return LimitQuestion(cgroups=found, not_running=frozenset(not_running), problem=problem)


def _may_be_unnamed(owners: Iterable[CgroupOwner], names: ContainerNames) -> bool:
    unlisted = [owner for owner in owners if not names.get(owner)]
    return len(unlisted) > 1 or any(owner not in names for owner in unlisted)


def _about(problem: Problem, share: ContainerShare, cgroups: NodeCgroups) -> Problem:
    return replace(problem, message=problem.message.format(pod=share.pod, root=cgroups.root))


def driver_facts(
    question: LimitQuestion, limits: MemoryLimits, *, cgroups: NodeCgroups, has_hook: bool | None
) -> DriverFacts:
    """``has_hook``: whether the CDI specification has the toolkit's hook; None where that is not known."""
    read_back: dict[ContainerShare, int] = {}
    used: dict[ContainerShare, int] = {}
    for share, groups in question.cgroups.items():
        known = [memory for group in groups if (memory := _memory(group, limits.cgroups))]
        if len(known) < len(groups):  # of a container before a restart nothing follows for the one after
            continue
        read_back[share] = max(memory.limit for memory in known)
        if all(memory.used is not None for memory in known):
            used[share] = sum(memory.used or 0 for memory in known)
    problem = _problem(limits, cgroups=cgroups, has_hook=has_hook)
    return DriverFacts(
        problem=problem,
        read_back=read_back,
        read_problem=limits.problem or (question.problem if cgroups.unified else problem),
        not_running=question.not_running,
        used=used,
    )


def _memory(group: Iterable[CardCgroup], answers: Mapping[CardCgroup, CgroupMemory]) -> CgroupMemory | None:
    """Returns what counts for a container: the lowest limit of its cgroups, and the most that one uses."""
    known = [answers[cgroup] for cgroup in group if cgroup in answers]
    if not known:
        return None
    used = [memory.used for memory in known if memory.used is not None]
    return CgroupMemory(limit=min(memory.limit for memory in known), used=max(used) if used else None)


def _problem(limits: MemoryLimits, *, cgroups: NodeCgroups, has_hook: bool | None) -> Problem | None:
    if not cgroups.unified:
        return CGROUPS_OF_VERSION_1
    if limits.supported is None:
        return limits.problem or NOT_ANSWERED
    if not limits.supported:
        return driver_too_old(limits.version)
    return TOOLKIT_WITHOUT_HOOK if has_hook is False else None


def with_driver_use(measured: MeasuredUse, used: Mapping[ContainerShare, int]) -> MeasuredUse:
    """Returns ``measured`` with what the driver counts for containers, which it knows better than a list of
    processes does. Where it knows all of them no such list is missed."""
    known = {share: size for share, size in used.items() if share in measured.requested}
    problem = measured.problem
    if problem and problem.reason == PROCESSES_UNKNOWN and known.keys() == measured.requested.keys():
        problem = None
    return replace(measured, containers={**measured.containers, **known}, problem=problem)
