"""How rounds are played, apart from what is done in them."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from chaos.audit.auditor import Auditor
from chaos.deadlines import Deadlines
from chaos.expectations import Expectations
from chaos.findings import Findings
from chaos.operation import BreachError, Fault, NothingHitError, Operation
from chaos.plan.history import Step
from chaos.quiet import NotQuietError, Quiet
from chaos.record import DONE, OFTEN, Record
from chaos.runner import FaultStaysError, Runner
from chaos.world import World
from tests.simulation import virtual_time

from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.kube.errors import ApiError, UnreachableError

WITHOUT = Difference(
    node="gpu-1", kind=DifferenceKind.WITHOUT_UNITS, pod="chaos/blind", sentence="it runs without"
)
DIFFERENCE = Difference(node="gpu-1", kind=DifferenceKind.SHARES_DIFFER, sentence="a book differs")
SOON = Deadlines(quiet=1, agreement=0.05, standing=0.25, patience=0.9, operation=0.2, healing=0.2)


class Do(Operation, frozen=True, kw_only=True, tag="test.do"):
    name: str

    async def run(self, world: World) -> None:
        cast("Any", world).told.append(self.name)


class Fails(Operation, frozen=True, kw_only=True, tag="test.fails"):
    error: Any

    async def run(self, _: World) -> None:
        raise self.error


class Hangs(Operation, frozen=True, kw_only=True, tag="test.hangs"):
    async def run(self, _: World) -> None:
        await asyncio.Event().wait()


class Breaks(Fault, frozen=True, kw_only=True, tag="test.breaks"):
    fails: bool = False

    async def run(self, world: World) -> None:
        cast("Any", world).told.append("broken")
        if self.fails:
            raise UnreachableError("half-way")

    async def heal(self, world: World) -> None:
        cast("Any", world).told.append("healed")


@dataclass
class Stage:
    """What the runner works on, and what it is told there."""

    told: list[str] = field(default_factory=list)
    differences_seen: list[list[Difference]] = field(default_factory=list)
    """One list for each question; afterwards the last one for ever."""
    is_quiet: bool = True
    restless: int = 0
    """How often it is not quiet when it is asked again."""
    expected: int = 0
    watched: int = 0
    """How often it was looked who writes while all is quiet."""

    bound_past_schedulers: set[str] = field(default_factory=set)
    static_pods: dict[str, str] = field(default_factory=dict)
    drained: set[str] = field(default_factory=set)

    async def delete_pod(self, name: str) -> None:
        self.told.append(f"deleted {name}")

    async def differences(self) -> list[Difference]:
        seen = self.differences_seen
        return (seen.pop(0) if len(seen) > 1 else seen[0]) if seen else []

    async def no_pod_is_lost(self) -> None:
        self.expected += 1

    async def no_pod_waits_that_has_room(self) -> None:
        return

    async def nobody_is_alarmed(self) -> None:
        return

    async def nobody_writes_for_nothing(self) -> None:
        self.watched += 1

    async def hardly_a_pod_is_refused(self) -> None:
        return

    async def quiet(self, _world: World, *, seconds: float) -> Quiet:
        if not self.is_quiet:
            raise NotQuietError(f"not quiet after {seconds} s")
        if self.told[-1:] != ["quiet"]:
            self.told.append("quiet")
            return Quiet(1.5)
        self.restless -= 1
        return Quiet(0.0, at_once=self.restless < 0)


@pytest.fixture(autouse=True)
def loop_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where time is virtual, the runner's clock is, too."""
    monkeypatch.setattr("chaos.runner.time", SimpleNamespace(monotonic=virtual_time.seconds))


async def play(stage: Stage, *rounds: Sequence[Operation], collect: bool = False) -> tuple[Findings, Record]:
    """In virtual time: how fast the machine is says nothing of the runner."""
    playing = play_in_this_loop(stage, *rounds, collect=collect)
    return await asyncio.to_thread(virtual_time.run, playing)


async def play_in_this_loop(
    stage: Stage, *rounds: Sequence[Operation], collect: bool = False
) -> tuple[Findings, Record]:
    steps = [
        Step(number=0, round=number, after=0.0, operation=operation)
        for number, operations in enumerate(rounds)
        for operation in operations
    ]
    findings, record = Findings(lambda _: None, collect), Record()
    runner = Runner(
        cast("World", stage),
        cast("Auditor", stage),
        cast("Expectations", stage),
        findings=findings,
        record=record,
        say=lambda _: None,
        deadlines=SOON,
        quiet=stage.quiet,
    )
    await runner.play(steps)
    return findings, record


