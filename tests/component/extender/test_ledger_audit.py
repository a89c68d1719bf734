"""The extender publishes differences that have lasted, until they are over or the extender ends."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace
from tests.fakes.api_server import FakeApi, fake_api, status
from tests.fakes.extender_clock import FakeClock, HandClock
from tests.samples.extender import pod_update, reporting, share_node

from gpushare_core.api.names import BOOKS_LEASE
from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.audit.extender_report import (
    BELIEVED_FOR,
    ExtenderReport,
    decode_reports,
    encode_report,
    report_key,
)
from gpushare_core.kube.client import KubeClient
from gpushare_core.placement.modes.table import NODE_MODES
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.text.json_object import Json
from gpushare_extender.audit.difference_report import DifferenceReport
from gpushare_extender.audit.ledger_audit import AT_ONCE, MAX_SECONDS, ChangedNodes, LedgerAudit, in_order
from gpushare_extender.main import kube_client

LEASES = "/apis/coordination.k8s.io/v1/namespaces/gpushare-system/leases"
NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
ADMITTED = reporting(share_node(), 0, a=4)


class Audited:
    """A ledger with its audit; the time is the test's."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.nodes = ChangedNodes(self.clock)
        self.ledger = Ledger(self.nodes)
        self.changes = 0
        self.audit = LedgerAudit(self.ledger, self.nodes, self.count)

    def count(self) -> None:
        self.changes += 1

    def after(self, seconds: float) -> list[str]:
        """Pods of which something is found once so much time has passed."""
        self.clock.now += seconds
        self.audit.audit_due()
        return [difference.pod for difference in in_order(self.audit.found)]


@pytest.fixture
def audited() -> Audited:
    made = Audited()
    made.ledger.set_share_node(share_node())
    made.ledger.set_pod(pod_update("a", c0=4))
    return made


def test_records_on_their_way_are_no_alarm(audited: Audited) -> None:
    assert audited.after(4.9) == []
    audited.ledger.set_share_node(ADMITTED)
    assert audited.after(60) == []
    assert audited.changes == 0


def test_what_lasts_is_reported_once_and_again_when_it_is_over(audited: Audited) -> None:
    assert audited.after(5) == ["default/a"]
    assert (audited.after(60), audited.changes) == (["default/a"], 1)
    audited.ledger.set_share_node(ADMITTED)
    assert audited.after(4.9) == ["default/a"], "it has to be quiet"
    assert (audited.after(0.1), audited.changes) == ([], 2)


def test_a_node_that_nobody_shares_any_more_has_no_records(audited: Audited) -> None:
    assert audited.after(5) == ["default/a"]
    audited.ledger.drop_share_node("n1")
    assert audited.after(5) == []


def test_a_pod_that_has_just_gone_is_waited_for(audited: Audited) -> None:
    audited.ledger.set_share_node(share_node())
    audited.ledger.pod_deleted("a", now=audited.clock.now)
    assert audited.after(5) == []
    audited.ledger.free_unreleased(now=audited.clock.now)
    assert audited.after(5) == []


def test_a_node_whose_pods_go_all_the_time_is_looked_at(audited: Audited) -> None:
    """As where its kubelet refuses what a Deployment makes anew."""
    ledger, clock = audited.ledger, audited.clock
    found: list[str] = []
    for number in range(60):
        ledger.set_pod(pod_update(f"b-{number}", c1=16))
        clock.now += 1
        ledger.pod_deleted(f"b-{number}", now=clock.now)
        found = audited.after(1)
        ledger.free_unreleased(now=clock.now)
        assert set(found) <= {"default/a"}
    assert found == ["default/a"]
    assert clock.now - 1000 > 2 * MAX_SECONDS


def test_pods_that_come_to_a_card_one_after_another_are_no_alarm() -> None:
    """In mode Mixed each of them locks the card, and the plugin has yet to say so at every look."""
    made = Audited()
    free = share_node("n1", 16, unit="1Gi, 1/2 card, 1 card", mode=NODE_MODES["Mixed"])
    made.ledger.set_share_node(free)
    for number in range(120):
        made.ledger.set_pod(pod_update(f"a-{number}", c0=4))
        assert made.after(0.9) == []
        locked = reporting(free, 0, **{f"a-{number}": 4})
        cards = (replace(locked.cards[0], lock=ResourceClass.MEMORY),)
        made.ledger.set_share_node(replace(locked, cards=cards))
        made.ledger.pod_deleted(f"a-{number}", now=made.clock.now)
        made.clock.now += 0.1
        made.ledger.set_share_node(free)


