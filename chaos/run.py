"""One history on one fresh cluster, from its start to what is left after the last policy."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaos.audit.auditor import Auditor
from chaos.audit.gather import Gatherer
from chaos.findings import Findings
from chaos.plan.history import Step
from chaos.record import Record
from chaos.runner import Runner
from chaos.teardown import take_back
from chaos.traffic import Traffic
from chaos.world import started


@dataclass(slots=True)
class Outcome:
    """What came of a history; seconds."""

    findings: Findings
    record: Record = field(default_factory=Record)
    start_seconds: float = 0.0
    seconds: float = 0.0
    """Of the history alone, all its quiet included."""
    longest_wait: float = 0.0
    """Of an ordinary pod."""
    ordinary_pods: int = 0
    readings: int = 0
    """How often all books were read."""


async def run(
    steps: Sequence[Step], folder: Path, *, say: Callable[[str], None], collect: bool = False
) -> Outcome:
    """Plays ``steps`` in a cluster that keeps its files in ``folder``."""
    begun, outcome = time.monotonic(), Outcome(Findings(say, collect))
    async with started(folder) as world, Gatherer(world) as gatherer:
        auditor = Auditor(gatherer, outcome.findings.add)
        runner = Runner(world, auditor, findings=outcome.findings, record=outcome.record, say=say)
        await runner.settle()
        outcome.start_seconds = time.monotonic() - begun
        say(f"ready after {outcome.start_seconds:.0f} s")
        traffic, begun = Traffic(world.client), time.monotonic()
        async with traffic.flowing():
            async with auditor.watching():
                await runner.play(steps)
            outcome.seconds = time.monotonic() - begun
            if not outcome.findings.are_enough:
                await take_back(world, outcome.findings)
        outcome.longest_wait, outcome.ordinary_pods = traffic.longest, len(traffic.created)
        outcome.readings = auditor.readings
    return outcome
