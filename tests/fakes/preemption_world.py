"""A node whose cards are full, pods that want to preempt there, and the API server that evicts for them."""

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from tests.fakes.api_server import EVENTS, PODS, FakeApi, fake_api
from tests.fakes.extender_clock import FakeClock
from tests.fakes.ledger_listener import HeardChanges
from tests.samples.extender import holder_json, pod_json, pod_update, reference, share_node

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.kube.client import KubeClient
from gpushare_core.placement.requests import PodRequest
from gpushare_core.process.clock import utc_now
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.text.json_object import Json
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.decide.preemption.queue import PreemptionQueue, Preemptor
from gpushare_extender.evictions.preemptions import Preemptions


def requested(name: str, units: int, priority: int) -> PodRequest:
    """What kube-scheduler says that the pod asks for."""
    pod = preemptor_json(name, units=units, priority=priority)
    return msgspec.convert(pod, KubePod).request(RESOURCES)


async def permitted() -> int:
    return 1


@dataclasses.dataclass
class World:
    """n1 has two cards of 16 with a pod of 10 units on each, x (priority 5) and y (1); p (10) asks for 10."""

    api: FakeApi
    ledger: Ledger
    preemptions: Preemptions
    clock: FakeClock
    woken: list[str]
    awake: bool = True
    """Whether kube-scheduler tries a pod again that it is woken for, and has it refused."""

    def wake(self, uid: str) -> None:
        self.woken.append(uid)
        if self.awake:
            self.refuse(name=uid.removeprefix("uid-"))

    def add_pod(self, name: str, *, priority: int, card: int, units: int, **metadata: object) -> None:
        pod = holder_json(name, card=card, units=units)
        pod["spec"]["priority"] = priority
        pod["spec"]["terminationGracePeriodSeconds"] = 5
        pod["metadata"].update(metadata)
        self.api.put(PODS, pod)
        self.ledger.set_pod(pod_update(f"uid-{name}", **{f"c{card}": units}))  # type: ignore[arg-type]

    def remove_pod(self, name: str) -> None:
        self.api.delete(PODS, name, "default")
        self.ledger.drop_pod(f"uid-{name}")

    def refuse(self, units: int = 10, name: str = "p", priority: int = 10) -> None:
        """As a filter that refuses the pod everywhere."""
        preemptor = Preemptor(reference(name), requested(name, units, priority), priority, ("n1",), 1)
        self.preemptions.preemptors.refused(preemptor, now=self.clock())

    async def until(self, what: str, holds: Callable[[], bool], seconds: float = 30.0) -> None:
        """Waits until ``holds``, for at most so many seconds of the clock."""
        deadline = self.clock() + seconds
        while not holds():
            assert self.clock() < deadline, f"waited {seconds} s for {what}"
            await asyncio.sleep(0.001)

    async def run_for(self, seconds: float) -> None:
        end = self.clock() + seconds
        await self.until("the time to pass", lambda: self.clock() >= end, seconds + 1)

    def evicted(self) -> list[str]:
        pods = self.api.objects[PODS].values()
        return [pod["metadata"]["name"] for pod in pods if pod["metadata"].get("deletionTimestamp")]

    def calls(self) -> list[str]:
        return [seen.path.split("/")[-2] for seen in self.api.seen if seen.path.endswith("/eviction")]

    def notes(self) -> list[tuple[str, str]]:
        return [(event["reason"], event["regarding"]["name"]) for event in self.api.objects[EVENTS].values()]

    @property
    def held(self) -> list[tuple[str, tuple[tuple[str, int], ...]]]:
        return [(hold.uid, (*hold.holder.shares.items(),)) for hold in self.ledger.holds.values()]


class PacedClock(FakeClock):
    """Leaves the sockets time."""

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0.001)


@contextlib.asynccontextmanager
async def a_world(permit: Callable[[], Awaitable[int]] = permitted) -> AsyncIterator[World]:
    heard = HeardChanges()
    ledger, woken = Ledger(heard), heard.fits_now
    ledger.set_share_node(share_node("n1"))
    clock = PacedClock()
    timing = BindTiming(clock=clock, now=utc_now, sleep=clock.sleep)
    async with fake_api() as api, KubeClient(api.credentials()) as client:
        preemptions = Preemptions(
            client=client,
            ledger=ledger,
            preemptors=PreemptionQueue(),
            permit=permit,
            would_fit=lambda uid: made.wake(uid),
            timing=timing,
        )
        made = World(api, ledger, preemptions, clock, woken)
        made.add_pod("x", priority=5, card=0, units=10)
        made.add_pod("y", priority=1, card=1, units=10)
        api.put(PODS, preemptor_json())
        running = asyncio.create_task(preemptions.run())
        yield made
        assert not running.done(), running
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def preemptor_json(name: str = "p", *, units: int = 10, priority: int = 10, **spec: object) -> Json:
    pod = pod_json(name, units=units)
    pod["spec"].update(priority=priority, **spec)
    return pod
