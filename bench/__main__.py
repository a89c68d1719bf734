"""Measures every row of the table of targets and prints Markdown: ``make bench``, see docs/benchmarks.md."""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from bench.measuring.figures import Outcome, exit_code
from bench.measuring.machine_speed import MachineSpeed
from bench.measuring.report import durations, markdown, summary
from bench.measuring.runner import Selection, Stage, names, run, selected, unknown
from bench.measuring.size import SIZES, with_nodes
from bench.rows.table import names as known_rows
from bench.rows.table import stages

LOOK_SECONDS = 10.0
"""Between two looks at the machine, which take 0.7 s each: several rows are measured in less."""


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code: 0, or 1 when a row could not be measured."""
    options = parse(arguments)
    size = with_nodes(SIZES[options.size], options.nodes)
    chosen = selected(stages(size), Selection(names(options.rows), names(options.skip)))
    if not chosen:
        print(f"nothing is measured at size {options.size} of what is asked for", file=sys.stderr)
        return 1
    print(f"# Benchmarks, size {options.size}, {os.cpu_count()} processors", flush=True)
    return measure(chosen)


def measure(chosen: Iterable[Stage[Any]]) -> int:
    """Prints each row once it is measured, and what came of all; also of those before an interruption."""
    begun, outcomes, interrupted = time.monotonic(), list[Outcome](), False
    speed = MachineSpeed()
    speed.look()
    looked = time.monotonic()

    def tell(outcome: Outcome) -> None:
        nonlocal looked
        outcomes.append(outcome)
        print(f"\n{markdown(outcome)}", flush=True)
        if time.monotonic() - looked > LOOK_SECONDS:
            speed.look()
            looked = time.monotonic()

    try:
        asyncio.run(run(chosen, tell))
    except KeyboardInterrupt:
        interrupted = True
        print("\ninterrupted: the rows that are not shown are not measured")
    print(f"\n{summary(outcomes)}\n\n{durations(outcomes, time.monotonic() - begun)}")
    print(speed)
    return 1 if interrupted else exit_code(outcomes)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Returns the options. Exits with a message where a row is named that is none."""
    rows = known_rows()
    parser = argparse.ArgumentParser(prog="bench", description=__doc__, epilog=f"rows: {', '.join(rows)}")
    parser.add_argument("--size", choices=sorted(SIZES), default="quick", help="%(default)s")
    parser.add_argument("--rows", default="", metavar="ROW,ROW", help="only these")
    parser.add_argument("--skip", default="", metavar="ROW,ROW", help="all but these")
    parser.add_argument(
        "--nodes", type=_numbers, default=(), metavar="N,N", help="of clusters, instead of the size's own"
    )
    options = parser.parse_args(arguments)
    if wrong := unknown(Selection(names(options.rows), names(options.skip)), rows):
        parser.error(f"no row is called {', '.join(wrong)}; rows: {', '.join(rows)}")
    return options


def _numbers(text: str) -> tuple[int, ...]:
    found = tuple(int(part) for part in names(text))
    if not all(number > 0 for number in found):
        raise ValueError(text)
    return tuple(sorted(found))


if __name__ == "__main__":
    # Whoever ends it from outside gets what was measured as well, and no cluster stays.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
