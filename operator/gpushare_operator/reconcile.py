"""The operator's loop: take a snapshot, decide what is due, apply it, and write the policy's status."""

import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from gpushare_core.api.enums import LogLevel
from gpushare_core.api.names import COMPONENT_LABEL
from gpushare_core.api.plugin_heartbeat import COMPONENT
from gpushare_core.kube import paths
from gpushare_core.kube.client import Page
from gpushare_core.kube.errors import ApiError, asked_to_wait
from gpushare_core.process.log import change_level, most_verbose
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import Plan, target
from gpushare_operator.apply import Applier, Failure, Writer
from gpushare_operator.backends.volcano.connection import locations
from gpushare_operator.cluster.cache import Cache, Listing
from gpushare_operator.cluster.heartbeats import Heartbeats, written_by_those_at_work
from gpushare_operator.cluster.kinds import KINDS, PAGE, SCHEDULER_PODS, SCHEDULER_SELECTOR, Kind
from gpushare_operator.cluster.objects import (
    PolicyObject,
    ReadResult,
    SchedulerObject,
    VolcanoConfigObject,
    VolcanoLocation,
)
from gpushare_operator.cluster.readers import is_static, read_scheduler, read_volcano_config
from gpushare_operator.cluster.refusals import read_refusals
from gpushare_operator.cluster.server import ServerVersions, read_server_facts
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.debounce import Debounce
from gpushare_operator.decide.admission import mark_policies
from gpushare_operator.decide.backend_choice import asked_connection
from gpushare_operator.decide.cluster_plan import plan_cluster
from gpushare_operator.decide.conflicting_managers import conflicting_manager
from gpushare_operator.decide.policy_plan import plan_policy
from gpushare_operator.desired.names import Installation
from gpushare_operator.notices import NodeNotices
from gpushare_operator.retry_backoff import RetryBackoff
from gpushare_operator.status.books_agree import seconds_until_reports_end
from gpushare_operator.status.events import events_for, notice_event
from gpushare_operator.status.nodes.node_facts import FactFinder
from gpushare_operator.status.pods_without_scheduler import absent_scheduler_name
from gpushare_operator.status.policy import can_wait, policy_status
from gpushare_operator.work_queue import PartlyFailedError

CLUSTER = "*"
"""Key of what all policies share. No object can be called so."""
RESYNC = "*resync"
"""Key of reading everything anew: a watch that was cut off does not say what vanished meanwhile."""
RESYNC_SECONDS = 600.0
SCHEDULERS = "*schedulers"
"""Key of looking at kube-schedulers, and at Volcano's configuration: whether they still have our edit."""
SCHEDULERS_SECONDS = 30.0
HEARTBEATS = "*heartbeats"
"""Key of looking which plugins are heard of, and which pods of ours are not made."""
HEARTBEATS_SECONDS = 15.0
HEARTBEATS_PAGE = 500
"""Leases read at once: each is half a kB."""
FIGURES_SECONDS = 1.0
"""As often a status is written of which only sums and wording are new: in a large cluster they move all the
time."""
MAX_ACTIONS = 2000
"""Of one round; the next one follows at once. Rounds over 50,000 nodes would else last for minutes, in which
no status is written and no other key has its turn, and after which the queue counts as stalled."""
ROUND_SECONDS = 5.0
"""In which the actions of one round begin, for the same reasons: an admission webhook that hangs takes ten
seconds for each write."""
SHOWN_FAILURES = 10
"""Of one round, in the log."""
VOLCANO_SECONDS = 10.0
"""Where Volcano's configuration or a kube-scheduler of our own matters: a little more to read."""


_log = logging.getLogger(__name__)


