"""What a round does about isolation: whether the node can have it, whether what containers were given is in
force, which files nobody needs any more, and since when a container has more than it asked for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.plugin_heartbeat import isolation_files
from gpushare_core.api.share_node import NodeStatus
from gpushare_core.placement.quantity import parse_memory
from gpushare_plugin.cluster.event_writer import EventWriter
from gpushare_plugin.decide.isolation.conditions import isolation_events
from gpushare_plugin.decide.isolation.kind import NO_DRIVER, HookFacts, IsolatedShare, IsolationFacts
from gpushare_plugin.decide.isolation.needed_files import needed_files
from gpushare_plugin.decide.isolation.node_isolation import (
    asked_kind,
    decide_isolation,
    findings,
    given_kinds,
    isolated_shares,
)
from gpushare_plugin.decide.use.container_use import ContainerShare
from gpushare_plugin.decide.use.lasting_excess import excess_since, recorded_excess
from gpushare_plugin.isolation.driver_limits import DriverLimits, NoDriverLimits
from gpushare_plugin.isolation.keeper import IsolationKeeper
from gpushare_plugin.state import PluginState


@dataclass(slots=True, kw_only=True)
class IsolationRound:
    """Keeps what ``state`` says of isolation."""

    state: PluginState
    events: EventWriter
    now: Callable[[], datetime]
    files: IsolationKeeper = field(default_factory=IsolationKeeper)
    driver: DriverLimits = field(default_factory=NoDriverLimits)
    _facts: IsolationFacts = field(default_factory=IsolationFacts, init=False)
    _shares: Sequence[IsolatedShare] = field(default=(), init=False)
    """Those that the facts are about."""

    async def decide(self) -> None:
        """What new containers get: before anything is offered."""
        await self._look()
        share_node = self.state.share_node
        asked = share_node.spec.isolation if share_node else None
        self.state.isolation = decide_isolation(asked, self._facts, folder=self.files.path)

    async def inspect(self) -> None:
        """Whether what containers were given is in force: when it is known what their units mean."""
        if self._isolated() != self._shares:
            await self._look()
        found = findings(self._shares, self._facts)
        before = self.state.isolation_findings or ()
        self.state.isolation_findings = found
        await self.events.write(isolation_events(before, found))

    def note_excess(self) -> None:
        """Since when containers have more memory than they asked for, where the policy cares."""
        state, share_node = self.state, self.state.share_node
        isolation = share_node.spec.isolation if share_node else None
        if share_node is None or isolation is None:
            state.excess_since = None
            return
        before = recorded_excess(share_node.status) if state.excess_since is None else state.excess_since
        allowed = self._allowed_above(share_node.status, parse_memory(isolation.context_memory))
        state.excess_since = excess_since(before, state.measured, allowed, now=self.now())

    def _allowed_above(self, recorded: NodeStatus, context: int) -> dict[ContainerShare, int]:
        """Returns the bytes that containers may have above what their units are now:

        1. with the hook what it cannot count: ``context`` as by the policy, or what the container was given;
        2. what its limit is more, of a time when less was reserved.
        """
        state, measured = self.state, self.state.measured
        if measured is None:
            return {}
        given = given_kinds(state.assigned, state.allocations(state.certain_assignments()), recorded)
        allowed = {
            share: context
            for share in measured.containers
            if given.get((share.uid, share.container)) == MemoryIsolation.HOOK
        }
        for isolated, found in state.isolation_findings or ():
            share = isolated.share
            more = (found.limit or 0) - measured.requested.get(share, 0)
            allowed[share] = max(allowed.get(share, 0), found.uncounted) + max(0, more)
        return allowed

    async def tidy(self) -> None:
        state = self.state
        listed = state.pod_resources_available and state.listed_since_restart.complete
        needed = needed_files(state.assigned, state.pods, listed=listed)
        in_use = state.isolation.asked is MemoryIsolation.HOOK
        is_there = await self.files.tidy(needed, in_use=in_use)
        state.put_isolation_files(isolation_files(needed.pods) if is_there else None)

    def _isolated(self) -> list[IsolatedShare]:
        state = self.state
        allocations = state.allocations(state.certain_assignments())
        return isolated_shares(state.assigned, allocations, state.offering.layout or state.last_layout)

    async def _look(self) -> None:
        self._shares = shares = self._isolated()
        asked = asked_kind(self.state.share_node.spec.isolation if self.state.share_node else None)
        with_hook = {one.given.identity for one in shares if one.given.kind is MemoryIsolation.HOOK}
        by_driver = [one for one in shares if one.given.kind is MemoryIsolation.DRIVER]
        wants_hook = asked is MemoryIsolation.HOOK or with_hook
        wants_driver = asked is MemoryIsolation.DRIVER or by_driver
        hook = await self.files.look(with_hook - {""}) if wants_hook else HookFacts()
        self._facts = IsolationFacts(
            hook=replace(hook, exceeding=frozenset(self.state.excess_since or ())),
            driver=await self.driver.facts(by_driver) if wants_driver else NO_DRIVER,
        )
        self.state.driver_use = self._facts.driver.used
