"""An extender that follows a fake API server: all of it but its Lease."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from tests.fakes.api_server import PODS, SHARE_NODES, FakeApi
from tests.fakes.extender_api import extender_api
from tests.fakes.extender_caller import SchedulerCaller

from gpushare_core.kube.client import KubeClient
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.text.json_object import Json
from gpushare_extender.bind.binder import Binder
from gpushare_extender.cluster.watchers import WatchHealth, watch_pods, watch_share_nodes
from gpushare_extender.verbs.health import HealthApi
from gpushare_extender.verbs.server import application


async def permitted() -> int:
    """In place of holding the Lease."""
    return 1


@dataclass(slots=True)
class FollowingExtender:
    """Calls as kube-scheduler and tools make them."""

    api: FakeApi
    ledger: Ledger
    health: HealthApi
    caller: SchedulerCaller

    async def until(self, what: str, holds: Callable[[], bool]) -> None:
        await self.api.wait_for(what, holds)

    def used(self, node: str = "n1") -> list[int]:
        """Units in use of each card."""
        sums = self.ledger.node(node)
        return [card.allocated for card in sums.cards()] if sums else []

    async def filter(self, pod: Json, *nodes: str) -> list[str]:
        answer = await self.caller.post("/gpushare/filter", {"Pod": pod, "NodeNames": nodes})
        names: list[str] = answer["NodeNames"]
        return names

    async def refusal(self, pod: Json, node: str) -> str:
        answer = await self.caller.post("/gpushare/filter", {"Pod": pod, "NodeNames": [node]})
        reasons = {**answer.get("FailedNodes", {}), **answer.get("FailedAndUnresolvableNodes", {})}
        return str(reasons[node])

    async def bind(self, pod: Json, node: str = "n1") -> str:
        """Creates ``pod`` and binds it. Returns the error message."""
        metadata = pod["metadata"]
        self.api.put(PODS, pod)
        body = {
            "PodName": metadata["name"],
            "PodNamespace": "default",
            "PodUID": metadata["uid"],
            "Node": node,
        }
        answer = await self.caller.post("/gpushare/bind", body)
        return str(answer["Error"])

    async def text(self, path: str) -> str:
        async with self.caller.session.get(self.caller.server.make_url(path)) as response:
            assert response.status == 200
            return await response.text()


@asynccontextmanager
async def following(api: FakeApi) -> AsyncIterator[FollowingExtender]:
    """An extender that was started just now."""
    ledger, pods, nodes = Ledger(), WatchHealth("pods"), WatchHealth("gpusharenodes")
    health = HealthApi((pods, nodes))
    async with KubeClient(api.credentials()) as client, ClientSession() as session:
        served = extender_api(Binder(client, ledger, permitted), health)
        server = TestServer(application(served))
        await server.start_server(shutdown_timeout=0.1)
        tasks = [
            asyncio.create_task(watch_pods(client, ledger, pods)),
            asyncio.create_task(watch_share_nodes(client, ledger, nodes)),
        ]
        try:
            yield FollowingExtender(api, ledger, health, SchedulerCaller(session, server))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await server.close()


@asynccontextmanager
async def extender_of(api: FakeApi, *objects: Json) -> AsyncIterator[FollowingExtender]:
    """An extender that has seen ``objects``: GPUShareNodes and pods."""
    for body in objects:
        api.put(PODS if "containers" in body["spec"] else SHARE_NODES, body)
    async with following(api) as extender:
        await extender.until("the lists", lambda: not extender.health.not_listed())
        yield extender
