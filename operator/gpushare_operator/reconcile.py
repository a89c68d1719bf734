"""The operator's loop: gather a snapshot, decide what is due, apply it, and tell the policy's reader."""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from gpushare_core.api.policy import PolicyStatus
from gpushare_core.kube.errors import ApiError
from gpushare_operator import paths
from gpushare_operator.apply import Applier, Failure, Writer
from gpushare_operator.cluster.cache import Inventory, Kind, Listing
from gpushare_operator.cluster.objects import PolicyView
from gpushare_operator.decide.policy import plan_policy, plan_shared
from gpushare_operator.desired.installation import Installation
from gpushare_operator.desired.names import MANAGED
from gpushare_operator.status import events
from gpushare_operator.status.policy import policy_status

Json = dict[str, Any]

SHARED = "*"
"""Key of what all policies share. No object can be called so."""
RESYNC = "*resync"
"""Key of reading everything anew: a watch that was cut off does not tell what vanished meanwhile."""
RESYNC_SECONDS = 600.0

_log = logging.getLogger(__name__)


class Api(Writer, Protocol):
    """Reading, too."""

    def pages(self, path: str, *, label_selector: str = "") -> AsyncIterator[tuple[list[Json], str]]: ...


class UnfinishedError(Exception):
    """Some actions failed; the key is to be tried again."""

    def __init__(self, failures: Iterable[Failure]) -> None:
        super().__init__("; ".join(str(failure) for failure in failures))


@dataclass(slots=True)
class Reconciler:
    """``work`` is what the queue calls; ``enqueue`` asks the queue for a key."""

    api: Api
    inventory: Inventory
    installation: Installation
    now: Callable[[], datetime]
    enqueue: Callable[[str], None]

    async def work(self, key: str) -> float | None:
        """Seconds until ``key`` is due again by itself. Raises whatever keeps it from being finished."""
        if key == RESYNC:
            await self.resync()
            return RESYNC_SECONDS
        if key == SHARED:
            return await self._shared()
        return await self._policy(key)

    def enqueue_all(self) -> None:
        """Something changed: whom it concerns is cheaper found out by planning."""
        for policy in self.inventory.policies():
            self.enqueue(policy)
        self.enqueue(SHARED)

    async def resync(self) -> None:
        """Read everything. To be done once before any work: an empty cache looks like an empty cluster."""
        read = [
            await self._read(kind, path, selector)
            for kind, (path, selector) in collections(self.installation.namespace).items()
        ]
        for listing, version in read:
            self.inventory.replace(listing.kind, listing, version)
        self.enqueue_all()

    async def _read(self, kind: Kind, path: str, selector: str) -> tuple[Listing, str]:
        listing, as_of = Listing(kind), ""
        async for bodies, version in self.api.pages(path, label_selector=selector):
            listing.take(bodies)
            as_of = version
        return listing, as_of

    async def _shared(self) -> float | None:
        plan = plan_shared(self.inventory.snapshot(), self.installation, self.now())
        failures = await self._applier().perform(plan.actions)
        self._conclude(failures, changed=bool(plan.actions))
        return plan.again_after

    async def _policy(self, name: str) -> float | None:
        snapshot = self.inventory.snapshot()
        policy = snapshot.policies.get(name)
        if policy is None:
            return None
        plan = plan_policy(snapshot, policy, self.installation)
        failures = await self._applier().perform(plan.actions)
        await self._tell(name, [str(each) for each in failures if each.is_worth_telling])
        self._conclude(failures, changed=bool(plan.actions))
        return plan.again_after

    def _conclude(self, failures: list[Failure], *, changed: bool) -> None:
        """What was done may be what another key waits for."""
        if changed:
            self.enqueue_all()
        if failures:
            raise UnfinishedError(failures)

    async def _tell(self, name: str, failures: list[str]) -> None:
        """Write the status if it says something new, then the Events that follow from it."""
        snapshot = self.inventory.snapshot()
        policy = snapshot.policies.get(name)
        if policy is None:
            return
        status = policy_status(snapshot, policy, now=self.now(), failures=failures)
        if status == policy.status:
            return
        path = f"{paths.POLICIES}/{name}/status"
        body = {"metadata": {"uid": policy.uid}, "status": status.to_json()}
        try:
            self.inventory.observe(Kind.POLICY, await self.api.merge(path, body))
        except ApiError as error:
            if not error.is_not_found:
                raise
            return
        await self._announce(policy, status)

    async def _announce(self, policy: PolicyView, status: PolicyStatus) -> None:
        """Events are a courtesy: one that cannot be posted is not tried again."""
        for event in events.events_for(policy, status, self.now()):
            try:
                await self.api.create(paths.events(events.NAMESPACE), event)
            except ApiError as error:
                if error.is_conflict:
                    continue  # It was posted before the status could be written.
                _log.warning("cannot post an event: %s", error, extra={"policy": policy.name})

    def _applier(self) -> Applier:
        return Applier(self.api, self.inventory, self.installation.namespace)


def collections(namespace: str) -> Mapping[Kind, tuple[str, str]]:
    """Path and label selector of everything that is followed."""
    return {
        Kind.POLICY: (paths.POLICIES, ""),
        Kind.NODE: (paths.NODES, ""),
        Kind.SHARE_NODE: (paths.SHARE_NODES, ""),
        Kind.DAEMON_SET: (paths.daemon_sets(namespace), MANAGED),
        Kind.JOB: (paths.jobs(namespace), MANAGED),
        Kind.POD: (paths.pods(namespace), MANAGED),
    }