def test_on_a_node_that_keeps_changing_only_what_stays_counts(audited: Audited) -> None:
    found: list[str] = []
    for number in range(60):
        audited.ledger.set_pod(pod_update(f"b-{number}", c1=1))
        found = audited.after(2)
        assert set(found) <= {"default/a", *(f"default/b-{number}" for number in range(number - 10))}
        audited.ledger.drop_pod(f"b-{number}")
    assert found == ["default/a"]
    assert audited.clock.now - 1000 > 2 * MAX_SECONDS


def test_unchanged_nodes_are_not_looked_at(audited: Audited) -> None:
    audited.after(5)
    assert audited.nodes.seconds_until_due() is None
    audited.ledger.set_share_node(ADMITTED)
    assert audited.nodes.seconds_until_due() == 5


def test_thousands_of_nodes_are_looked_at_in_groups() -> None:
    made = Audited()
    names = [f"n{number}" for number in range(3 * AT_ONCE)]
    for name in names:
        made.ledger.set_share_node(share_node(name))
        made.ledger.set_pod(pod_update(f"pod-{name}", node=name, c0=4))
    counts = [len(made.after(5 if not group else 0)) for group in range(3)]
    assert counts == [AT_ONCE, 2 * AT_ONCE, 3 * AT_ONCE]


async def test_it_runs_by_itself(audited: Audited) -> None:
    found = asyncio.Event()
    audited.audit.changed = found.set
    audited.audit.sleep = audited.clock.sleep
    task = asyncio.create_task(audited.audit.run())
    async with asyncio.timeout(30):
        await found.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [*audited.audit.found] == ["n1"]


# What is made known


def difference(pod: str = "default/a") -> Difference:
    return Difference(
        node="n1", kind=DifferenceKind.SHARES_DIFFER, pod=pod, sentence=f"{pod} : 4 units here, 0 there"
    )


class Reporting:
    """An extender that publishes differences; its clock is the test's."""

    def __init__(self, api: FakeApi, report: DifferenceReport, clock: HandClock) -> None:
        self.api, self.report, self.clock = api, report, clock

    @property
    def writes(self) -> int:
        return len(self.api.requests("PATCH", f"{LEASES}/{BOOKS_LEASE}"))

    async def until(self, what: str, *, writes: int) -> None:
        """Lets time pass until then: nobody knows how much of it a response takes."""

        def are_there() -> bool:
            if self.writes < writes:
                self.clock.now += 5
            return self.writes == writes

        await self.api.wait_for(what, are_there)

    def said(self) -> dict[str, ExtenderReport]:
        found = self.api.objects[LEASES].values()
        (lease,) = [lease_object for lease_object in found if lease_object["metadata"]["name"] == BOOKS_LEASE]
        return decode_reports(lease["metadata"].get("annotations") or {})


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        fake.put(LEASES, {"metadata": {"name": BOOKS_LEASE}})
        yield fake


@pytest.fixture
def found() -> list[Difference]:
    return []


@pytest.fixture
async def reporting_extender(api: FakeApi, found: list[Difference]) -> AsyncIterator[Reporting]:
    clock = HandClock()
    async with kube_client(api.credentials()) as client:
        report = DifferenceReport(
            client, "gpushare-system", "cp-1_x", lambda: found, lambda: NOW, clock.sleep
        )
        task = asyncio.create_task(report.run())
        yield Reporting(api, report, clock)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_while_nothing_differs_nothing_more_is_written(
    reporting_extender: Reporting,
) -> None:
    extender = reporting_extender
    await extender.api.wait_for("what another one left is taken back", lambda: extender.writes == 1)
    for _ in range(20):
        extender.clock.now += 100
        await asyncio.sleep(0.005)
    assert (extender.writes, extender.said()) == (1, {})


async def test_what_differs_is_made_known_renewed_and_taken_back(
    reporting_extender: Reporting, found: list[Difference]
) -> None:
    extender, key = reporting_extender, report_key("cp-1_x")
    await extender.api.wait_for("the start", lambda: extender.writes == 1)
    found.append(difference())
    extender.report.changed()
    await extender.until("the report", writes=2)
    assert extender.said() == {key: ExtenderReport(by="cp-1_x", at=NOW, nodes={"n1": found[0].sentence})}
    extender.clock.now += 10
    await extender.until("its renewal", writes=3)
    found.clear()
    extender.report.changed()
    await extender.until("its end", writes=4)
    assert extender.said() == {}


