"""What the auditor of a run reports at once, and what it does not take for a breach."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pytest
from chaos.audit.auditor import Auditor
from chaos.audit.gather import (
    Gatherer,
    Reading,
    UnreadableBooksError,
    by_keeper,
    unread,
    without_abandoned,
)
from chaos.findings import Finding
from chaos.plan.known import CONTROL_PLANES
from tests.samples.audit import MEMORY_WORLD

from gpushare_core.audit.difference import DifferenceKind
from gpushare_core.audit.records import (
    ClusterRecords,
    ContainerKey,
    LedgerRecord,
    NodeRecords,
    PodKey,
    PodRecord,
    SeenCards,
    StoredContainer,
)

GOOD = MEMORY_WORLD.records()
SEEN = SeenCards(cards=("GPU-0",), units=4)


def wrong_environment() -> NodeRecords:
    """One container sees a card whose units it does not hold."""
    environments = dict(GOOD.environments or {})
    environments[next(iter(environments))] = SeenCards(cards=("GPU-9",), units=4, unit="1Gi")
    return replace(GOOD, environments=environments)


@dataclass
class Readings:
    """Answers one after the other; None: nobody answers."""

    books: list[NodeRecords | None]
    unread: Mapping[str, str] = field(default_factory=dict)

    async def read(self) -> Reading:
        books = self.books.pop(0)
        if books is None:
            raise UnreadableBooksError("the API server does not answer")
        return Reading({"control-plane-1": ClusterRecords({books.node: books})}, self.unread)


async def look_at(books: Sequence[NodeRecords | None]) -> list[Finding]:
    found: list[Finding] = []
    auditor = Auditor(cast("Gatherer", Readings(list(books))), found.append)
    for _ in books:
        await auditor.look()
    return found


async def test_books_that_agree_are_no_finding() -> None:
    assert await look_at([GOOD, GOOD, GOOD]) == []


async def test_a_breach_is_reported_when_two_readings_show_it() -> None:
    bad = wrong_environment()
    assert await look_at([GOOD, bad, GOOD, bad]) == []
    assert {finding.rule for finding in await look_at([GOOD, bad, bad])} == {"I2"}


def released() -> NodeRecords:
    """The GPUShareNode counts nobody any more, while the kubelet holds all as before."""
    assert GOOD.share_node
    cards = tuple(replace(card, holders=(), allocated=0) for card in GOOD.share_node.cards)
    return replace(GOOD, share_node=replace(GOOD.share_node, cards=cards))


async def test_units_that_are_free_too_early_are_reported_when_two_readings_show_it() -> None:
    early = released()
    assert "I4" not in {finding.rule for finding in await look_at([GOOD, early, GOOD, early, GOOD])}
    assert [finding.rule for finding in await look_at([GOOD, early, early]) if "counts" in finding.sentence]


async def test_while_nobody_answers_nothing_is_forgotten() -> None:
    bad = wrong_environment()
    assert await look_at([bad, None, bad])


async def test_asked_while_nobody_answers_the_books_do_not_agree() -> None:
    auditor = Auditor(cast("Gatherer", Readings([None])), lambda _: None)
    (difference,) = await auditor.differences()
    assert difference.kind is DifferenceKind.UNREADABLE


async def test_a_book_that_cannot_be_read_in_quiet_is_a_difference() -> None:
    """It is not compared: nobody would notice what is in it."""
    readings = Readings([GOOD, GOOD], {"ledger of control-plane-2": "its extender does not answer"})
    auditor = Auditor(cast("Gatherer", readings), lambda _: None)
    (difference,) = await auditor.differences()
    assert difference.kind is DifferenceKind.UNREADABLE
    assert "ledger of control-plane-2" in difference.sentence
    await auditor.look()
    assert auditor.unread == {"ledger of control-plane-2": 1}


@pytest.mark.parametrize(
    ("books", "missing", "missed"),
    [
        pytest.param(GOOD, set(), set(), id="all are there"),
        pytest.param(GOOD, {CONTROL_PLANES[1]}, {"ledger of control-plane-2"}, id="an extender"),
        pytest.param(
            replace(GOOD, resources=None, checkpoint=None),
            set(),
            {f"PodResources of {GOOD.node}", f"checkpoint of {GOOD.node}"},
            id="the kubelet's",
        ),
        pytest.param(replace(GOOD, resources=None, share_node=None), set(), set(), id="no node of ours"),
    ],
)
def test_what_has_to_be_read(books: NodeRecords, missing: set[str], missed: set[str]) -> None:
    assert dict(unread([books], missing)).keys() == missed


async def test_the_ledger_of_every_extender_is_compared() -> None:
    """Whichever is asked next has to be right; the second one counts nothing."""
    good = GOOD.ledger
    assert good is not None
    every = by_keeper([GOOD], {"one": {GOOD.node: good}, "two": {GOOD.node: LedgerRecord()}})

    class Both:
        async def read(self) -> Reading:
            return Reading(every)

    auditor = Auditor(cast("Gatherer", Both()), lambda _: None)
    assert await auditor.differences()
    del every["two"]
    assert not await auditor.differences()


async def test_an_auditor_that_ends_is_a_finding_at_once() -> None:
    class Broken:
        async def read(self) -> Reading:
            raise KeyError("state")

    found: list[Finding] = []
    async with Auditor(cast("Gatherer", Broken()), found.append).watching():
        async with asyncio.timeout(30):
            while not found:  # noqa: ASYNC110 - the list alone says it
                await asyncio.sleep(0.01)
        assert [finding.rule for finding in found] == ["run"]
    assert "the auditor has ended" in found[0].sentence


def key(uid: str) -> ContainerKey:
    return ContainerKey(PodKey("chaos", "a", uid), "main")


def test_containers_of_pods_that_everybody_has_given_up_are_not_compared() -> None:
    environments: dict[ContainerKey, SeenCards | None] = {
        key(uid): SEEN for uid in ("api", "kubelet", "none")
    }
    pods = [PodRecord(key=PodKey("chaos", "a", "api"), node="gpu-1", kubelet_uid="api")]
    stored = {ContainerKey(PodKey("", "", "kubelet"), "main"): StoredContainer()}
    assert without_abandoned(environments, pods, stored).keys() == {key("api"), key("kubelet")}


def test_a_static_pod_is_known_by_the_kubelets_uid() -> None:
    pods = [PodRecord(key=PodKey("chaos", "a", "mirror"), node="gpu-1", kubelet_uid="file")]
    assert without_abandoned({key("file"): SEEN}, pods, None)
