"""The cluster compared with the model: no pod is lost, and no pod waits that has room."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from chaos.alarms import alarms, needless_writes
from chaos.background import background
from chaos.deadlines import DEADLINES, Deadlines
from chaos.findings import Finding, Findings
from chaos.model.census import Census, idle_cluster, lost_pods
from chaos.model.room import node_with_room
from chaos.quiet import SINK, condition, is_true
from chaos.record import Record
from chaos.world import NAMESPACE, World
from gpushare_core.api.names import DEDICATED_SCHEDULER, UNIT_CHANGE_BLOCKED
from gpushare_core.audit.readers import read_share_node
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.follow import Collection, Listed, follow
from gpushare_core.kube.paths import NODES, POLICIES, SHARE_NODES, pods
from gpushare_core.text.json_object import Json

WRITING_SECONDS = 6.0
SCHEDULERS = ("default-scheduler", DEDICATED_SCHEDULER)
"""Of pods that are to be placed."""


class Expectations:
    """Of one world; ``following`` keeps the census."""

    def __init__(
        self, world: World, *, findings: Findings, record: Record, deadlines: Deadlines = DEADLINES
    ) -> None:
        self._world = world
        self._findings = findings
        self._record = record
        self._deadlines = deadlines
        self._census = Census()

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Sees every pod that comes and goes while entered."""
        async with background(self._follow(), name="who keeps the census of pods", report=self._findings.add):
            yield

    async def no_pod_is_lost(self) -> None:
        """Call it when all is quiet."""
        listed = await self._world.client.get(pods(NAMESPACE))
        known = {item["metadata"]["name"] for item in listed["items"]} | self._world.drained
        lost = [
            lost_pod
            for lost_pod in lost_pods(self._census, self._record.done)
            if lost_pod.split()[1] not in known
        ]
        for sentence in lost:
            self._findings.add(Finding(rule="model", sentence=sentence))

    async def no_pod_waits_that_has_room(self) -> None:
        """Waits for those that have room to run, or reports them."""
        begun = time.monotonic()
        while waiting := await self._waiting_with_room():
            if time.monotonic() - begun > self._deadlines.room:
                for sentence in waiting:
                    self._findings.add(Finding(rule="model", sentence=sentence))
                return
            await asyncio.sleep(0.5)

    async def hardly_a_pod_is_refused(self) -> None:
        """Call it at the end."""
        if sentence := idle_cluster(self._census):
            self._findings.add(Finding(rule="model", sentence=sentence))

    async def nobody_is_alarmed(self) -> None:
        """Waits until our own conditions also say that all books agree. Call it when they do."""
        begun = time.monotonic()
        while told := await self._alarms():
            if time.monotonic() - begun > self._deadlines.alarm:
                for sentence in told:
                    self._findings.add(Finding(rule="alarm", sentence=sentence))
                return
            await asyncio.sleep(0.5)

    async def nobody_writes_for_nothing(self) -> None:
        """Counts what our programs write to the API server while all is quiet."""
        await self._world.api_proxy.writes()
        begun = time.monotonic()
        await asyncio.sleep(WRITING_SECONDS)
        writes, seconds = await self._world.api_proxy.writes(), time.monotonic() - begun
        for sentence in needless_writes(writes, seconds=seconds):
            self._findings.add(Finding(rule="writes", sentence=sentence))

    async def _alarms(self) -> list[str]:
        try:
            policies, share_nodes = await asyncio.gather(
                *(self._world.client.get(path) for path in (POLICIES, SHARE_NODES))
            )
        except (ApiError, UnreachableError) as error:
            return [f"the API server does not answer: {error}"]
        return list(alarms(policies["items"], share_nodes["items"]))

    async def _waiting_with_room(self) -> list[str]:
        try:
            nodes, share_nodes, listed = await asyncio.gather(
                *(self._world.client.get(path) for path in (NODES, SHARE_NODES, pods(NAMESPACE)))
            )
        except (ApiError, UnreachableError):
            return ["the API server does not answer"]
        by_name = {item["metadata"]["name"]: item for item in nodes["items"]}
        open_nodes = (item for item in share_nodes["items"] if not is_true(item, UNIT_CHANGE_BLOCKED))
        books = [read_share_node(open_node) for open_node in open_nodes]
        pairs = [(by_name[book.name], book) for book in books if book.name in by_name and book.name != SINK]
        return [
            f"pod {_name(pod)} waits, and {node} has room for it; the scheduler says:"
            f" {condition(pod, 'PodScheduled').get('message', 'nothing')}"
            for pod in listed["items"]
            if _waits(pod) and (node := node_with_room(pod, pairs))
        ]

    async def _follow(self) -> None:
        async for event in follow(self._world.client, Collection(pods(NAMESPACE))):
            if isinstance(event, Listed):
                self._census.listed(event.items)
            elif event.kind == "DELETED":
                self._census.lose(event.item)
            else:
                self._census.see(event.item)


def _waits(pod: Json) -> bool:
    is_ours = pod["spec"].get("schedulerName") in SCHEDULERS
    return is_ours and not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]


def _name(pod: Json) -> str:
    return str(pod["metadata"]["name"])
