"""One history on one fresh cluster, from its start to what is left after the last policy."""

import asyncio
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from chaos.audit.auditor import Auditor
from chaos.audit.gather import Gatherer
from chaos.background import background
from chaos.deadlines import DEADLINES, Deadlines
from chaos.expectations import Expectations
from chaos.findings import Finding, Findings
from chaos.footprint import Footprint
from chaos.plan.history import Step
from chaos.record import Record
from chaos.runner import Runner
from chaos.teardown import take_back
from chaos.traffic import Traffic
from chaos.verdict import verdict
from chaos.world import World, started
from gpushare_core.api.enums import Engine

THREADS = 32


@dataclass(slots=True)
class Outcome:
    """What came of a history; seconds."""

    findings: Findings
    engine: Engine = Engine.EXTENDER
    """The one that placed pods."""
    record: Record = field(default_factory=Record)
    seconds: float = 0.0
    """Of the history alone, all its quiet included."""
    longest_wait: float = 0.0
    """Of an ordinary pod."""
    ordinary_pods: int = 0
    readings: int = 0
    """How often all books were read."""
    unreadable: int = 0
    """How often they could not be read."""
    longest_reading: float = 0.0
    unread: Mapping[str, int] = field(default_factory=dict)
    """Book -> number of readings without it, such as the book of a paused kubelet."""
    memory: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Program and node -> resident MiB, in order of time."""


async def run(
    steps: Sequence[Step],
    folder: Path,
    outcome: Outcome,
    *,
    say: Callable[[str], None],
    keep: bool = False,
    deadlines: Deadlines = DEADLINES,
) -> None:
    """Plays ``steps`` in a fresh cluster that keeps its files in ``folder``, and fills ``outcome``.

    Ends at the first difference unless they are to be collected; with ``keep`` the cluster of a difference
    waits for Ctrl-C. Whatever goes wrong is a finding, so that there is a report of what was seen before.
    """
    try:
        await _on_a_cluster(steps, folder, outcome, say=say, keep=keep, deadlines=deadlines)
    except Exception as error:
        say(traceback.format_exc())
        outcome.findings.add(Finding(rule="run", sentence=f"it ended: {type(error).__name__}: {error}"))


async def _on_a_cluster(
    steps: Sequence[Step],
    folder: Path,
    outcome: Outcome,
    *,
    say: Callable[[str], None],
    keep: bool,
    deadlines: Deadlines,
) -> None:
    begun = time.monotonic()
    # Blocking calls take minutes at times, and reading the books must not wait for them.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    async with started(folder, outcome.engine) as world, Gatherer(world) as gatherer:
        auditor = Auditor(gatherer, outcome.findings.add)
        expectations = Expectations(
            world, findings=outcome.findings, record=outcome.record, deadlines=deadlines
        )
        runner = Runner(
            world,
            auditor,
            expectations,
            findings=outcome.findings,
            record=outcome.record,
            say=say,
            deadlines=deadlines,
        )
        await runner.settle()
        say(f"ready after {time.monotonic() - begun:.0f} s")
        outcome.record.recoveries.clear()
        async with expectations.following():
            traffic = Traffic(world.client, outcome.findings.add, longest_wait=deadlines.ordinary)
            await _play(steps, world, runner, auditor, traffic, outcome, gone_after=deadlines.healing)
        if keep and outcome.findings.all:
            say(f"the cluster stays up until Ctrl-C: export KUBECONFIG={world.cluster.kubeconfig}")
            await asyncio.Event().wait()


async def _play(
    steps: Sequence[Step],
    world: World,
    runner: Runner,
    auditor: Auditor,
    traffic: Traffic,
    outcome: Outcome,
    *,
    gone_after: float,
) -> None:
    report = outcome.findings.add
    footprint, begun = Footprint(), time.monotonic()
    outcome.memory = footprint.memory
    measuring = background(footprint.watch(world), name="who measures memory", report=report)
    try:
        async with measuring, traffic.flowing():
            async with auditor.watching():
                try:
                    await runner.play(steps)
                finally:
                    outcome.seconds = time.monotonic() - begun
            if not outcome.findings.are_enough:
                await take_back(world, outcome.findings, seconds=gone_after)
        for name in traffic.waiting:
            report(Finding(rule="I6", sentence=f"ordinary pod {name} finds no node"))
        for finding in verdict(
            outcome.record,
            readings=auditor.readings,
            unreadable=auditor.unreadable,
            memory=footprint.memory,
        ):
            report(finding)
    finally:
        outcome.longest_wait, outcome.ordinary_pods = traffic.longest, len(traffic.created)
        outcome.readings, outcome.unreadable = auditor.readings, auditor.unreadable
        outcome.longest_reading, outcome.unread = auditor.longest, auditor.unread
