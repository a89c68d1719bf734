"""Rows ``scale`` at sizes of your choice: ``python -m bench.scale --nodes 5000,15000,50000``.

8 cards and 8 pods each. Needs no cluster, and at 50,000 nodes 4 GiB of memory. See docs/benchmarks.md.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace

from bench.__main__ import measure
from bench.measuring.size import FULL
from bench.rows.programs.scale import stages


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code: 0, or 1 when a row could not be measured."""
    options = parse(arguments)
    size = replace(
        FULL,
        scale_nodes=options.nodes,
        scale_seconds=options.seconds,
        book_pods=options.pods_per_node,
        calls=options.calls,
    )
    chosen = [stage for stage in stages(size) if options.only in stage.name]
    return measure(chosen)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.scale", description=__doc__)
    parser.add_argument("--nodes", type=numbers, default=FULL.scale_nodes, metavar="N,N")
    parser.add_argument("--pods-per-node", type=int, default=FULL.book_pods)
    parser.add_argument("--seconds", type=float, default=FULL.scale_seconds, help="of each thing watched")
    parser.add_argument(
        "--calls", type=int, default=FULL.calls, help="of the filter with each number of names"
    )
    parser.add_argument("--only", default="", choices=["", "extender", "memory"])
    return parser.parse_args(arguments)


def numbers(text: str) -> tuple[int, ...]:
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers such as 5000,50000") from None
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError("there must be nodes")
    return numbers


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