class Api(Writer, Protocol):
    """The calls that write, and the one that reads."""

    async def get(self, path: str) -> Json: ...

    def pages(
        self, path: str, *, limit: int, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[Page]: ...


class UnfinishedError(PartlyFailedError):
    """Some actions failed; the key is to be tried again."""

    def __init__(self, failures: Sequence[Failure], retry_after: float | None) -> None:
        shown = "; ".join(str(failure) for failure in failures[:SHOWN_FAILURES])
        super().__init__(shown, retry_after, max(asked_to_wait(each.error) for each in failures))


@dataclass(slots=True)
class PolicyReconciler:
    """``work`` is what the queue calls; ``enqueue`` asks the queue for a key."""

    api: Api
    cache: Cache
    installation: Installation
    now: Callable[[], datetime]
    enqueue: Callable[[str], None]
    enqueue_later: Callable[[str], None] | None = None
    """Asks the queue for a key within ``FIGURES_SECONDS``; None: as ``enqueue``."""
    log_level: str = LogLevel.INFO
    """Where no policy says another one."""
    repetitions: RetryBackoff = field(default_factory=RetryBackoff)
    server_versions: ServerVersions = field(default_factory=ServerVersions)
    heartbeats: Heartbeats = field(default_factory=Heartbeats)
    clock: Callable[[], float] = time.monotonic
    """Of durations, in seconds."""
    scheduler_debounce: Debounce = field(default_factory=lambda: Debounce(0.0, time.monotonic))
    """Of what policies and nodes ask of the schedulers: each edit restarts kube-scheduler."""
    _reported: dict[str, datetime] = field(default_factory=dict, init=False)
    """Policy -> when its status was written last."""
    _notices: dict[str, NodeNotices] = field(default_factory=dict, init=False)

    async def work(self, key: str) -> float | None:
        """Returns the seconds until ``key`` is due again by itself, if it is.

        Raises:
            UnfinishedError: something failed; other errors may come from reading.
        """
        if key == RESYNC:
            await self.resync()
            return RESYNC_SECONDS
        if key == SCHEDULERS:
            await self._look_at_schedulers()
            await self._look_at_volcano()
            await self._look_at_server()
            self.enqueue_all()
            snapshot = self.cache.snapshot()
            return VOLCANO_SECONDS if locations(snapshot) or snapshot.server else SCHEDULERS_SECONDS
        if key == HEARTBEATS:
            await self._look_at_plugins()
            await self._look_at_refusals()
            return HEARTBEATS_SECONDS
        if key == CLUSTER:
            return await self._reconcile_cluster()
        return await self._reconcile_policy(key)

    def enqueue_all(self) -> None:
        """Asks for all keys after a change: planning is the cheapest way to see whom it concerns."""
        for policy in self.cache.policies():
            self.enqueue(policy)
        self.enqueue(CLUSTER)

    def enqueue_figures(self) -> None:
        """Asks for all policies after a change of what their statuses sum up: that is in no hurry."""
        for policy in self.cache.policies():
            self._enqueue_later(policy)

    def _enqueue_later(self, key: str) -> None:
        (self.enqueue_later or self.enqueue)(key)

    async def resync(self) -> None:
        """Reads everything. To be done once before any work: an empty cache looks like an empty cluster."""
        lists = [await self._read(kind) for kind in KINDS]
        for listing, version in lists:
            self.cache.replace(listing, version)
        staying = self._reported.keys() & set(self.cache.policies())
        self._reported = {name: self._reported[name] for name in staying}
        self.enqueue_all()

    async def _look_at_schedulers(self) -> None:
        """Reads the pods that kubelets show of their kube-schedulers. Without the right to read them nothing
        is made of it."""
        seen = self.now()
        schedulers: list[SchedulerObject] = []
        try:
            async for page in self.api.pages(SCHEDULER_PODS, limit=PAGE, label_selector=SCHEDULER_SELECTOR):
                schedulers += [read_scheduler(body, seen) for body in page.items if is_static(body)]
        except ApiError as error:
            if not error.is_forbidden:
                raise
            _log.warning("whether kube-schedulers keep our edit is not seen: %s", error)
        self.cache.replace_schedulers(schedulers)

    async def _look_at_plugins(self) -> None:
        """Reads the Leases that plugins renew. They are not watched: thousands a minute say that all is
        well."""
        path, selector = paths.leases(self.installation.namespace), f"{COMPONENT_LABEL}={COMPONENT}"
        leases: list[Json] = []
        async for page in self.api.pages(path, limit=HEARTBEATS_PAGE, label_selector=selector):
            leases += page.items
        snapshot = self.cache.snapshot()
        shares = snapshot.share_nodes.items()
        reported = {name: share.registered_since for name, share in shares if share.registered_since}
        leases = written_by_those_at_work(leases, snapshot.states)
        if self.cache.replace_unavailable(self.heartbeats.unavailable(leases, reported)):
            self.enqueue_all()

    async def _look_at_refusals(self) -> None:
        snapshot, namespace = self.cache.snapshot(), self.installation.namespace
        if self.cache.replace_refusals(await read_refusals(self.api, namespace, snapshot)):
            self.enqueue_all()

    async def _look_at_volcano(self) -> None:
        """Reads the configurations of Volcano's scheduler that matter to anybody."""
        asked = locations(self.cache.snapshot())
        self.cache.replace_volcano_configs({each: await self._volcano_config(each) for each in asked})

    async def _volcano_config(self, at: VolcanoLocation) -> VolcanoConfigObject:
        if not at.namespace:
            return VolcanoConfigObject(result=ReadResult.MISSING)
        try:
            body = await self.api.get(paths.config_map_path(at.namespace, at.config_map))
        except ApiError as error:
            if error.is_not_found:
                return VolcanoConfigObject(result=ReadResult.MISSING)
            if error.is_forbidden:
                return VolcanoConfigObject(result=ReadResult.FORBIDDEN)
            raise
        return read_volcano_config(body, at.key)

    async def _look_at_server(self) -> None:
        """Reads what a kube-scheduler of our own depends on, while it matters to anybody."""
        absent_scheduler = absent_scheduler_name(self.cache.snapshot())
        facts = await read_server_facts(self.api, absent_scheduler) if absent_scheduler else None
        if facts:
            facts = replace(facts, version=self.server_versions.lowest(facts.version, self.now()))
        self.cache.replace_server_facts(facts)

    async def _read(self, kind: Kind[Any]) -> tuple[Listing[Any], str]:
        """Returns all objects of ``kind`` and the resource version they are of."""
        listing, version = self.cache.listing(kind), ""
        path = kind.path(self.installation.namespace)
        async for page in self.api.pages(path, limit=PAGE, label_selector=kind.label_selector):
            listing.add(page.items)
            version = page.resource_version
        return listing, version

    async def _reconcile_cluster(self) -> float | None:
        snapshot = self.cache.snapshot()
        self._keep_log_level(snapshot)
        is_server_unknown = snapshot.server is None and absent_scheduler_name(snapshot)
        if is_server_unknown or set(locations(snapshot)) - set(snapshot.volcano_configs):
            self.enqueue(SCHEDULERS)
        waits = self.scheduler_debounce.seconds_left(asked_connection(snapshot))
        plan = plan_cluster(snapshot, self.installation, self.now(), scheduler_waits=waits)
        plan = replace(plan, actions=(*plan.actions, *mark_policies(snapshot)))
        before = self.repetitions.errors(CLUSTER)
        outcome = await self._perform(CLUSTER, snapshot, plan)
        if self.repetitions.errors(CLUSTER) != before:
            self.enqueue_all()  # Their conditions are where a person reads it.
        self._conclude(outcome, plan.retry_after)
        return _earliest(plan.retry_after, outcome.retry_after)

    def _keep_log_level(self, snapshot: ClusterSnapshot) -> None:
        specs = (policy.spec for policy in snapshot.policies.values())
        level = most_verbose((spec.operator.log_level for spec in specs if spec), otherwise=self.log_level)
        if change_level(level):
            _log.info("logging from level %s upwards now", level)

    async def _reconcile_policy(self, name: str) -> float | None:
        snapshot = self.cache.snapshot()
        policy = snapshot.policies.get(name)
        if policy is None:
            self._reported.pop(name, None)
            self._notices.pop(name, None)
            return None
        plan = plan_policy(snapshot, policy, self.installation, self.now())
        outcome = await self._perform(name, snapshot, plan)
        unreported = await self._report(policy, is_cut=outcome.is_cut)
        untold = await self._tell(policy)
        if unreported and outcome.failures:
            self._enqueue_later(name)  # the backoff of what failed may be longer
        stale = seconds_until_reports_end(snapshot, self.now())
        self._conclude(outcome, _earliest(plan.retry_after, stale))
        at_once = 0.0 if outcome.is_cut else None
        return _earliest(plan.retry_after, outcome.retry_after, unreported, untold, stale, at_once)

    async def _perform(self, key: str, snapshot: ClusterSnapshot, plan: Plan) -> "_Outcome":
        """Does what of ``plan`` may be done now; what has no lasting effect has to wait."""
        self.repetitions.settle(key, plan.actions)
        due = self.repetitions.due(plan.actions, self.now(), most=MAX_ACTIONS)
        contested = [action for action in due.actions if self.repetitions.is_contested(action)]
        rivals = {target(action): conflicting_manager(snapshot, action) for action in contested}
        performed = await self._applier().perform(due.actions, seconds=ROUND_SECONDS)
        failures, tried = performed.failures, performed.tried
        errors = {target(failure.action): str(failure) for failure in failures if not failure.is_outdated}
        for action in tried:
            at = target(action)
            self.repetitions.note(
                key, action, self.now(), error=errors.get(at, ""), conflicting_manager=rivals.get(at, "")
            )
        if len(failures) < len(tried):
            # Another one may wait for it, and so does the rest, whatever comes of the status.
            self.enqueue_all()
        is_cut = due.is_cut or len(tried) < len(due.actions)
        return _Outcome(failures=failures, retry_after=due.retry_after, is_cut=is_cut)

    async def _report(self, planned: PolicyObject, *, is_cut: bool) -> float | None:
        """Writes the status if it says something new, then posts the Events that follow from it. ``is_cut``:
        more is to be done than one round does.

        It speaks of the policy as it was ``planned``: of one that was changed meanwhile nothing is done yet.

        Returns the seconds until a status may be written that can wait, if it had to.
        """
        snapshot, now, name = self.cache.snapshot(), self.now(), planned.name
        present = snapshot.policies.get(name)
        if present is None or present.uid != planned.uid:
            return None
        policy = replace(planned, status=present.status, resource_version=present.resource_version)
        status = policy_status(
            snapshot,
            policy,
            self.installation,
            now=now,
            failures=self.repetitions.errors(name, CLUSTER),
            contested=self.repetitions.contested(name, CLUSTER),
            is_cut=is_cut,
        )
        if status == policy.status:
            return None
        if can_wait(policy.status, status) and (wait := self._seconds_until_report(name, now)) > 0:
            return wait
        self._reported[name] = now
        if await self._applier().write_status(policy, status):
            self._follow_answer(policy)
            await self._applier().post_events(policy.name, events_for(policy, status, now))
        return None

    async def _tell(self, policy: PolicyObject) -> float | None:
        """Posts Events of what is to be told of the policy's nodes. Returns the seconds until something that
        is held back may be told, if there is anything."""
        found = self.cache.snapshot().index(FactFinder(policy.name), subject=policy.name).results
        facts = {fact: sentence for of_node in found.values() for fact, sentence in of_node.items()}
        notices, now = self._notices.setdefault(policy.name, NodeNotices()), self.now()
        if due := notices.due(facts, now):
            await self._applier().post_events(policy.name, [notice_event(policy, each, now) for each in due])
        return notices.seconds_until_due(facts, now)

    def _follow_answer(self, policy: PolicyObject) -> None:
        """Asks for all keys if the answer to a status shows something else of ``policy``, too: the watch,
        which is later, will not tell what is known already."""
        answer = self.cache.snapshot().policies.get(policy.name)
        if answer is None or not answer.asks_the_same(policy):
            self.enqueue_all()

    def _seconds_until_report(self, name: str, now: datetime) -> float:
        """Returns how long a status has to wait that can. A clock that was set back makes nothing wait."""
        reported = self._reported.get(name)
        since = (now - reported).total_seconds() if reported else FIGURES_SECONDS
        return FIGURES_SECONDS - since if since >= 0 else 0.0

    def _conclude(self, outcome: "_Outcome", retry_after: float | None) -> None:
        """Raises for failures; what else is due in so many seconds does not wait for the backoff."""
        if outcome.failures:
            raise UnfinishedError(outcome.failures, retry_after)

    def _applier(self) -> Applier:
        return Applier(self.api, self.cache, self.installation.namespace, self.clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What came of a plan."""

    failures: Sequence[Failure]
    retry_after: float | None
    is_cut: bool
    """Whether more might have been done at once."""


def _earliest(*delays: float | None) -> float | None:
    return min((delay for delay in delays if delay is not None), default=None)
