"""Breaks everything on purpose: ``python -m chaos --seed 1 --operations 1000`` (``make chaos``)."""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from chaos.findings import Finding, Findings
from chaos.operations.table import kinds_of
from chaos.plan import history
from chaos.plan.generator import history as drawn
from chaos.plan.history import Step
from chaos.report import markdown, write_json
from chaos.run import Outcome, run
from chaos.shrink import shortest_failing_prefix
from gpushare_core.api.enums import Engine
from gpushare_localcluster.directories import cluster_folder

Say = Callable[[str], None]
HISTORY = "history.jsonl"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="which history (%(default)s)")
    parser.add_argument("--operations", type=int, default=200, help="how long it is (%(default)s)")
    parser.add_argument(
        "--history", type=Path, help="play this file instead; --operations takes a prefix of it"
    )
    parser.add_argument(
        "--engine",
        type=Engine,
        choices=[*Engine],
        default=Engine.EXTENDER,
        help="what places pods: the extender beside the cluster's own scheduler, or a kube-scheduler with the"
        " plugin (%(default)s)",
    )
    parser.add_argument("--folder", type=Path, help="for the cluster with its logs, history and report")
    parser.add_argument(
        "--keep-going", action="store_true", help="collect differences, do not end at the first"
    )
    parser.add_argument("--keep", action="store_true", help="leave the cluster running after a difference")
    parser.add_argument(
        "--shrink-minutes",
        type=float,
        default=0.0,
        help="after a difference, how long to look for the shortest failing prefix (%(default)s)",
    )
    return parser.parse_args(arguments)


def main() -> int:
    options = parse(sys.argv[1:])
    folder = (options.folder or cluster_folder(_folder_name(options))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    steps, say = _steps(options), _sayer()
    history.write(folder / HISTORY, steps)
    say(f"seed {options.seed}, {len(steps)} operations; {folder / HISTORY} has them")
    outcome = Outcome(Findings(say, collect=options.keep_going), options.engine)
    try:
        asyncio.run(run(steps, folder, outcome, say=say, keep=options.keep))
    except KeyboardInterrupt:
        say("interrupted; this is what was seen until then")
        outcome.findings.add(Finding(rule="run", sentence="it was interrupted"))
        options.shrink_minutes = 0
    seed = str(options.history or options.seed)
    print(markdown(outcome, seed=seed), flush=True)
    write_json(folder / "report.json", outcome, seed=seed)
    if not outcome.findings.all:
        return 0
    again = f"python -m chaos --engine {options.engine} --history {folder / HISTORY} --operations"
    _tell_failure(outcome.findings.all, steps, folder=folder, again=again, say=say)
    if options.shrink_minutes > 0:
        minutes = options.shrink_minutes
        asyncio.run(_shrink(steps, outcome, folder, minutes=minutes, again=again, say=say))
    return 1


def _folder_name(options: argparse.Namespace) -> str:
    """Keeps the file of a history that is played again, and its logs."""
    again = options.history
    if again:
        return f"{again.absolute().parent.name}-again"
    return f"chaos-{options.seed}" if options.engine is Engine.EXTENDER else f"chaos-plugin-{options.seed}"


def _steps(options: argparse.Namespace) -> list[Step]:
    if options.history:
        return history.read(options.history)[: options.operations]
    return drawn(options.seed, options.operations, kinds_of(options.engine))


def _sayer() -> Say:
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begun:6.1f} s] {text}", flush=True)

    return say


def _tell_failure(
    findings: Sequence[Finding], steps: Sequence[Step], *, folder: Path, again: str, say: Say
) -> None:
    say(f"{len(findings)} differences with {len(steps)} operations:")
    for finding in findings:
        say(f"  {finding}")
    say(f"history: {folder / HISTORY}; logs of the cluster: {folder / 'logs'} and {folder / 'nodes'}")
    say(f"again: {again} {len(steps)}")


async def _shrink(
    steps: list[Step], outcome: Outcome, folder: Path, *, minutes: float, again: str, say: Say
) -> None:
    deadline = time.monotonic() + 60 * minutes
    rules = {finding.rule for finding in outcome.findings.all}

    async def fails(length: int) -> bool:
        say(f"shrinking: the first {length} operations on a fresh cluster")
        seen = Outcome(Findings(_silent), outcome.engine)
        await run(steps[:length], folder / f"prefix-{length}", seen, say=_silent)
        for finding in seen.findings.all:
            say(f"  {finding}")
        # Something else that went wrong, such as a machine that is too slow, is no shorter way to the same.
        return not rules.isdisjoint(finding.rule for finding in seen.findings.all)

    length = await shortest_failing_prefix(
        min(len(steps), outcome.record.last_number or len(steps)),
        fails,
        may_go_on=lambda: time.monotonic() < deadline,
    )
    say(f"the shortest prefix that was seen to fail has {length} operations")
    say(f"again: {again} {length}")


def _silent(_: str) -> None:
    return


if __name__ == "__main__":
    os.environ.pop("KUBECONFIG", None)
    # Whoever ends it from outside gets the report as well, and nothing stays.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
