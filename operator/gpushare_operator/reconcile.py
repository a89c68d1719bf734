"""The operator's loop: take a snapshot, decide what is due, apply it, and write the policy's status."""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from gpushare_core.kube.client import Page
from gpushare_operator.apply import Applier, Failure, Writer
from gpushare_operator.cluster.cache import Cache, Listing
from gpushare_operator.cluster.kinds import KINDS, PAGE, Kind
from gpushare_operator.decide.cluster_plan import plan_cluster
from gpushare_operator.decide.policy_plan import plan_policy
from gpushare_operator.desired.names import Installation
from gpushare_operator.status.events import events_for
from gpushare_operator.status.policy import policy_status

CLUSTER = "*"
"""Key of what all policies share. No object can be called so."""
RESYNC = "*resync"
"""Key of reading everything anew: a watch that was cut off does not say what vanished meanwhile."""
RESYNC_SECONDS = 600.0


class Api(Writer, Protocol):
    """The calls that write, and the one that reads."""

    def pages(self, path: str, *, limit: int, label_selector: str = "") -> AsyncIterator[Page]: ...


class UnfinishedError(Exception):
    """Some actions failed; the key is to be tried again."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        super().__init__("; ".join(str(failure) for failure in failures))


@dataclass(slots=True)
class Reconciler:
    """``work`` is what the queue calls; ``enqueue`` asks the queue for a key."""

    api: Api
    cache: Cache
    installation: Installation
    now: Callable[[], datetime]
    enqueue: Callable[[str], None]

    async def work(self, key: str) -> float | None:
        """Returns the seconds until ``key`` is due again by itself, if it is.

        Raises:
            UnfinishedError: something failed; other errors may come from reading.
        """
        if key == RESYNC:
            await self.resync()
            return RESYNC_SECONDS
        if key == CLUSTER:
            return await self._reconcile_cluster()
        return await self._reconcile_policy(key)

    def enqueue_all(self) -> None:
        """Asks for all keys after a change: planning is the cheapest way to see whom it concerns."""
        for policy in self.cache.policies():
            self.enqueue(policy)
        self.enqueue(CLUSTER)

    async def resync(self) -> None:
        """Reads everything. To be done once before any work: an empty cache looks like an empty cluster."""
        lists = [await self._read(kind) for kind in KINDS]
        for listing, version in lists:
            self.cache.replace(listing, version)
        self.enqueue_all()

    async def _read(self, kind: Kind[Any]) -> tuple[Listing[Any], str]:
        """Returns all objects of ``kind`` and the resource version they are of."""
        listing, version = Listing(kind), ""
        path = kind.path(self.installation.namespace)
        async for page in self.api.pages(path, limit=PAGE, label_selector=kind.label_selector):
            listing.add(page.items)
            version = page.resource_version
        return listing, version

    async def _reconcile_cluster(self) -> float | None:
        plan = plan_cluster(self.cache.snapshot(), self.installation, self.now())
        failures = await self._applier().perform(plan.actions)
        self._conclude(failures, changed=bool(plan.actions))
        return plan.retry_after

    async def _reconcile_policy(self, name: str) -> float | None:
        snapshot = self.cache.snapshot()
        policy = snapshot.policies.get(name)
        if policy is None:
            return None
        plan = plan_policy(snapshot, policy, self.installation, self.now())
        failures = await self._applier().perform(plan.actions)
        await self._report(name, [str(failure) for failure in failures if not failure.is_conflict])
        self._conclude(failures, changed=bool(plan.actions))
        return plan.retry_after

    async def _report(self, name: str, failures: Sequence[str]) -> None:
        """Writes the status if it says something new, then posts the Events that follow from it."""
        snapshot, now = self.cache.snapshot(), self.now()
        policy = snapshot.policies.get(name)
        if policy is None:
            return
        status = policy_status(snapshot, policy, now=now, failures=failures)
        if status != policy.status and await self._applier().write_status(policy, status):
            await self._applier().post_events(policy.name, events_for(policy, status, now))

    def _conclude(self, failures: Sequence[Failure], *, changed: bool) -> None:
        """Asks for all keys if something changed: another one may wait for it. Raises for failures."""
        if changed:
            self.enqueue_all()
        if failures:
            raise UnfinishedError(failures)

    def _applier(self) -> Applier:
        return Applier(self.api, self.cache, self.installation.namespace)
