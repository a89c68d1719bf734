"""Reads back which limits the driver has in force for containers."""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from gpushare_core.api.enums import Injection
from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import Devices
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.isolation.driver import NOT_NVIDIAS_DRIVER
from gpushare_plugin.decide.isolation.driver_cgroups import (
    NodeCgroups,
    driver_facts,
    limit_question,
    unnamed_cgroups,
)
from gpushare_plugin.decide.isolation.kind import DriverFacts, IsolatedShare
from gpushare_plugin.decide.use.cgroups import CgroupOwner
from gpushare_plugin.devices.use import NO_LIMIT, CardCgroup, LimitSource, MemoryLimits
from gpushare_plugin.devices.worker import SingleCall, Worker
from gpushare_plugin.isolation.cdi_hook import has_toolkit_hook
from gpushare_plugin.isolation.cgroup_tree import CgroupTree

CGROUPS = Path("/sys/fs/cgroup")
DEADLINE = 5.0
"""Seconds that the look at the node's files may take."""
STARTS_WITHIN = 20.0
"""Seconds from the first sight of a cgroup until its container has surely started: the runtime makes the
cgroup, then the toolkit sets the limit, then the container's program runs."""
STARTING = Problem("ContainerStarting", "the container may be about to start: wait for the next check")
UNREADABLE = Problem("CgroupsUnreadable", "the node's cgroups cannot be read: see the plugin's log")

_log = logging.getLogger(__name__)


class NameSource(Protocol):
    """Knows the names of containers by their cgroups."""

    known: dict[CgroupOwner, str]

    async def look_up(self, unnamed: Mapping[CgroupOwner, PodName]) -> None: ...

    def forget(self, present: Collection[str]) -> None: ...


@dataclass(slots=True)
class DriverReader:
    """Make one."""

    names: NameSource
    """Of no other part: those of pods that were not given this kind of isolation are forgotten."""
    open_limits: Callable[[], LimitSource | None]
    """Returns None where no driver can limit."""
    devices: Callable[[], Devices]
    """By the node's spec."""
    kubelet_uids: Callable[[], Mapping[str, str]]
    """UIDs of pods by which the API server knows them -> those by which the kubelet does; all that differ."""
    cgroups: Path = CGROUPS
    """Where the node's are mounted."""
    clock: Callable[[], float] = time.monotonic
    _seen: dict[CardCgroup, float] = field(default_factory=dict, init=False)
    """When the driver was first asked about a cgroup."""
    _is_able: bool = field(default=False, init=False)
    """Whether driver and node could limit when they answered last: until they answer again that stays."""
    _tree: CgroupTree = field(init=False)
    _call: SingleCall[tuple[NodeCgroups, bool | None] | None] | None = field(default=None, init=False)
    """None until it is needed: most nodes need no thread for it."""

    def __post_init__(self) -> None:
        self._tree = CgroupTree(self.cgroups)

    async def facts(self, isolated: Sequence[IsolatedShare]) -> DriverFacts:
        source, devices, uids = self.open_limits(), self.devices(), self.kubelet_uids()
        if source is None:
            return DriverFacts(problem=NOT_NVIDIAS_DRIVER, read_problem=NOT_NVIDIAS_DRIVER)
        shares = [one.share for one in isolated]
        pods = {uids.get(share.uid, share.uid) for share in shares}
        self._call = self._call or SingleCall(Worker("cgroups"), DEADLINE)
        looked = await self._call.result(lambda: self._look(devices, pods))
        if looked is None:
            return DriverFacts(problem=None if self._is_able else UNREADABLE, read_problem=UNREADABLE)
        cgroups, has_hook = looked
        self.names.forget(pods)
        if unnamed := unnamed_cgroups(shares, cgroups, uids, self.names.known):
            await self.names.look_up(unnamed)
        question = limit_question(shares, cgroups, uids, self.names.known)
        limits = self._settled(question.asked, await source.limits(question.asked))
        facts = driver_facts(question, limits, cgroups=cgroups, has_hook=has_hook)
        if limits.supported is None and self._is_able:
            return replace(facts, problem=None)
        self._is_able = facts.problem is None
        return facts

    def _settled(self, asked: Collection[CardCgroup], limits: MemoryLimits) -> MemoryLimits:
        """Returns ``limits`` without the cgroups that have none yet."""
        now = self.clock()
        self._seen = {cgroup: self._seen.get(cgroup, now) for cgroup in asked}
        young = {
            cgroup
            for cgroup, memory in limits.cgroups.items()
            if memory.limit == NO_LIMIT and now < self._seen.get(cgroup, now) + STARTS_WITHIN
        }
        if not young:
            return limits
        settled = {cgroup: memory for cgroup, memory in limits.cgroups.items() if cgroup not in young}
        return replace(limits, cgroups=settled, problem=limits.problem or STARTING)

    def _look(self, devices: Devices, pods: Collection[str]) -> tuple[NodeCgroups, bool | None] | None:
        """By the worker."""
        try:
            return self._tree.look(pods), _hook(devices)
        except Exception:  # neither the worker nor the process ends by what is on the node
            _log.exception("cannot read the node's cgroups")
            return None


def _hook(devices: Devices) -> bool | None:
    """The files matter only where containers get their cards by CDI names."""
    return has_toolkit_hook(devices.cdi_kind) if devices.injection is Injection.CDI else None
