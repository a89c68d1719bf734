"""Simulates a cluster: ``python -m tests.simulation --seed 1 --operations 1000 --mode Memory``."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.engine.go_engine import build
from tests.samples.pod_shapes import SPECS
from tests.simulation.go_engine import GoEngines
from tests.simulation.operations import Step, draw
from tests.simulation.runner import Outcome, failure, fewest, run

from gpushare_core.api.enums import Engine
from gpushare_localcluster.build import toolchain
from gpushare_localcluster.cluster import to_stderr
from gpushare_localcluster.directories import cache_folder

HASHES = "PYTHONHASHSEED"
"""Without it sets of texts have another order in each process, and a seed would not determine everything."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 where all books agreed, 1 where they did not; then it prints the fewest steps to that."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first one (%(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="how many, one after the other (%(default)s)")
    parser.add_argument("--operations", type=int, default=1000, help="for each seed and mode (%(default)s)")
    parser.add_argument("--mode", action="append", choices=[*SPECS], help="all of them, if not given")
    parser.add_argument(
        "--engine", choices=[*Engine], default=Engine.EXTENDER, help="what places pods (%(default)s)"
    )
    parser.add_argument("--shrink", type=int, default=300, help="runs that finding the fewest steps may take")
    parsed = parser.parse_args(arguments)
    if os.environ.get(HASHES) != "0":
        again = [
            sys.executable,
            "-m",
            "tests.simulation",
            *(sys.argv[1:] if arguments is None else arguments),
        ]
        return subprocess.run(again, env={**os.environ, HASHES: "0"}, check=False).returncode
    failed = 0
    with engines_of(parsed.engine) as go_engines:
        for seed in range(parsed.seed, parsed.seed + parsed.seeds):
            for mode in parsed.mode or SPECS:
                steps = draw(seed, parsed.operations)
                failed += not _simulate(mode, seed, steps, shrink=parsed.shrink, go_engines=go_engines)
    return 1 if failed else 0


@contextmanager
def engines_of(engine: str) -> Iterator[GoEngines | None]:
    """Yields what decides where pods go; None where extenders do."""
    if engine == Engine.EXTENDER:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        go = toolchain.find_go(cache_folder(), report=to_stderr)
        engines = GoEngines(build(go, Path(folder) / "serve", "./internal/simulation/serve"))
        try:
            yield engines
        finally:
            engines.close()


def _simulate(mode: str, seed: int, steps: list[Step], *, shrink: int, go_engines: GoEngines | None) -> bool:
    begun = time.monotonic()
    try:
        outcome = run(mode, seed, steps, go_engines=go_engines)
    except Exception as error:
        print(f"{mode} seed {seed}: {type(error).__name__} {error}", flush=True)
        if shrink:
            needed = fewest(mode, seed, steps, tries=shrink, go_engines=go_engines)
            again = failure(mode, seed, needed, go_engines=go_engines)
            print("fewest steps:", *needed, f"there: {again}", sep="\n  ", flush=True)
        return False
    _print(mode, seed, outcome, time.monotonic() - begun)
    return True


def _print(mode: str, seed: int, outcome: Outcome, took: float) -> None:
    agreed = sorted(outcome.agreed_after)
    print(
        f"{mode} seed {seed}: {outcome.steps} operations in {took:.1f} s"
        f" ({outcome.virtual_seconds:.0f} s of the cluster);"
        f" books agreed after p50 {agreed[len(agreed) // 2]:.2f} s, max {agreed[-1]:.2f} s of quiet",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
