"""Reads back which limits the driver has in force for containers."""

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gpushare_core.api.enums import Injection
from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import GPUShareNode
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.isolation.driver import NOT_NVIDIAS_DRIVER
from gpushare_plugin.decide.isolation.driver_limits import (
    NodeCgroups,
    driver_facts,
    limit_question,
    unnamed_cgroups,
)
from gpushare_plugin.decide.isolation.kind import DriverFacts
from gpushare_plugin.decide.use.cgroups import CgroupOwner
from gpushare_plugin.decide.use.container_use import ContainerShare
from gpushare_plugin.devices.use import LimitSource
from gpushare_plugin.devices.worker import SingleCall, Worker
from gpushare_plugin.isolation.cdi_hook import has_toolkit_hook
from gpushare_plugin.isolation.cgroup_tree import CgroupTree

CGROUPS = Path("/sys/fs/cgroup")
DEADLINE = 5.0
"""Seconds that the look at the node's files may take."""
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
    open_limits: Callable[[GPUShareNode], LimitSource | None]
    cgroups: Path = CGROUPS
    _tree: CgroupTree = field(init=False)
    _call: SingleCall[tuple[NodeCgroups, bool | None] | None] = field(init=False)

    def __post_init__(self) -> None:
        self._tree = CgroupTree(self.cgroups)
        self._call = SingleCall(Worker("cgroups"), DEADLINE)

    async def read(
        self, share_node: GPUShareNode, shares: Collection[ContainerShare], uids: Mapping[str, str]
    ) -> DriverFacts:
        """Returns whether the node's driver can limit, and the limits of ``shares``, whose containers were
        given this kind of isolation.

        ``uids``: of a pod that the kubelet knows by another UID, by the one that the API server knows.
        """
        source = self.open_limits(share_node)
        if source is None:
            return DriverFacts(problem=NOT_NVIDIAS_DRIVER, read_problem=NOT_NVIDIAS_DRIVER)
        pods = {uids.get(share.uid, share.uid) for share in shares}
        looked = await self._call.result(lambda: self._look(share_node, pods))
        if looked is None:
            return DriverFacts(problem=UNREADABLE, read_problem=UNREADABLE)
        cgroups, has_hook = looked
        self.names.forget(pods)
        if unnamed := unnamed_cgroups(shares, cgroups, uids, self.names.known):
            await self.names.look_up(unnamed)
        question = limit_question(shares, cgroups, uids, self.names.known)
        limits = await source.limits(question.asked)
        return driver_facts(question, limits, cgroups=cgroups, has_hook=has_hook)

    def _look(
        self, share_node: GPUShareNode, pods: Collection[str]
    ) -> tuple[NodeCgroups, bool | None] | None:
        """By the worker."""
        try:
            return self._tree.look(pods), _hook(share_node)
        except Exception:  # neither the worker nor the process ends by what is on the node
            _log.exception("cannot read the node's cgroups")
            return None


def _hook(share_node: GPUShareNode) -> bool | None:
    """The files matter only where containers get their cards by CDI names."""
    devices = share_node.spec.devices
    return has_toolkit_hook(devices.cdi_kind) if devices.injection is Injection.CDI else None
