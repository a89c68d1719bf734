"""What tests of the extender have unless they bring their own: an API server with one pod, and an extender
that serves, of a node whose two cards are used and a smaller one that is free."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from tests.fakes.api_server import PODS, FakeApi, fake_api
from tests.fakes.extender_api import extender_api
from tests.fakes.extender_caller import SchedulerCaller
from tests.fakes.extender_clock import FakeClock
from tests.fakes.following_extender import permitted
from tests.samples.extender import pod_json, pod_update, share_node

from gpushare_core.kube.client import KubeClient
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.bind.binder import Binder
from gpushare_extender.cluster.watchers import WatchHealth
from gpushare_extender.verbs.health import HealthApi
from gpushare_extender.verbs.server import ExtenderApi, application


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        fake.put(PODS, pod_json("a", units=4))
        yield fake


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Binds do not give up calls that a busy machine slows down."""
    for module in ("binder", "binding_write"):
        monkeypatch.setattr(f"gpushare_extender.bind.{module}.CALL_SECONDS", 120)


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[KubeClient]:
    async with KubeClient(api.credentials(), timeout=120) as opened:
        yield opened


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def extender(api: FakeApi) -> AsyncIterator[ExtenderApi]:
    ledger = Ledger()
    ledger.replace_share_nodes([share_node("n1"), share_node("n2", 8)])
    ledger.set_pod(pod_update("uid-x", c0=10))
    ledger.set_pod(pod_update("uid-y", c1=10))
    clock = FakeClock(0.0)
    watches = (WatchHealth("pods", clock, listed=True), WatchHealth("gpusharenodes", clock, listed=True))
    async with KubeClient(api.credentials()) as client:
        yield extender_api(Binder(client, ledger, permitted), HealthApi(watches))


@pytest.fixture
async def caller(extender: ExtenderApi) -> AsyncIterator[SchedulerCaller]:
    server = TestServer(application(extender))
    await server.start_server(shutdown_timeout=0.1)
    async with ClientSession() as session:
        yield SchedulerCaller(session, server)
    await server.close()