async def test_faults_are_healed_after_the_other_operations_and_before_quiet() -> None:
    stage = Stage()
    await play(stage, [Breaks(seconds=0.05), Do(name="a"), Do(name="b")], [Do(name="c")])
    assert stage.told == ["broken", "a", "b", "healed", "quiet", "c", "quiet"]


async def test_a_fault_lasts_its_time() -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await play_in_this_loop(Stage(), [Breaks(seconds=0.3)])
    assert loop.time() - begun >= 0.3


async def test_a_fault_that_failed_half_way_is_healed() -> None:
    stage = Stage()
    _, record = await play(stage, [Breaks(fails=True)])
    assert stage.told == ["broken", "healed", "quiet"]
    assert record.faults == {"test.breaks": 1}


@pytest.mark.parametrize(
    ("operation", "outcome"),
    [
        (Fails(error=ApiError(409, "Conflict", "it is there")), "ApiError"),
        (Fails(error=UnreachableError("nobody there")), "UnreachableError"),
        (Hangs(), "TimeoutError"),
        (Do(name="a"), DONE),
    ],
)
async def test_what_the_api_server_answers_is_an_outcome(operation: Operation, outcome: str) -> None:
    findings, record = await play(Stage(), [operation])
    assert not findings.all
    assert [said.partition(":")[0] for said in record.outcomes[operation.kind]] == [outcome]
    assert record.done == [(operation, outcome == DONE)]


async def test_any_other_error_ends_the_run() -> None:
    with pytest.raises(ZeroDivisionError):
        await play(Stage(), [Fails(error=ZeroDivisionError())])


async def test_it_ends_at_the_first_difference() -> None:
    stage = Stage(differences_seen=[[DIFFERENCE]])
    findings, _ = await play(stage, [Do(name="a")], [Do(name="b")])
    assert stage.told == ["a", "quiet"]
    assert [finding.rule for finding in findings.all] == ["I3"]
    assert "a book differs" in findings.all[0].sentence


async def test_collected_a_difference_is_told_and_waited_for_once() -> None:
    stage = Stage(differences_seen=[[DIFFERENCE]])
    findings, record = await play(stage, [Do(name="a")], [Do(name="b")], collect=True)
    assert stage.told == ["a", "quiet", "b", "quiet"]
    assert len(findings.all) == 1
    assert record.recoveries[0].agreement > 0.2
    assert record.recoveries[1].agreement < 0.05


async def test_books_that_agree_in_time_are_no_difference() -> None:
    findings, record = await play(Stage(differences_seen=[[]]), [Breaks(), Do(name="a")])
    assert not findings.all
    assert [(recovery.faults, recovery.quiet) for recovery in record.recoveries] == [(("test.breaks",), 1.5)]


async def test_books_that_agree_too_late_are_a_difference() -> None:
    findings, _ = await play(Stage(differences_seen=[[DIFFERENCE], []]), [Do(name="a")])
    assert [finding.rule for finding in findings.all] == ["I3"]
    assert "a book differs" in findings.all[0].sentence


async def test_time_counts_from_the_last_quiet() -> None:
    """A controller makes another pod: its books are on their way."""
    seen = [[DIFFERENCE], [DIFFERENCE], []]
    findings, record = await play(Stage(differences_seen=seen, restless=2), [Do(name="a")])
    assert not findings.all
    assert record.recoveries[0].agreement < 0.05


async def test_what_does_not_become_quiet_is_a_difference() -> None:
    findings, _ = await play(Stage(is_quiet=False), [Do(name="a")])
    assert [finding.rule for finding in findings.all] == ["quiet"]


async def test_the_model_is_asked_at_the_end() -> None:
    stage = Stage()
    await play(stage, [Do(name="a")], [Do(name="b")])
    assert (stage.expected, stage.watched) == (1, 1)


class Stays(Breaks, frozen=True, kw_only=True, tag="test.stays"):
    async def heal(self, _: World) -> None:
        await asyncio.Event().wait()


class Idle(Breaks, frozen=True, kw_only=True, tag="test.idle"):
    """It shows only in the end that nobody asked for what it breaks."""

    async def heal(self, _: World) -> None:
        raise NothingHitError


