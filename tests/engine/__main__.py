"""Compares the two engines on cases drawn at random: ``python -m tests.engine --seeds 10000``."""

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.engine import go_engine
from tests.engine.answers import answer, normal
from tests.engine.draw import draw

from gpushare_core.text.json_object import Json
from gpushare_localcluster.build import toolchain
from gpushare_localcluster.cluster import to_stderr
from gpushare_localcluster.directories import cache_folder

BATCH = 500
"""Cases that are compared at once: they are in memory."""


class Difference(NamedTuple):
    """Where the two engines do not say the same."""

    case: Json
    path: str
    core: Any
    go: Any

    def __str__(self) -> str:
        place = f"{self.case['name']} ({self.case['kind']}) at {self.path}"
        return f"{place}\n  core: {self.core}\n  Go:   {self.go}"


def differences(program: Path, cases: Sequence[Json]) -> Iterator[Difference]:
    """Yields the cases to which ``program``, the Go engine, answers something else than core."""
    for case, told in zip(cases, go_engine.answers(program, cases), strict=True):
        ours, theirs = normal(answer(case)), normal(told)
        if ours != theirs:
            yield Difference(case, *first_difference(ours, theirs))


def first_difference(ours: Any, theirs: Any, path: str = "$") -> tuple[str, Any, Any]:
    """Returns where two answers differ, and what is there in each."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        key = next(key for key in ours if ours[key] != theirs[key])
        return first_difference(ours[key], theirs[key], f"{path}.{key}")
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        place = next(place for place, one in enumerate(ours) if one != theirs[place])
        return first_difference(ours[place], theirs[place], f"{path}[{place}]")
    return path, ours, theirs


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 where the engines differ; then it prints the first few differences."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first one (%(default)s)")
    parser.add_argument("--seeds", type=int, default=1000, help="how many cases (%(default)s)")
    parser.add_argument("--show", type=int, default=3, help="differences that are printed (%(default)s)")
    parser.add_argument("--cases", action="store_true", help="print their cases, too")
    parsed = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        go = toolchain.find_go(cache_folder(), report=to_stderr)
        program = go_engine.build(go, Path(folder) / "answer")
        seeds = range(parsed.seed, parsed.seed + parsed.seeds)
        kinds, found = _compare(program, seeds, show=parsed.show, with_case=parsed.cases)
    drawn = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    print(f"{kinds.total()} cases ({drawn}): {found} differences")
    return 1 if found else 0


def _compare(program: Path, seeds: range, *, show: int, with_case: bool) -> tuple[Counter[str], int]:
    """Returns how many cases of each kind there were, and how many differences."""
    kinds: Counter[str] = Counter()
    found = 0
    for begin in range(seeds.start, seeds.stop, BATCH):
        cases = [draw(seed) for seed in range(begin, min(begin + BATCH, seeds.stop))]
        kinds.update(case["kind"] for case in cases)
        for difference in differences(program, cases):
            found += 1
            if found <= show:
                print(difference, *([json.dumps(difference.case)] if with_case else []), sep="\n", flush=True)
    return kinds, found


if __name__ == "__main__":
    sys.exit(main())
