"""kube-scheduler with the plugin: the real Go engine decides, in a process of its own that has no clock."""

import asyncio
import json
import random
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.simulation.network import SimulatedClient
from tests.simulation.virtual_time import now, seconds
from tests.simulation.watch_lag import WatchLag

from gpushare_core.api.names import NAMESPACE
from gpushare_core.audit.readers import named_pods, read_ledger
from gpushare_core.audit.records import LedgerRecord, PodKey
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.follow import Collection, Follower, Listed, follow
from gpushare_core.kube.lease_holder import NotHeldError
from gpushare_core.kube.paths import PODS, SHARE_NODES
from gpushare_core.scheduling.objects.pod import PodVersion
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.text.json_object import Json
from gpushare_extender.bind.binding import Binding
from gpushare_extender.bind.binding_write import BindingWrite, BoundBeforeError, NotBoundError
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.bind.lease import BindLease

ACTIVE = "status.phase!=Succeeded,status.phase!=Failed"
"""The pods that kube-scheduler watches."""
SEND_SECONDS = 8.0
"""How long a Binding is sent again: ``sendTime`` of scheduler/internal/bindcall."""
CONFIRM_SECONDS = 10.0
"""``confirmTime`` of scheduler/internal/plugin."""
LAG = 0.02
"""Seconds by which the scheduler's view of pods and the plugin's are apart, at most."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class GoEngines:
    """The program scheduler/internal/simulation/serve. One serves all schedulers of all runs."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def ask(self, engine: str, do: str, **what: Any) -> Json:
        """Takes no time of the simulation. Raises ``RuntimeError`` where the program has ended."""
        at = round((now() - EPOCH).total_seconds() * 1000)
        message = json.dumps({"engine": engine, "at": at, "do": do, **what})
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin
        assert stdout
        assert stderr
        with suppress(BrokenPipeError):
            stdin.write(message + "\n")
            stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise RuntimeError(f"the Go engine has ended at {message}: {stderr.read()}")
        decoded: Json = json.loads(answer)
        return decoded

    def close(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait(10)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()


@dataclass(slots=True)
class SimulatedPluginEngine:
    """One kube-scheduler's plugin, with what keeps its engine true. Bindings are written as by the extender,
    of which scheduler/internal/bindcall is a translation."""

    client: SimulatedClient
    identity: str
    engines: GoEngines
    dice: random.Random
    tasks: list["asyncio.Task[Any]"] = field(default_factory=list)
    starts: int = 0
    _listed: set[str] = field(default_factory=set)
    _lease: BindLease = field(init=False)
    _binding: set["asyncio.Task[str]"] = field(default_factory=set)
    _known: dict[str, Json] = field(default_factory=dict)
    """UID -> pod, as the watch has shown it last."""
    _reported: dict[str, PodKey] = field(default_factory=dict)
    """UID -> pod that some GPUShareNode has named."""

    def start(self) -> None:
        if self.tasks:
            return
        self.starts += 1
        self._listed, self._known, self._binding = set(), {}, set()
        self._ask("start")
        timing = BindTiming(clock=seconds, now=now, sleep=asyncio.sleep)
        identity = f"{self.identity}-{self.starts}"
        self._lease = BindLease(self.client, NAMESPACE, identity, self._take_over, timing=timing)
        self._lease.in_use = lambda: bool(self._binding)
        plugin, scheduler = WatchLag(self.dice, LAG), WatchLag(self.dice, LAG)
        parts = (
            self._watch_pods(plugin, scheduler),
            self._watch_share_nodes(),
            plugin.run(),
            scheduler.run(),
            self._lease.keep(),
            self._expire(),
            self._confirm(),
        )
        self.tasks = [asyncio.ensure_future(part) for part in parts]

    async def kill(self) -> None:
        """As by SIGKILL: Bindings on their way still arrive."""
        self.check()
        tasks, self.tasks = [*self.tasks, *self._binding], []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    @property
    def is_ready(self) -> bool:
        return bool(self.tasks) and self._listed == {PODS, SHARE_NODES}

    def check(self) -> None:
        """Raises what ended one of its parts, if it ended by itself."""
        for task in self.tasks:
            if task.done():
                task.result()

    def records(self) -> Mapping[str, LedgerRecord]:
        """Returns what it counts, by node."""
        return read_ledger(self._ask("inspect"), self._reported)

    def place(self, pod: Json) -> Callable[[], Awaitable[str]] | None:
        """Returns what binds ``pod``, with an error message, empty on success; None where it fits no node."""
        if not self._lease.permits:
            return self._await_lease
        placed = self._ask("place", pod=pod)
        if not placed["node"]:
            return None
        holding = self._lease.holding
        return lambda: self._bind(pod, placed, holding)

    def _ask(self, do: str, **what: Any) -> Json:
        return self.engines.ask(self.identity, do, **what)

    # What it sees

    async def _watch_pods(self, plugin: WatchLag, scheduler: WatchLag) -> None:
        """Tells the plugin and the scheduler's own view one after the other, either first."""

        def shows(pod: Json) -> None:
            self._known[pod["metadata"]["uid"]] = pod
            plugin.later(lambda: self._ask("pod", pod=pod))
            scheduler.later(lambda: self._ask("see", pod=pod))

        def loses(uid: str) -> None:
            if self._known.pop(uid, None) is not None:
                plugin.later(lambda: self._ask("gone", uid=uid))
                scheduler.later(lambda: self._ask("unsee", uid=uid))

        async for event in follow(self.client, Collection(PODS, ACTIVE), follower=_follower()):
            if isinstance(event, Listed):
                for uid in self._known.keys() - {pod["metadata"]["uid"] for pod in event.items}:
                    loses(uid)
                for pod in event.items:
                    shows(pod)
                plugin.later(lambda: self._listed.add(PODS))
            elif event.kind == "DELETED":
                loses(event.item["metadata"]["uid"])
            else:
                shows(event.item)

    async def _watch_share_nodes(self) -> None:
        known = set[str]()
        async for event in follow(self.client, Collection(SHARE_NODES), follower=_follower()):
            items = event.items if isinstance(event, Listed) else [event.item]
            if isinstance(event, Listed):
                for name in known - {item["metadata"]["name"] for item in items}:
                    self._ask("drop", name=name)
            for item in items:
                name = item["metadata"]["name"]
                if not isinstance(event, Listed) and event.kind == "DELETED":
                    known.discard(name)
                    self._ask("drop", name=name)
                else:
                    known.add(name)
                    self._reported |= {pod.uid: pod for pod in named_pods(item)}
                    self._ask("share", shareNode=item)
            self._listed.add(SHARE_NODES)

    async def _take_over(self) -> None:
        """What another one has bound a moment before, the watch may not show yet."""
        for pod in await self._bound():
            self._ask("adopt", pod=pod)

    async def _bound(self) -> list[Json]:
        """Returns the bound pods that carry an allocation, as the API server's storage has them."""
        return [
            pod
            for pod in (await self.client.get(PODS))["items"]
            if pod["spec"].get("nodeName")
            and pod["status"].get("phase") not in ("Succeeded", "Failed")
            and Dialect.allocation_annotation in (pod["metadata"].get("annotations") or {})
        ]

    async def _expire(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self._ask("expire")

    async def _confirm(self) -> None:
        """What no watch shows long after it was adopted is gone, or the watch is late."""
        while True:
            await asyncio.sleep(CONFIRM_SECONDS)
            unseen = self._ask("unseen")["uids"]
            if unseen:
                with suppress(ApiError, UnreachableError):
                    present = {pod["metadata"]["uid"]: True for pod in await self._bound()}
                    self._ask("confirm", unseen=unseen, present=present)

    # Binds

    async def _await_lease(self) -> str:
        """Nothing is reserved before: where another one binds, that lasts."""
        try:
            await self._lease.hold()
        except NotHeldError as error:
            return str(error)
        return "this one may bind now: the pod is tried again"

    async def _bind(self, pod: Json, placed: Json, holding: int) -> str:
        task = asyncio.ensure_future(self._write(pod, placed, holding))
        self._binding.add(task)
        task.add_done_callback(self._binding.discard)
        return await asyncio.shield(task)

    async def _write(self, pod: Json, placed: Json, holding: int) -> str:
        """Returns why the pod is not bound, empty where it is."""
        metadata, uid = pod["metadata"], pod["metadata"]["uid"]
        reference = PodReference(metadata["namespace"], metadata["name"], uid)
        try:
            await BindingWrite(
                client=self.client,
                binding=Binding(reference, placed["node"], placed["annotations"], room=placed["room"]),
                timing=self._lease.timing,
                permit=self._lease.hold,
                holding=holding,
                answer_due=seconds() + SEND_SECONDS,
                version=PodVersion.of(metadata["resourceVersion"], metadata.get("annotations")),
            ).ensure_bound()
        except BoundBeforeError as error:
            self._ask("gone", uid=uid)
            self._ask("release", uid=uid)
            return str(error)
        except (NotBoundError, NotHeldError, ApiError, UnreachableError) as error:
            self._ask("release", uid=uid)
            return str(error)
        return ""


def _follower() -> Follower:
    return Follower(clock=seconds)
