"""Break everything on purpose: ``python -m chaos --seed 1 --operations 1000``."""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from chaos.operations.table import KINDS
from chaos.plan import history
from chaos.plan.generator import history as drawn
from chaos.plan.history import Step
from chaos.run import Outcome, run
from gpushare_localcluster.directories import cluster_folder

NAME = "chaos"


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="which history (%(default)s)")
    parser.add_argument("--operations", type=int, default=200, help="how long it is (%(default)s)")
    parser.add_argument(
        "--history", type=Path, help="play this file instead; --operations takes a prefix of it"
    )
    parser.add_argument("--folder", type=Path, help="for the cluster, the history and the report")
    parser.add_argument(
        "--keep-going", action="store_true", help="collect differences, do not end at the first"
    )
    return parser.parse_args(arguments)


def main() -> int:
    options = parse(sys.argv[1:])
    folder = options.folder or cluster_folder(f"{NAME}-{options.seed}")
    folder.mkdir(parents=True, exist_ok=True)
    steps = _steps(options)
    history.write(folder / "history.jsonl", steps)
    say = _sayer()
    outcome = asyncio.run(run(steps, folder, say=say, collect=options.keep_going))
    tell(outcome, say)
    return 1 if outcome.findings.all else 0


def _steps(options: argparse.Namespace) -> list[Step]:
    if options.history:
        return history.read(options.history)[: options.operations]
    return drawn(options.seed, options.operations, KINDS)


def _sayer() -> Callable[[str], None]:
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begun:6.1f} s] {text}", flush=True)

    return say


def tell(outcome: Outcome, say: Callable[[str], None]) -> None:
    say(
        f"{outcome.record.operations.total()} operations, {outcome.record.faults.total()} faults in"
        f" {outcome.seconds:.0f} s, {outcome.readings} readings of all books, longest wait of"
        f" {outcome.ordinary_pods} ordinary pods {outcome.longest_wait:.1f} s,"
        f" {len(outcome.findings.all)} differences"
    )
    for kind, outcomes in sorted(outcome.record.outcomes.items()):
        say(f"{kind}: {dict(outcomes.most_common(4))}")


if __name__ == "__main__":
    os.environ.pop("KUBECONFIG", None)
    sys.exit(main())
