"""The only writes: actions of a plan, a policy's status, Events."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from itertools import groupby, takewhile
from typing import Any, Protocol

from gpushare_core.api.events import CLUSTER_NAMESPACE
from gpushare_core.api.names import API_VERSION, NODE_KIND
from gpushare_core.api.policy_status import PolicyStatus
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.text.json_object import Json
from gpushare_core.text.printable import MESSAGE_BYTES, printable
from gpushare_operator.actions import (
    Action,
    ApplyDaemonSet,
    ApplyDeployment,
    ApplyShareNode,
    ApplyVolcanoBackup,
    ClearCapacity,
    CreateJob,
    DeleteDaemonSet,
    DeleteDeployment,
    DeleteJob,
    DeleteShareNode,
    DeleteVolcanoBackup,
    DoubtShareNode,
    LabelNode,
    MarkPolicy,
    RecordResult,
    RemoveStartupTaint,
    SetCounts,
    SetFinalizers,
    WriteVolcanoConfig,
    describe,
)
from gpushare_operator.cluster import kinds
from gpushare_operator.cluster.cache import Cache
from gpushare_operator.cluster.labels import COMPARE_LABEL, RESULT_ANNOTATION
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.readers import read_volcano_config
from gpushare_operator.desired.pod_template import to_be_compared
from gpushare_operator.desired.share_nodes import share_node_patch
from gpushare_operator.policies.wording import DEFECT

CONCURRENT_CALLS = 32
"""Thousands of nodes may need a label. As many as the client has connections."""

MAX_LINES = 50
"""Of one kind of action in one round, in a log of level info. Of thousands of labels each was a line, for a
seventh of what they cost."""

_log = logging.getLogger(__name__)


class Writer(Protocol):
    """The calls that change something; ``KubeClient`` has them."""

    async def apply(self, path: str, body: Json) -> Json: ...

    async def merge(self, path: str, body: Json) -> Json: ...

    async def create(self, path: str, body: Json) -> Json: ...

    async def delete(self, path: str, *, uid: str = "") -> Json: ...


@dataclass(frozen=True, slots=True)
class Failure:
    """An action that did not succeed."""

    action: Action
    error: Exception
    is_defect: bool = False
    """Whether the error is one of ours: nobody has answered."""

    @property
    def is_outdated(self) -> bool:
        """Returns whether the snapshot was old: then nothing is wrong. A node that went meanwhile is one."""
        if not isinstance(self.error, ApiError):
            return False
        return self.error.is_conflict or (self.error.is_not_found and _is_of_known_object(self.action))

    def __str__(self) -> str:
        why = f"{DEFECT}: {self.error!r}" if self.is_defect else str(self.error)
        return f"{describe(self.action)}: {why}"


@dataclass(slots=True)
class Performed:
    """What came of actions."""

    tried: list[Action] = field(default_factory=list)
    """Of the others there was no time for."""
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Applier:
    """What the API server answers goes into the cache at once: the next plan knows of it."""

    writer: Writer
    cache: Cache
    namespace: str
    clock: Callable[[], float] = time.monotonic

    async def perform(self, actions: Iterable[Action], *, seconds: float = math.inf) -> Performed:
        """Tries every action, those of one kind at the same time; after so many ``seconds`` none is begun."""
        performed, ends = Performed(), self.clock() + seconds
        for kind, group in groupby(actions, key=type):
            alike = list(group)
            level = logging.INFO if len(alike) <= MAX_LINES else logging.DEBUG
            before = len(performed.tried) - len(performed.failures)
            waiting = takewhile(lambda _: self.clock() < ends, alike)
            await self._attempt_all(waiting, performed, level)
            if level == logging.DEBUG:
                done = len(performed.tried) - len(performed.failures) - before
                _log.info("%d times %s, first and last: %s", done, kind.__name__, _ends(alike))
        return performed

    async def _attempt_all(self, actions: Iterator[Action], performed: Performed, level: int) -> None:
        async def attempt_next() -> None:
            for action in actions:
                performed.tried.append(action)
                if failed := await self._attempt(action, level):
                    performed.failures.append(failed)

        await asyncio.gather(*(attempt_next() for _ in range(CONCURRENT_CALLS)))

    async def write_status(self, policy: PolicyObject, status: PolicyStatus) -> bool:
        """Returns whether the policy was there to take it."""
        path = f"{paths.POLICIES}/{policy.name}/status"
        body = {"metadata": {"uid": policy.uid}, "status": status.to_json()}
        try:
            await self._keep(kinds.POLICIES, self.writer.merge(path, body))
        except ApiError as error:
            if not error.is_not_found:
                raise
            return False
        return True

    async def post_events(self, policy: str, events: Iterable[Json]) -> None:
        """Posts ``events`` about ``policy``: a courtesy, so one that cannot be posted is not tried again."""
        for event in events:
            try:
                await self.writer.create(paths.events(CLUSTER_NAMESPACE), event)
            except ApiError as error:
                if error.is_conflict:
                    continue  # It was posted before the status could be written.
                _log.warning("cannot post an event: %s", error, extra={"policy": policy})

    async def _attempt(self, action: Action, level: int) -> Failure | None:
        """``level``: of the log line that says what was done."""
        try:
            await self._do(action)
        except (ApiError, UnreachableError) as error:
            return Failure(action, error)
        except Exception as error:
            # It must keep neither other objects from what is due to them, nor the status from saying so.
            _log.exception("a defect, trying to %s", describe(action), extra=_log_keys(action))
            return Failure(action, error, is_defect=True)
        if _log.isEnabledFor(level):
            _log.log(level, "%s", describe(action), extra=_log_keys(action))
        return None

    @singledispatchmethod
    async def _do(self, action: Any) -> None:
        raise TypeError(f"no way to perform {action!r}")

    @_do.register
    async def _(self, action: SetFinalizers) -> None:
        metadata = {"finalizers": list(action.finalizers), "resourceVersion": action.resource_version}
        answer = self.writer.merge(f"{paths.POLICIES}/{action.policy}", {"metadata": metadata})
        await self._keep(kinds.POLICIES, answer)

    @_do.register
    async def _(self, action: ApplyShareNode) -> None:
        # Nobody else writes its spec, so who owns which field says nothing new: server-side apply, which
        # costs the API server half as much again, is not needed.
        if action.uid:
            patch = share_node_patch(action.body, action.uid)
            answer = self.writer.merge(f"{paths.SHARE_NODES}/{action.node}", patch)
        else:
            answer = self.writer.create(paths.SHARE_NODES, action.body)
        await self._keep(kinds.SHARE_NODES, answer)

    @_do.register
    async def _(self, action: DeleteShareNode) -> None:
        await self._delete(f"{paths.SHARE_NODES}/{action.node}", action.uid)

    @_do.register
    async def _(self, action: DoubtShareNode) -> None:
        # By server-side apply: a merge would replace the other conditions, too, by what was known of them.
        conditions = [
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": printable(condition.message, most_bytes=MESSAGE_BYTES),
                "lastTransitionTime": rfc3339(action.since),
            }
            for condition in action.conditions
        ]
        body = {
            "apiVersion": API_VERSION,
            "kind": NODE_KIND,
            "metadata": {"name": action.node, "uid": action.uid},
            "status": {"conditions": conditions},
        }
        answer = self.writer.apply(f"{paths.SHARE_NODES}/{action.node}/status", body)
        await self._keep(kinds.SHARE_NODES, answer)

    @_do.register
    async def _(self, action: LabelNode) -> None:
        # The uid makes sure that a new node of the same name is not taken for the old one.
        metadata = {"uid": action.uid, "labels": dict(action.labels)}
        if action.annotations:
            metadata["annotations"] = dict(action.annotations)
        answer = self.writer.merge(f"{paths.NODES}/{action.node}", {"metadata": metadata})
        await self._keep(kinds.NODES, answer)

    @_do.register
    async def _(self, action: MarkPolicy) -> None:
        metadata = {
            "uid": action.uid,
            "labels": dict(action.labels),
            "annotations": dict(action.annotations),
        }
        answer = self.writer.merge(f"{paths.POLICIES}/{action.policy}", {"metadata": metadata})
        await self._keep(kinds.POLICIES, answer)

    @_do.register
    async def _(self, action: ApplyDaemonSet) -> None:
        path = f"{paths.daemon_sets(self.namespace)}/{action.name}"
        await self._apply_workload(kinds.DAEMON_SETS, path, action.body)

    @_do.register
    async def _(self, action: DeleteDaemonSet) -> None:
        await self._delete(f"{paths.daemon_sets(self.namespace)}/{action.name}", action.uid)

    @_do.register
    async def _(self, action: ApplyDeployment) -> None:
        path = paths.deployment_path(self.namespace, action.name)
        await self._apply_workload(kinds.DEPLOYMENTS, path, action.body)

    @_do.register
    async def _(self, action: DeleteDeployment) -> None:
        await self._delete(paths.deployment_path(self.namespace, action.name), action.uid)

    @_do.register
    async def _(self, action: CreateJob) -> None:
        answer = self.writer.create(paths.jobs(self.namespace), action.body)
        await _tolerate(_is_conflict, self._keep(kinds.JOBS, answer))

    @_do.register
    async def _(self, action: RecordResult) -> None:
        metadata = {"uid": action.uid, "annotations": {RESULT_ANNOTATION: str(action.exit_code)}}
        path = f"{paths.jobs(self.namespace)}/{action.name}"
        await self._keep(kinds.JOBS, self.writer.merge(path, {"metadata": metadata}))

    @_do.register
    async def _(self, action: DeleteJob) -> None:
        await self._delete(f"{paths.jobs(self.namespace)}/{action.name}", action.uid)

    @_do.register
    async def _(self, action: ApplyVolcanoBackup) -> None:
        path = paths.config_map_path(self.namespace, action.name)
        await self._keep(kinds.VOLCANO_BACKUPS, self.writer.apply(path, action.body))

    @_do.register
    async def _(self, action: DeleteVolcanoBackup) -> None:
        await self._delete(paths.config_map_path(self.namespace, action.name), action.uid)

    @_do.register
    async def _(self, action: WriteVolcanoConfig) -> None:
        at = action.location
        metadata = {"uid": action.uid, "resourceVersion": action.resource_version}
        path = paths.config_map_path(at.namespace, at.config_map)
        try:
            body = await self.writer.merge(path, {"metadata": metadata, "data": {at.key: action.text}})
        except ApiError as error:
            # Nobody follows it: it has to be read anew where it has changed. Where it was refused for what it
            # is, it is still asked for: else the reason would not reach people.
            if error.is_conflict or error.is_not_found:
                self.cache.forget_volcano_config(at)
            raise
        self.cache.observe_volcano_config(at, read_volcano_config(body, at.key))

    @_do.register
    async def _(self, action: ClearCapacity) -> None:
        await self._write_capacity(action, dict.fromkeys(action.resources))

    @_do.register
    async def _(self, action: SetCounts) -> None:
        await self._write_capacity(action, {name: str(count) for name, count in action.counts.items()})

    @_do.register
    async def _(self, action: RemoveStartupTaint) -> None:
        metadata = {"uid": action.uid, "resourceVersion": action.resource_version}
        body = {"metadata": metadata, "spec": {"taints": list(action.others)}}
        await self._keep(kinds.NODES, self.writer.merge(f"{paths.NODES}/{action.node}", body))

    async def _apply_workload(self, kind: kinds.Kind[Any], path: str, body: Json) -> None:
        """What bears the label of the first write nobody can change while the operator's Deployment is not
        there, the garbage collector included: so the label is taken off at once. By a merge, for an apply
        leaves what somebody else has put there, too."""
        await self._keep(kind, self.writer.apply(path, to_be_compared(body)))
        await self._keep(kind, self.writer.merge(path, {"metadata": {"labels": {COMPARE_LABEL: None}}}))

    async def _write_capacity(
        self, action: ClearCapacity | SetCounts, amounts: Mapping[str, str | None]
    ) -> None:
        body = {"metadata": {"uid": action.uid}, "status": {"capacity": amounts, "allocatable": amounts}}
        await self._keep(kinds.NODES, self.writer.merge(f"{paths.NODES}/{action.node}/status", body))

    async def _delete(self, path: str, uid: str) -> None:
        await _tolerate(_is_not_found, self.writer.delete(path, uid=uid))

    async def _keep(self, kind: kinds.Kind[Any], answer: Awaitable[Json]) -> None:
        self.cache.observe(kind, await answer)


async def _tolerate(tolerated: Callable[[ApiError], bool], call: Awaitable[Any]) -> None:
    """Awaits ``call``; a tolerated error says that all is as desired already."""
    try:
        await call
    except ApiError as error:
        if not tolerated(error):
            raise


def _ends(actions: Sequence[Action]) -> str:
    return f"{describe(actions[0])}; {describe(actions[-1])}"


def _is_of_known_object(action: Action) -> bool:
    """Returns whether it changes an object that was there, which only its being gone can keep from it."""
    match action:
        case ApplyShareNode():
            return bool(action.uid)
        case (
            LabelNode()
            | ClearCapacity()
            | SetCounts()
            | RemoveStartupTaint()
            | SetFinalizers()
            | DoubtShareNode()
            | RecordResult()
            | MarkPolicy()
        ):
            return True
        case _:
            return False


def _is_conflict(error: ApiError) -> bool:
    return error.is_conflict


def _is_not_found(error: ApiError) -> bool:
    return error.is_not_found


def _log_keys(action: Action) -> dict[str, str]:
    """Returns keys for structured logs."""
    node, policy = getattr(action, "node", ""), getattr(action, "policy", "")
    return {key: value for key, value in (("node", node), ("policy", policy)) if value}
