"""What the auditor of a run reports at once, and what it does not take for a breach."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from chaos.audit.auditor import Auditor
from chaos.audit.gather import Gatherer, UnreadableBooksError, without_abandoned
from chaos.findings import Finding
from tests.samples.audit import MEMORY_WORLD

from gpushare_core.audit.books import (
    Books,
    ContainerKey,
    NodeBooks,
    PodBook,
    PodKey,
    SeenCards,
    StoredContainer,
)
from gpushare_core.audit.difference import Kind

GOOD = MEMORY_WORLD.books()
SEEN = SeenCards(cards=("GPU-0",), units=4)


def wrong_environment() -> NodeBooks:
    """One container sees a card whose units it does not hold."""
    environments = dict(GOOD.environments or {})
    environments[next(iter(environments))] = SeenCards(cards=("GPU-9",), units=4, unit="1Gi")
    return replace(GOOD, environments=environments)


@dataclass
class Readings:
    """Answers one after the other; None: nobody answers."""

    books: list[NodeBooks | None]

    async def read(self) -> Books:
        books = self.books.pop(0)
        if books is None:
            raise UnreadableBooksError("the API server does not answer")
        return Books({books.node: books})


async def look_at(books: Sequence[NodeBooks | None]) -> list[Finding]:
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
    assert {each.rule for each in await look_at([GOOD, bad, bad])} == {"I2"}


async def test_while_nobody_answers_nothing_is_forgotten() -> None:
    bad = wrong_environment()
    assert await look_at([bad, None, bad])


async def test_asked_while_nobody_answers_the_books_do_not_agree() -> None:
    auditor = Auditor(cast("Gatherer", Readings([None])), lambda _: None)
    (difference,) = await auditor.differences()
    assert difference.kind is Kind.UNREADABLE


def key(uid: str) -> ContainerKey:
    return ContainerKey(PodKey("chaos", "a", uid), "main")


def test_containers_of_pods_that_everybody_has_given_up_are_not_compared() -> None:
    environments: dict[ContainerKey, SeenCards | None] = {
        key(uid): SEEN for uid in ("api", "kubelet", "none")
    }
    pods = [PodBook(key=PodKey("chaos", "a", "api"), node="gpu-1", kubelet_uid="api")]
    stored = {ContainerKey(PodKey("", "", "kubelet"), "main"): StoredContainer()}
    assert without_abandoned(environments, pods, stored).keys() == {key("api"), key("kubelet")}


def test_a_static_pod_is_known_by_the_kubelets_uid() -> None:
    pods = [PodBook(key=PodKey("chaos", "a", "mirror"), node="gpu-1", kubelet_uid="file")]
    assert without_abandoned({key("file"): SEEN}, pods, None)
