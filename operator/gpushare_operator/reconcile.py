"""The operator's loop: take a snapshot, decide what is due, apply it, and write the policy's status."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Protocol

from gpushare_core.api.enums import LogLevel
from gpushare_core.kube.errors import asked_to_wait
from gpushare_core.process.log import change_level, most_verbose
from gpushare_operator.actions import Action, DeleteDaemonSet, Plan, target
from gpushare_operator.apply import Applier, Failure, Writer
from gpushare_operator.backends.kube_scheduler.engine import needs_scheduler_rights
from gpushare_operator.backends.volcano.connection import locations
from gpushare_operator.cluster.api_reader import ApiReader
from gpushare_operator.cluster.cache import Cache
from gpushare_operator.cluster.heartbeats import Heartbeats
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.admission import mark_policies
from gpushare_operator.decide.backend_choice import asked_connection
from gpushare_operator.decide.cluster_plan import plan_cluster
from gpushare_operator.decide.conflicting_managers import conflicting_manager
from gpushare_operator.decide.evictions import EvictionPlan, plan_evictions
from gpushare_operator.decide.policy_plan import plan_policy
from gpushare_operator.decide.teardown.isolation import isolation_files, takes_files_folder_away
from gpushare_operator.desired.names import Installation
from gpushare_operator.evictions import Evictions
from gpushare_operator.notices import NodeNotices
from gpushare_operator.polls import Polls
from gpushare_operator.retry_backoff import RetryBackoff
from gpushare_operator.status.conditions.books_agree import seconds_until_reports_end
from gpushare_operator.status.events import events_for, left_files_event, notice_event
from gpushare_operator.status.nodes.node_facts import FactFinder
from gpushare_operator.status.pods_without_scheduler import absent_scheduler
from gpushare_operator.status.policy import can_wait, policy_status
from gpushare_operator.work_queue import Debounce, PartlyFailedError

CLUSTER = "*"
"""Key of what all policies share. No object can have this name."""
RESYNC = "*resync"
"""Key of ``Polls.read_all``."""
RESYNC_SECONDS = 600.0
SCHEDULERS = "*schedulers"
"""Key of ``Polls.read_schedulers``: whether kube-schedulers and Volcano still have our edit."""
SCHEDULERS_SECONDS = 30.0
HEARTBEATS = "*heartbeats"
"""Key of ``Polls.read_heartbeats`` and ``Polls.read_refusals``."""
HEARTBEATS_SECONDS = 15.0
FIGURES_SECONDS = 1.0
"""Between two statuses that differ only in sums and wording: in a large cluster these move all the time."""
MAX_ACTIONS = 2000
"""Of one round; the next one follows at once. Otherwise rounds over 50,000 nodes would last for minutes: no
status is written meanwhile, no other key has its turn, and the queue counts as stalled."""
ROUND_SECONDS = 5.0
"""In which actions of one round begin, for the same reasons: an admission webhook that hangs takes ten
seconds for each write."""
SHOWN_FAILURES = 10
"""Of one round, in the log."""
VOLCANO_SECONDS = 10.0
"""In place of ``SCHEDULERS_SECONDS`` where Volcano or a kube-scheduler of our own is in use."""

_log = logging.getLogger(__name__)


class Api(Writer, ApiReader, Protocol):
    """All calls to the API server."""


class UnfinishedError(PartlyFailedError):
    """Some actions failed."""

    def __init__(self, failures: Sequence[Failure], retry_after: float | None) -> None:
        shown = "; ".join(str(failure) for failure in failures[:SHOWN_FAILURES])
        super().__init__(shown, retry_after, max(asked_to_wait(failure.error) for failure in failures))


@dataclass(slots=True)
class PolicyReconciler:
    """The queue calls ``work``; ``enqueue`` puts a key into it."""

    api: Api
    cache: Cache
    installation: Installation
    now: Callable[[], datetime]
    enqueue: Callable[[str], None]
    enqueue_later: Callable[[str], None] | None = None
    """As ``enqueue``, for within ``FIGURES_SECONDS``; None: as ``enqueue``."""
    log_level: str = LogLevel.INFO
    """Unless a policy names another one."""
    retry_backoff: RetryBackoff = field(default_factory=RetryBackoff)
    heartbeats: Heartbeats = field(default_factory=Heartbeats)
    clock: Callable[[], float] = time.monotonic
    """Of durations, in seconds."""
    evictions: Evictions = field(default_factory=lambda: Evictions(time.monotonic))
    scheduler_debounce: Debounce = field(default_factory=lambda: Debounce(0.0, time.monotonic))
    """Each edit for what policies and nodes ask of kube-scheduler restarts it."""
    _reported: dict[str, datetime] = field(default_factory=dict, init=False)
    """Policy -> when its status was last written."""
    _notices: dict[str, NodeNotices] = field(default_factory=dict, init=False)
    _polls: Polls = field(init=False)

    def __post_init__(self) -> None:
        self._polls = Polls(self.api, self.cache, self.installation.namespace, self.now, self.heartbeats)

    async def work(self, key: str) -> float | None:
        """Returns the seconds until ``key`` is due again by itself, if it is. Raises UnfinishedError when an
        action failed; reading raises other errors."""
        if key == RESYNC:
            await self.resync()
            return RESYNC_SECONDS
        if key == SCHEDULERS:
            await self._polls.read_schedulers()
            self.enqueue_all()
            snapshot = self.cache.snapshot()
            return VOLCANO_SECONDS if locations(snapshot) or snapshot.server else SCHEDULERS_SECONDS
        if key == HEARTBEATS:
            for read in (self._polls.read_heartbeats, self._polls.read_refusals):
                if await read():
                    self.enqueue_all()
            return HEARTBEATS_SECONDS
        if key == CLUSTER:
            return await self._reconcile_cluster()
        return await self._reconcile_policy(key)

    def enqueue_all(self) -> None:
        """After a change: planning everything is the cheapest way to see which policies it concerns."""
        for policy in self.cache.policies():
            self.enqueue(policy)
        self.enqueue(CLUSTER)

    def enqueue_figures(self) -> None:
        """After a change of what only statuses sum up."""
        for policy in self.cache.policies():
            self._enqueue_later(policy)

    def _enqueue_later(self, key: str) -> None:
        (self.enqueue_later or self.enqueue)(key)

    async def resync(self) -> None:
        """Reads everything. To be done once before any work: an empty cache looks like an empty cluster."""
        await self._polls.read_all()
        staying = self._reported.keys() & set(self.cache.policies())
        self._reported = {name: self._reported[name] for name in staying}
        self.enqueue_all()

    async def _reconcile_cluster(self) -> float | None:
        snapshot = self.cache.snapshot()
        self._keep_log_level(snapshot)
        is_server_unknown = snapshot.server is None and absent_scheduler(snapshot)
        are_rights_unknown = snapshot.scheduler_rights is None and needs_scheduler_rights(snapshot)
        if (
            is_server_unknown
            or are_rights_unknown
            or set(locations(snapshot)) - set(snapshot.volcano_configs)
        ):
            self.enqueue(SCHEDULERS)
        waits = self.scheduler_debounce.seconds_left(asked_connection(snapshot))
        plan = plan_cluster(snapshot, self.installation, self.now(), scheduler_waits=waits)
        plan = replace(plan, actions=(*plan.actions, *mark_policies(snapshot)))
        before = self.retry_backoff.errors(CLUSTER)
        outcome = await self._perform(CLUSTER, snapshot, plan)
        if self.retry_backoff.errors(CLUSTER) != before:
            self.enqueue_all()  # people read it in the policies' conditions
        self._conclude(outcome, plan.retry_after)
        return _earliest(plan.retry_after, outcome.retry_after)

    def _keep_log_level(self, snapshot: ClusterSnapshot) -> None:
        specs = (policy.spec for policy in snapshot.policies.values())
        level = most_verbose((spec.operator.log_level for spec in specs if spec), otherwise=self.log_level)
        if change_level(level):
            _log.info("the log level is now %s", level)

    async def _reconcile_policy(self, name: str) -> float | None:
        snapshot = self.cache.snapshot()
        policy = snapshot.policies.get(name)
        if policy is None:
            self._reported.pop(name, None)
            self._notices.pop(name, None)
            return None
        plan = plan_policy(snapshot, policy, self.installation, self.now())
        if any(takes_files_folder_away(snapshot, action) for action in plan.actions):
            # Containers may have been given files since the Leases were read.
            if await self._polls.read_heartbeats():
                self.enqueue_all()
            snapshot = self.cache.snapshot()
            plan = plan_policy(snapshot, policy, self.installation, self.now())
        await self._tell_of_left_files(snapshot, policy, plan.actions)
        outcome = await self._perform(name, snapshot, plan)
        unreported = await self._report(policy, is_cut=outcome.is_cut)
        unposted = await self._post_notices(policy)
        evictions = await self._evict(name)
        if unreported and outcome.failures:
            self._enqueue_later(name)  # the backoff of what failed may be longer
        stale = seconds_until_reports_end(snapshot, self.now())
        self._conclude(outcome, _earliest(plan.retry_after, evictions, stale))
        at_once = 0.0 if outcome.is_cut else None
        return _earliest(
            plan.retry_after, outcome.retry_after, unreported, unposted, evictions, stale, at_once
        )

    async def _perform(self, key: str, snapshot: ClusterSnapshot, plan: Plan) -> "_Outcome":
        """Performs the actions that may be performed now; those without a lasting effect have to wait."""
        self.retry_backoff.settle(key, plan.actions)
        due = self.retry_backoff.due(plan.actions, self.now(), most=MAX_ACTIONS)
        contested = [action for action in due.actions if self.retry_backoff.is_contested(action)]
        managers = {target(action): conflicting_manager(snapshot, action) for action in contested}
        performed = await self._applier().perform(due.actions, seconds=ROUND_SECONDS)
        failures, tried = performed.failures, performed.tried
        errors = {target(failure.action): str(failure) for failure in failures if not failure.is_outdated}
        for action in tried:
            at = target(action)
            self.retry_backoff.note(
                key, action, self.now(), error=errors.get(at, ""), conflicting_manager=managers.get(at, "")
            )
        if len(failures) < len(tried):
            # Other policies may wait for this, and so does the rest of the plan, even without a status.
            self.enqueue_all()
        is_cut = due.is_cut or len(tried) < len(due.actions)
        return _Outcome(failures=failures, retry_after=due.retry_after, is_cut=is_cut)

    async def _report(self, planned: PolicyObject, *, is_cut: bool) -> float | None:
        """Writes the status if it is new, then posts the Events that follow from it.

        The status is of the policy as it was ``planned``: for a later change of it nothing is done yet.
        ``is_cut``: the plan has more actions than one round performs. Returns the seconds until a status that
        had to wait may be written.
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
            failures=self.retry_backoff.errors(name, CLUSTER),
            contested=self.retry_backoff.contested(name, CLUSTER),
            unevicted=self.evictions.refused(name),
            is_cut=is_cut,
        )
        if status == policy.status:
            return None
        if can_wait(policy.status, status) and (wait := self._seconds_until_report(name, now)) > 0:
            return wait
        self._reported[name] = now
        if await self._applier().write_status(policy, status):
            answer = self.cache.snapshot().policies.get(name)
            if answer is None or not answer.asks_the_same(policy):
                # The watch comes later, and does not report a version that the answer has made known.
                self.enqueue_all()
            await self._applier().post_events(policy.name, events_for(policy, status, now))
        return None

    async def _post_notices(self, policy: PolicyObject) -> float | None:
        """Posts Events about the policy's nodes. Returns the seconds until one that waits may be posted."""
        found = self.cache.snapshot().index(FactFinder(policy.name), subject=policy.name).results
        facts = {fact: sentence for sentences in found.values() for fact, sentence in sentences.items()}
        notices, now = self._notices.setdefault(policy.name, NodeNotices()), self.now()
        if due := notices.due(facts, now):
            events = [notice_event(policy, notice, now) for notice in due]
            await self._applier().post_events(policy.name, events)
        return notices.seconds_until_due(facts, now)

    async def _tell_of_left_files(
        self, snapshot: ClusterSnapshot, policy: PolicyObject, actions: Sequence[Action]
    ) -> None:
        """As soon as the plugins go, which alone remove such files."""
        is_going = any(isinstance(action, DeleteDaemonSet) for action in actions)
        if is_going and (files := isolation_files(snapshot, policy.name)):
            event = left_files_event(policy, files, self.now())
            await self._applier().post_events(policy.name, [event])

    async def _evict(self, policy: str) -> float | None:
        """Evicts pods that have had more memory than they asked for, by what the policy asks for and their
        GPUShareNodes say now. Returns the seconds until more may be due."""
        before = self.evictions.refused(policy)
        plan = self._plan_evictions(policy)
        if plan.actions:
            read = {action.node for action in plan.actions}
            if await self._polls.read_share_nodes(read):
                self.enqueue_all()  # no watch reports what is known by now
            plan = self._plan_evictions(policy)
            still_due = [action for action in plan.actions if action.node in read]
            performed = await self._applier().perform(still_due, seconds=ROUND_SECONDS)
            events = self.evictions.conclude(performed, self.now())
            await self._applier().post_events(policy, events)
        is_news = self.evictions.refused(policy) != before
        return _earliest(plan.retry_after, FIGURES_SECONDS if is_news else None)

    def _plan_evictions(self, name: str) -> EvictionPlan:
        snapshot = self.cache.snapshot()
        policy = snapshot.policies.get(name)
        known = self.evictions.known(snapshot, self.heartbeats.renewed)
        plan = plan_evictions(snapshot, policy, known) if policy else EvictionPlan()
        self.evictions.keep(name, plan.wanted)
        return plan

    def _seconds_until_report(self, name: str, now: datetime) -> float:
        """For a status that can wait. A clock that was set back makes nothing wait."""
        reported = self._reported.get(name)
        since = (now - reported).total_seconds() if reported else FIGURES_SECONDS
        return FIGURES_SECONDS - since if since >= 0 else 0.0

    def _conclude(self, outcome: "_Outcome", retry_after: float | None) -> None:
        """Raises UnfinishedError for failures. What else is due, after ``retry_after``, does not wait for the
        backoff."""
        if outcome.failures:
            raise UnfinishedError(outcome.failures, retry_after)

    def _applier(self) -> Applier:
        return Applier(self.api, self.cache, self.installation.namespace, self.clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    failures: Sequence[Failure]
    retry_after: float | None
    is_cut: bool
    """Whether more actions might have been performed at once."""


def _earliest(*delays: float | None) -> float | None:
    return min((delay for delay in delays if delay is not None), default=None)
