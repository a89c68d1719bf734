"""The extender publishes that kube-scheduler calls it: at once, and then seldom."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from tests.fakes.api_server import FakeApi, fake_api, status
from tests.fakes.extender_caller import SchedulerCaller
from tests.fakes.extender_clock import FakeClock

from gpushare_extender.arguments import Options
from gpushare_extender.cluster.scheduler_calls import APART_SECONDS, IN_TURN_SECONDS, SchedulerCallReport
from gpushare_extender.extender import Extender
from gpushare_extender.main import kube_client
from gpushare_extender.transport.endpoints import Address
from gpushare_extender.verbs.server import application

LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpushare-system/leases/gpushare-extender-calls"
NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        yield fake


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def report(api: FakeApi, clock: FakeClock) -> AsyncIterator[SchedulerCallReport]:
    async with kube_client(api.credentials()) as client:
        report = SchedulerCallReport(client, "gpushare-system", "cp_1", lambda: NOW, clock, clock.sleep)
        task = asyncio.create_task(report.run())
        yield report
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def writes(api: FakeApi) -> int:
    return len(api.requests("PATCH", LEASE))


def lease(api: FakeApi) -> tuple[str, str]:
    """Where it was called, and who says so."""
    (held,) = [
        item
        for (_, name), item in api.objects[LEASE.rpartition("/")[0]].items()
        if name == "gpushare-extender-calls"
    ]
    return held["metadata"]["annotations"]["gpushare.io/called-port"], held["spec"]["holderIdentity"]


async def test_the_first_call_is_made_known_at_once(api: FakeApi, report: SchedulerCallReport) -> None:
    report.called(22766)
    await api.wait_for("the Lease", lambda: writes(api) == 1)
    assert lease(api) == ("22766", "cp_1")


async def test_many_calls_are_one_write_in_five_minutes(
    api: FakeApi, report: SchedulerCallReport, clock: FakeClock
) -> None:
    report.called(22766)
    await api.wait_for("the Lease", lambda: writes(api) == 1)
    for _ in range(1000):
        report.called(22766)
    clock.now += APART_SECONDS - 1
    report.called(22766)
    await asyncio.sleep(0.1)
    assert writes(api) == 1
    clock.now += 1
    report.called(22766)
    await api.wait_for("the Lease", lambda: writes(api) == 2)


async def test_a_call_at_another_port_is_made_known_at_once(
    api: FakeApi, report: SchedulerCallReport
) -> None:
    report.called(22766)
    await api.wait_for("the Lease", lambda: writes(api) == 1)
    report.called(12000)
    await api.wait_for("the Lease", lambda: writes(api) == 2)
    assert lease(api) == ("12000", "cp_1")


async def test_two_ports_that_are_called_in_turn_are_two_writes(
    api: FakeApi, report: SchedulerCallReport, clock: FakeClock
) -> None:
    for _ in range(20):
        for port in (22766, 12000):
            report.called(port)
            await asyncio.sleep(0.01)
    assert (writes(api), lease(api)[0]) == (2, "12000")
    clock.now += IN_TURN_SECONDS
    report.called(22766)
    await api.wait_for("the Lease", lambda: lease(api)[0] == "22766")


async def test_what_cannot_be_written_is_tried_again(api: FakeApi, report: SchedulerCallReport) -> None:
    api.fail("PATCH", LEASE, status(503), status(403))
    report.called(22766)
    await api.wait_for("a write that succeeds", lambda: writes(api) == 3)
    assert lease(api) == ("22766", "cp_1")


async def test_only_calls_that_ask_for_nodes_count(api: FakeApi) -> None:
    async with kube_client(api.credentials()) as client, ClientSession() as session:
        extender = Extender.create(client, Options(listen=Address("127.0.0.1", 0)))
        task = asyncio.create_task(extender.calls.run())
        server = TestServer(application(extender.api))
        await server.start_server(shutdown_timeout=0.1)
        caller = SchedulerCaller(session, server)
        await caller.get("/gpushare/inspect")
        await caller.post("/gpushare/filter", "no JSON")
        await asyncio.sleep(0.1)
        assert writes(api) == 0
        await caller.filter("n1")
        await api.wait_for("the Lease", lambda: writes(api) == 1)
        assert lease(api)[0] == str(server.port)
        await server.close()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
