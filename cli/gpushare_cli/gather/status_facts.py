"""Reads what there is to say whether all is well; what cannot be read is said, and the rest goes on."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from gpushare_cli.decide.objects.installed import InstalledDeployment, InstalledLease, ProgramPod
from gpushare_cli.decide.objects.node_state import NodeState, NodeStateReader
from gpushare_cli.decide.objects.pod_event import EVICTED_FOR_MEMORY, ObservedEvent
from gpushare_cli.decide.objects.policy import ObservedPolicy
from gpushare_cli.decide.objects.unplaced_pod import UnplacedPod
from gpushare_cli.decide.problems import facts as parts
from gpushare_cli.decide.problems.facts import StatusFacts, UnreadPart
from gpushare_cli.decide.problems.installation import is_operator_at_work
from gpushare_cli.errors import CannotLookError, not_known, not_reached
from gpushare_cli.gather.lists import ALL_PODS, CACHED, PENDING, InScope, PodScope
from gpushare_cli.output.progress import ProgressLine
from gpushare_core.api.names import CALLS_LEASE, COMPONENT_LABEL, NAMESPACE
from gpushare_core.api.plugin_heartbeat import COMPONENT as HEARTBEAT
from gpushare_core.api.plugin_heartbeat import PREFIX
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import (
    DEPLOYMENTS,
    POLICIES,
    SERVER_VERSION,
    SHARE_NODES,
    lease_path,
    leases,
    pods,
)
from gpushare_core.kube.request import ApiRequest
from gpushare_core.kube.response import ListResponse
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import UNREADABLE_JSON

EVENTS = "/apis/events.k8s.io/v1/events"
OPERATOR_LEASE = "gpushare-operator"
OPERATOR = f"app.kubernetes.io/name=gpushare,{COMPONENT_LABEL}=operator"
PROGRAMS = f"{COMPONENT_LABEL} in (operator,extender,scheduler)"
"""Not the plugins: what they are like their GPUShareNodes say."""

T = TypeVar("T")


class ServerVersion(Struct, rename="camel"):
    git_version: str = ""


@dataclass(slots=True)
class PartReader:
    """Reads one part after the other; a part that the API server refuses is noted."""

    client: KubeClient
    unread: list[UnreadPart] = field(default_factory=list)

    async def list(self, part: str, path: str, shape: type[T], **selectors: str) -> Sequence[T] | None:
        """Returns None where the API server knows no such kind, and nothing where it refuses.

        Raises:
            CannotLookError: there is no API server, or it does not know who asks.
        """
        request = ApiRequest(path=path, params={**CACHED, **selectors})
        response = await self._read(part, request, ListResponse[Raw])
        if response is None:
            return () if self._is_unread(part) else None
        return self.decoded(part, response.items or (), lambda raw: msgspec.json.decode(raw, type=shape))

    def decoded(self, part: str, raws: Iterable[Raw], decode: Callable[[Raw], T]) -> Sequence[T]:
        """Returns the objects of ``part`` that can be decoded; of the others it is noted why not."""
        read: list[T] = []
        errors: list[Exception] = []
        for raw in raws:
            try:
                read.append(decode(raw))
            except UNREADABLE_JSON as error:
                errors.append(error)
        if errors:
            some = "one of them is" if len(errors) == 1 else f"{len(errors):,} of them are"
            self.unread.append(UnreadPart(part=part, reason=f"{some} not as expected: {errors[0]}"))
        return read

    async def one(self, part: str, path: str, shape: type[T]) -> T | None:
        """Returns None where there is no such object, or it cannot be read. Raises as ``list``."""
        return await self._read(part, ApiRequest(path=path), shape)

    async def _read(self, part: str, request: ApiRequest, shape: type[T]) -> T | None:
        try:
            return await self.client.read(request, shape=shape)
        except (ApiError, UnreachableError) as error:
            self.note(part, error)
            return None

    def note(self, part: str, error: ApiError | UnreachableError) -> None:
        """Notes that ``part`` could not be read, unless there is no such thing. Raises as ``list``."""
        if isinstance(error, UnreachableError):
            raise CannotLookError(not_reached(error)) from error
        if error.status == HTTPStatus.UNAUTHORIZED:
            raise CannotLookError(not_known(error.message or error)) from error
        if not error.is_not_found:
            self.unread.append(UnreadPart(part=part, reason=error.message or str(error)))

    def _is_unread(self, part: str) -> bool:
        return any(unread.part == part for unread in self.unread)


async def read_status_facts(
    client: KubeClient,
    *,
    now: datetime,
    progress: ProgressLine,
    scope: PodScope = ALL_PODS,
    share_nodes: Collection[Raw] | None = None,
    pending: InScope[list[Raw]] | None = None,
) -> StatusFacts:
    """``share_nodes``, ``pending``: GPUShareNodes, and pods in phase Pending, that are known already; None:
    they are read.

    Raises ``CannotLookError`` where there is no API server.
    """
    progress.doing("reading policies, GPUShareNodes and pods that wait")
    reader = PartReader(client)
    facts, waiting = await asyncio.gather(
        _read_facts(reader, now, share_nodes),
        _waiting(reader, scope, pending),
    )
    facts, evictions = await asyncio.gather(_with_heartbeats(reader, facts), _evictions(reader, facts))
    return replace(facts, waiting=waiting, evictions=evictions, unread=reader.unread)


async def _waiting(
    reader: PartReader, scope: PodScope, known: InScope[list[Raw]] | None
) -> Sequence[UnplacedPod]:
    async def read(path: str) -> list[Raw]:
        request = ApiRequest(path=path, params={**CACHED, "fieldSelector": PENDING})
        return (await reader.client.read(request, shape=ListResponse[Raw])).items or []

    try:
        found, refused = known or await scope.read(read)
    except (ApiError, UnreachableError) as error:
        reader.note(parts.PENDING_PODS, error)
        return ()
    if refused:
        reader.note(parts.OTHERS_PENDING_PODS, refused)
    return reader.decoded(parts.PENDING_PODS, found, lambda raw: msgspec.json.decode(raw, type=UnplacedPod))


async def read_version_facts(client: KubeClient, *, now: datetime, progress: ProgressLine) -> StatusFacts:
    """Without pods that wait. Raises as ``read_status_facts``."""
    progress.doing("reading versions")
    reader = PartReader(client)
    return replace(await _read_facts(reader, now), unread=reader.unread)


async def _read_facts(
    reader: PartReader, now: datetime, share_nodes: Collection[Raw] | None = None
) -> StatusFacts:
    policies, nodes, kubernetes, deployments = await asyncio.gather(
        reader.list(parts.POLICIES, POLICIES, ObservedPolicy),
        _node_states(reader, share_nodes),
        reader.one(parts.KUBERNETES, SERVER_VERSION, ServerVersion),
        reader.list(parts.OPERATOR_DEPLOYMENT, DEPLOYMENTS, InstalledDeployment, labelSelector=OPERATOR),
    )
    deployment = next(iter(deployments or ()), None)
    where = deployment.metadata.namespace if deployment else NAMESPACE
    lease, calls, running = await asyncio.gather(
        reader.one(parts.OPERATOR_LEASE, lease_path(where, OPERATOR_LEASE), InstalledLease),
        reader.one(parts.CALLS, lease_path(where, CALLS_LEASE), InstalledLease),
        reader.list(parts.PROGRAM_PODS, pods(where), ProgramPod, labelSelector=PROGRAMS),
    )
    return StatusFacts(
        now=now,
        client_version=VERSION,
        namespace=where,
        policies=policies,
        nodes=nodes,
        deployment=deployment,
        lease=lease,
        calls=calls,
        pods=running or (),
        kubernetes=kubernetes.git_version if kubernetes else "",
    )


async def _node_states(reader: PartReader, share_nodes: Collection[Raw] | None) -> Sequence[NodeState] | None:
    raws = await reader.list(parts.SHARE_NODES, SHARE_NODES, Raw) if share_nodes is None else share_nodes
    return None if raws is None else reader.decoded(parts.SHARE_NODES, raws, NodeStateReader().read)


async def _evictions(reader: PartReader, facts: StatusFacts) -> Sequence[ObservedEvent]:
    """The API server looks through all Events for them: it is asked only where pods are evicted at all."""
    if not any(node.spec.isolation.evicts for node in facts.nodes or ()):
        return ()
    selector = f"reason={EVICTED_FOR_MEMORY}"
    return await reader.list(parts.EVICTIONS, EVENTS, ObservedEvent, fieldSelector=selector) or ()


async def _with_heartbeats(reader: PartReader, facts: StatusFacts) -> StatusFacts:
    if is_operator_at_work(facts) or not facts.nodes:
        return facts
    selector = f"{COMPONENT_LABEL}={HEARTBEAT}"
    found = await reader.list(
        parts.HEARTBEATS, leases(facts.namespace), InstalledLease, labelSelector=selector
    )
    heartbeats = {lease.metadata.name.removeprefix(PREFIX): lease for lease in found or ()}
    return replace(facts, heartbeats=heartbeats)