async def test_one_extender_leaves_the_report_of_another_and_clears_those_of_the_dead(
    api: FakeApi, found: list[Difference], reporting_extender: Reporting
) -> None:
    extender = reporting_extender
    await api.wait_for("the start", lambda: extender.writes == 1)
    alive = ExtenderReport(by="cp-2_y", at=NOW, nodes={"n1": "theirs"})
    dead = ExtenderReport(by="cp-3_z", at=NOW - BELIEVED_FOR - timedelta(seconds=1), nodes={"n1": "old"})
    written = {report_key(report.by): encode_report(report) for report in (alive, dead)}
    metadata = {"name": BOOKS_LEASE, "annotations": written}
    api.put(LEASES, {"metadata": metadata})
    found.append(difference())
    extender.report.changed()
    await extender.until("both writes", writes=3)
    assert sorted(report.by for report in extender.said().values()) == ["cp-1_x", "cp-2_y"]


async def test_a_lease_that_was_deleted_is_made_anew_and_failures_are_repeated(
    api: FakeApi, found: list[Difference], reporting_extender: Reporting
) -> None:
    extender = reporting_extender
    await api.wait_for("the start", lambda: extender.writes == 1)
    api.delete(LEASES, BOOKS_LEASE)
    api.fail("PATCH", f"{LEASES}/{BOOKS_LEASE}", status(503))
    found.append(difference())
    extender.report.changed()
    await extender.until("the report", writes=5)
    assert len(extender.said()) == 1


async def test_an_extender_that_ends_takes_back_what_it_said(
    reporting_extender: Reporting, found: list[Difference]
) -> None:
    extender = reporting_extender
    await extender.api.wait_for("the start", lambda: extender.writes == 1)
    found.append(difference())
    extender.report.changed()
    await extender.until("the report", writes=2)
    await extender.report.withdraw()
    assert extender.said() == {}


async def test_an_extender_that_ends_with_its_lease_leaves_none_behind(
    reporting_extender: Reporting, found: list[Difference]
) -> None:
    """As at an uninstall."""
    extender = reporting_extender
    await extender.api.wait_for("the start", lambda: extender.writes == 1)
    found.append(difference())
    extender.report.changed()
    await extender.until("the report", writes=2)
    extender.api.delete(LEASES, BOOKS_LEASE)
    await extender.report.withdraw()
    assert BOOKS_LEASE not in {name for _, name in extender.api.objects[LEASES]}


async def test_what_is_taken_back_comes_after_what_is_just_being_said(
    reporting_extender: Reporting, found: list[Difference], monkeypatch: pytest.MonkeyPatch
) -> None:
    extender, merge = reporting_extender, KubeClient.merge
    begun, may_go = asyncio.Event(), asyncio.Event()
    await extender.api.wait_for("the start", lambda: extender.writes == 1)

    async def slow(client: KubeClient, path: str, body: Json) -> Json:
        if found:
            begun.set()
            await may_go.wait()
        return await merge(client, path, body)

    monkeypatch.setattr(KubeClient, "merge", slow)
    found.append(difference())
    extender.report.changed()
    while not begun.is_set():
        extender.clock.now += 5
        await asyncio.sleep(0.01)
    found.clear()
    ending = asyncio.create_task(extender.report.withdraw())
    await asyncio.sleep(0.02)
    may_go.set()
    await ending
    await extender.api.wait_for("both writes", lambda: extender.writes == 3)
    assert extender.said() == {}


async def test_without_the_right_an_extender_that_has_nothing_to_say_does_not_insist(api: FakeApi) -> None:
    """As beside manifests of an earlier version."""
    clock = HandClock()
    api.fail("PATCH", f"{LEASES}/{BOOKS_LEASE}", status(403))
    async with kube_client(api.credentials()) as client:
        report = DifferenceReport(client, "gpushare-system", "cp-1_x", list, lambda: NOW, clock.sleep)
        extender, task = Reporting(api, report, clock), asyncio.create_task(report.run())
        await api.wait_for("the attempt", lambda: extender.writes == 1)
        for _ in range(10):
            clock.now += 100
            await asyncio.sleep(0.005)
        assert extender.writes == 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
