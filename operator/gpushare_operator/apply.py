"""Performing plans."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import singledispatchmethod
from itertools import groupby
from typing import Any, Protocol

from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_operator import paths
from gpushare_operator.cluster.cache import Inventory, Kind
from gpushare_operator.decide.actions import (
    Action,
    ApplyDaemonSet,
    ApplyShareNode,
    ClearCapacity,
    CreateJob,
    DeleteDaemonSet,
    DeleteJob,
    DeleteShareNode,
    LabelNode,
    SetFinalizers,
)

Json = Any

CONCURRENT = 16
"""Calls at a time: thousands of nodes may want a label."""

_log = logging.getLogger(__name__)


class Writer(Protocol):
    """The calls that change something."""

    async def apply(self, path: str, body: Json) -> Json: ...

    async def merge(self, path: str, body: Json) -> Json: ...

    async def create(self, path: str, body: Json) -> Json: ...

    async def delete(self, path: str, *, uid: str) -> Json: ...


@dataclass(frozen=True, slots=True)
class Failure:
    """An action that did not succeed."""

    action: Action
    error: Exception

    @property
    def is_worth_telling(self) -> bool:
        """A conflict only says that the snapshot was old."""
        return not (isinstance(self.error, ApiError) and self.error.is_conflict)

    def __str__(self) -> str:
        return f"{describe(self.action)}: {self.error}"


@dataclass(frozen=True, slots=True)
class Applier:
    """What the API server answers goes into the inventory at once: the next plan knows of it."""

    writer: Writer
    inventory: Inventory
    namespace: str

    async def perform(self, actions: Iterable[Action]) -> list[Failure]:
        """Try every action, those of one kind at the same time; returns what failed."""
        failures: list[Failure] = []
        limit = asyncio.Semaphore(CONCURRENT)
        for _, group in groupby(actions, key=type):
            tried = await asyncio.gather(*(self._attempt(action, limit) for action in group))
            failures.extend(failure for failure in tried if failure)
        return failures

    async def _attempt(self, action: Action, limit: asyncio.Semaphore) -> Failure | None:
        async with limit:
            try:
                await self._do(action)
            except (ApiError, UnreachableError) as error:
                return Failure(action, error)
        _log.info("%s", describe(action), extra=_keys(action))
        return None

    @singledispatchmethod
    async def _do(self, action: Any) -> None:
        raise TypeError(f"no way to perform {action!r}")

    @_do.register
    async def _(self, action: SetFinalizers) -> None:
        metadata = {"finalizers": list(action.finalizers), "resourceVersion": action.resource_version}
        await self._keep(
            Kind.POLICY, self.writer.merge(f"{paths.POLICIES}/{action.policy}", {"metadata": metadata})
        )

    @_do.register
    async def _(self, action: ApplyShareNode) -> None:
        await self._keep(
            Kind.SHARE_NODE, self.writer.apply(f"{paths.SHARE_NODES}/{action.node}", action.body)
        )

    @_do.register
    async def _(self, action: DeleteShareNode) -> None:
        await self._delete(f"{paths.SHARE_NODES}/{action.node}", action.uid)

    @_do.register
    async def _(self, action: LabelNode) -> None:
        # The uid makes sure that a new node of the same name is not taken for the old one.
        metadata = {"uid": action.uid, "labels": dict(action.labels)}
        await self._keep(Kind.NODE, self.writer.merge(f"{paths.NODES}/{action.node}", {"metadata": metadata}))

    @_do.register
    async def _(self, action: ApplyDaemonSet) -> None:
        path = f"{paths.daemon_sets(self.namespace)}/{action.name}"
        await self._keep(Kind.DAEMON_SET, self.writer.apply(path, action.body))

    @_do.register
    async def _(self, action: DeleteDaemonSet) -> None:
        await self._delete(f"{paths.daemon_sets(self.namespace)}/{action.name}", action.uid)

    @_do.register
    async def _(self, action: CreateJob) -> None:
        await _tolerate(_is_conflict, self._keep_job(action))

    async def _keep_job(self, action: CreateJob) -> None:
        await self._keep(Kind.JOB, self.writer.create(paths.jobs(self.namespace), action.body))

    @_do.register
    async def _(self, action: DeleteJob) -> None:
        await self._delete(f"{paths.jobs(self.namespace)}/{action.name}", action.uid)

    @_do.register
    async def _(self, action: ClearCapacity) -> None:
        nothing = dict.fromkeys(action.resources)
        body = {"metadata": {"uid": action.uid}, "status": {"capacity": nothing, "allocatable": nothing}}
        await self._keep(Kind.NODE, self.writer.merge(f"{paths.NODES}/{action.node}/status", body))

    async def _delete(self, path: str, uid: str) -> None:
        await _tolerate(_is_not_found, self.writer.delete(path, uid=uid))

    async def _keep(self, kind: Kind, answer: Awaitable[Json]) -> None:
        self.inventory.observe(kind, await answer)


async def _tolerate(tolerated: Callable[[ApiError], bool], call: Awaitable[Any]) -> None:
    """What was wanted is so already."""
    try:
        await call
    except ApiError as error:
        if not tolerated(error):
            raise


def _is_conflict(error: ApiError) -> bool:
    return error.is_conflict


def _is_not_found(error: ApiError) -> bool:
    return error.is_not_found


def describe(action: Action) -> str:
    """For logs and conditions."""
    match action:
        case SetFinalizers():
            return f"set finalizers of policy {action.policy} to {list(action.finalizers)}"
        case ApplyShareNode() | DeleteShareNode():
            return f"{_verb(action)} GPUShareNode {action.node}"
        case LabelNode():
            return f"label node {action.node} {dict(action.labels)}"
        case ClearCapacity():
            return f"take {', '.join(action.resources)} out of the status of node {action.node}"
        case ApplyDaemonSet() | DeleteDaemonSet():
            return f"{_verb(action)} DaemonSet {action.name}"
        case CreateJob() | DeleteJob():
            return f"{_verb(action)} Job {action.name}"


def _verb(action: Action) -> str:
    name = type(action).__name__
    return next(verb for verb in ("apply", "delete", "create") if name.lower().startswith(verb))


def _keys(action: Action) -> dict[str, str]:
    """For structured logs."""
    node, policy = getattr(action, "node", ""), getattr(action, "policy", "")
    return {key: value for key, value in (("node", node), ("policy", policy)) if value}