async def test_a_fault_that_cannot_be_ended_says_which_it_is() -> None:
    with pytest.raises(FaultStaysError, match=r"test\.stays cannot be ended within 0\.2 s"):
        await play(Stage(), [Stays()])


async def test_what_an_operation_itself_has_seen_is_a_finding() -> None:
    findings, _ = await play(Stage(), [Fails(error=BreachError("I5", "it could be written"))])
    assert [str(finding) for finding in findings.all] == ["I5: it could be written"]


async def test_faults_that_hit_nothing_are_told() -> None:
    missing = Fails(error=NothingHitError("no container runs"))
    _, record = await play(Stage(), [missing] * OFTEN, [Idle()] * OFTEN, [Idle(seconds=0.01), Breaks()])
    assert record.missed == {"test.fails": OFTEN, "test.idle": OFTEN + 1}
    assert [finding.split()[0] for finding in record.in_vain()] == ["test.fails", "test.idle"]


async def test_a_kind_that_never_succeeds_is_told() -> None:
    refused = Fails(error=ApiError(404, "NotFound", "no such path"))
    _, record = await play(Stage(), [refused] * OFTEN, [Do(name="a")])
    (sentence,) = record.in_vain()
    assert sentence.startswith(f"test.fails was tried {OFTEN} times and never in force: ApiError: 404")


async def test_a_restless_cluster_hides_no_difference_that_stands() -> None:
    """Some pod comes again and again; what differs has nothing to do with it."""

    asked = itertools.count()

    class Restless(Stage):
        async def quiet(self, _world: World, *, seconds: float) -> Quiet:  # noqa: ARG002 - as the protocol has it
            return Quiet(0.0, at_once=next(asked) % 3 != 0)

    findings, _ = await play(Restless(differences_seen=[[DIFFERENCE]] * 3 + [[]]), [Do(name="a")])
    assert [finding.rule for finding in findings.all] == ["I3"]
    assert "stood though all was quiet time and again" in findings.all[0].sentence


@pytest.mark.parametrize("comes", [True, False], ids=["one comes", "nobody comes"])
async def test_a_pod_that_came_and_runs_by_the_next_look_was_on_its_way(*, comes: bool) -> None:
    asked = itertools.count()

    class Busy(Stage):
        async def quiet(self, _world: World, *, seconds: float) -> Quiet:  # noqa: ARG002 - as the protocol has it
            return Quiet(0.0, at_once=True, placed=frozenset({f"uid-{next(asked) * comes}"}))

    findings, record = await play(Busy(differences_seen=[[DIFFERENCE], []]), [Do(name="a")])
    assert ["agreed only" in finding.sentence for finding in findings.all] == ([] if comes else [True])
    assert (record.recoveries[-1].agreement < SOON.agreement) is comes


async def test_what_differed_on_the_way_is_told() -> None:
    other = replace(DIFFERENCE, sentence="another book differs")
    findings, _ = await play(Stage(differences_seen=[[DIFFERENCE], [other], []]), [Do(name="a")])
    (found,) = findings.all
    assert "a book differs (until 0.0 s); " in found.sentence
    assert "another book differs (until 0." in found.sentence


async def test_five_seconds_begin_when_all_books_can_be_read() -> None:
    unread = Difference(node="", kind=DifferenceKind.UNREADABLE, sentence="the ledger cannot be read")
    findings, _ = await play(Stage(differences_seen=[[unread], []]), [Do(name="a")])
    assert not findings.all
    findings, _ = await play(Stage(differences_seen=[[unread]]), [Do(name="a")])
    assert "the ledger cannot be read" in findings.all[0].sentence


async def test_a_pod_that_was_bound_past_the_schedulers_and_runs_without_units_is_deleted() -> None:
    """As the auditor advises; then all books have to agree."""
    stage = Stage(differences_seen=[[WITHOUT], []], bound_past_schedulers={"blind"})
    findings, record = await play(stage, [Do(name="a")])
    assert findings.all == []
    assert "deleted blind" in stage.told
    assert stage.drained == {"blind"}
    assert record.recoveries[-1].agreement < SOON.agreement


async def test_that_one_of_a_scheduler_s_runs_without_units_is_found() -> None:
    stage = Stage(differences_seen=[[WITHOUT]])
    findings, _ = await play(stage, [Do(name="a")])
    assert [finding.rule for finding in findings.all] == ["I3"]
    assert stage.drained == set()
