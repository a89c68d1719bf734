"""Performs the operator's writes: the actions of a plan, a policy's status, Events."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import groupby, takewhile
from typing import Protocol

from gpushare_core.api.policy_status import PolicyStatus
from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.text.json_object import Json
from gpushare_operator.action_requests import ActionRequest, Verb, action_requests, changes_known_object
from gpushare_operator.actions import Action, EvictPod, WriteVolcanoConfig, describe
from gpushare_operator.cluster import kinds
from gpushare_operator.cluster.cache import Cache
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.readers.volcano import read_volcano_config
from gpushare_operator.policies.wording import DEFECT

CONCURRENT_CALLS = 32
"""As many as the client has connections: thousands of nodes may need a label."""

MAX_LINES = 50
"""Lines at level info for one kind of action in one round. A line for each of thousands of labels took a
seventh of the time of the labels themselves."""

_log = logging.getLogger(__name__)


class Writer(Protocol):
    """The calls of ``KubeClient`` that change something."""

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
    """Whether the operator itself is wrong, not the API server's answer."""

    @property
    def is_outdated(self) -> bool:
        """Whether only the snapshot was old, and nothing is wrong: a node was deleted meanwhile, say."""
        if not isinstance(self.error, ApiError):
            return False
        return self.error.is_conflict or (self.error.is_not_found and changes_known_object(self.action))

    @property
    def is_protected(self) -> bool:
        """Whether a PodDisruptionBudget protects the pod now, or the API server is too busy."""
        if not isinstance(self.error, ApiError):
            return False
        return isinstance(self.action, EvictPod) and self.error.status == HTTPStatus.TOO_MANY_REQUESTS

    def __str__(self) -> str:
        why = f"{DEFECT}: {self.error!r}" if self.is_defect else str(self.error)
        return f"{describe(self.action)}: {why}"


@dataclass(slots=True)
class Performed:
    tried: list[Action] = field(default_factory=list)
    """For the others there was no time."""
    failures: list[Failure] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Applier:
    """Performs actions. Answers go into the cache at once, so that the next plan knows them."""

    writer: Writer
    cache: Cache
    namespace: str
    clock: Callable[[], float] = time.monotonic

    async def perform(self, actions: Iterable[Action], *, seconds: float = math.inf) -> Performed:
        """Tries every action, those of one kind at the same time. After ``seconds`` none is begun."""
        performed, deadline = Performed(), self.clock() + seconds
        for kind, group in groupby(actions, key=type):
            alike = list(group)
            level = logging.INFO if len(alike) <= MAX_LINES else logging.DEBUG
            before = len(performed.tried) - len(performed.failures)
            waiting = takewhile(lambda _: self.clock() < deadline, alike)
            await self._attempt_all(waiting, performed, level)
            if level == logging.DEBUG:
                done = len(performed.tried) - len(performed.failures) - before
                ends = f"{describe(alike[0])}; {describe(alike[-1])}"
                _log.info("%s done %d times, first and last: %s", kind.__name__, done, ends)
        return performed

    async def _attempt_all(self, actions: Iterator[Action], performed: Performed, level: int) -> None:
        async def attempt_next() -> None:
            for action in actions:
                performed.tried.append(action)
                if failed := await self._attempt(action, level):
                    performed.failures.append(failed)

        await asyncio.gather(*(attempt_next() for _ in range(CONCURRENT_CALLS)))

    async def write_status(self, policy: PolicyObject, status: PolicyStatus) -> bool:
        """Returns whether the policy was still there."""
        path = f"{paths.POLICIES}/{policy.name}/status"
        body = {"metadata": {"uid": policy.uid}, "status": status.to_json()}
        try:
            self.cache.observe(kinds.POLICIES, await self.writer.merge(path, body))
        except ApiError as error:
            if not error.is_not_found:
                raise
            return False
        return True

    async def post_events(self, policy: str, events: Iterable[Json]) -> None:
        """Posts Events for ``policy``, once each: they are a courtesy."""
        for event in events:
            try:
                await self.writer.create(paths.events(event["metadata"]["namespace"]), event)
            except ApiError as error:
                if error.is_conflict:
                    continue  # It was posted before the status could be written.
                _log.warning("cannot post an event: %s", error, extra={"policy": policy})

    async def _attempt(self, action: Action, level: int) -> Failure | None:
        """``level``: of the line in the log for a success."""
        try:
            await self._do(action)
        except (ApiError, UnreachableError) as error:
            return Failure(action, error)
        except Exception as error:
            # A defect must keep neither other actions from being tried, nor the status from naming it.
            _log.exception("a defect of the operator: cannot %s", describe(action), extra=_log_keys(action))
            return Failure(action, error, is_defect=True)
        if _log.isEnabledFor(level):
            _log.log(level, "%s", describe(action), extra=_log_keys(action))
        return None

    async def _do(self, action: Action) -> None:
        if isinstance(action, WriteVolcanoConfig):
            await self._write_volcano_config(action)
            return
        for request in action_requests(action, self.namespace):
            await self._send(request)

    async def _send(self, request: ActionRequest) -> None:
        try:
            if request.verb is Verb.DELETE:
                await self.writer.delete(request.path, uid=request.uid)
                return
            calls = {
                Verb.APPLY: self.writer.apply,
                Verb.MERGE: self.writer.merge,
                Verb.CREATE: self.writer.create,
            }
            answer = await calls[request.verb](request.path, request.body)
            if request.kind is not None:
                self.cache.observe(request.kind, answer)
        except ApiError as error:
            is_gone = request.verb is Verb.DELETE and error.is_not_found
            if not is_gone and not (request.may_exist and error.is_conflict):
                raise

    async def _write_volcano_config(self, action: WriteVolcanoConfig) -> None:
        at = action.location
        metadata = {"uid": action.uid, "resourceVersion": action.resource_version}
        path = paths.config_map_path(at.namespace, at.config_map)
        try:
            body = await self.writer.merge(path, {"metadata": metadata, "data": {at.key: action.text}})
        except ApiError as error:
            # No watch follows it: where it has changed it has to be read anew. Where the API server refuses
            # the text the action has to be planned again: else the reason would not reach people.
            if error.is_conflict or error.is_not_found:
                self.cache.forget_volcano_config(at)
            raise
        self.cache.observe_volcano_config(at, read_volcano_config(body, at.key))


def _log_keys(action: Action) -> dict[str, str]:
    """Returns keys for structured logs."""
    node, policy = getattr(action, "node", ""), getattr(action, "policy", "")
    return {key: value for key, value in (("node", node), ("policy", policy)) if value}
