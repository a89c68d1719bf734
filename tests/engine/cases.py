"""The table of cases that both engines run: ``python -m tests.engine.cases --write`` writes it anew."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.engine.answers import answer, normal
from tests.engine.draw import KINDS, draw
from tests.engine.handmade import handmade

from gpushare_core.text.json_object import Json

TABLE = Path(__file__).with_name("cases.jsonl")
DRAWN = {
    "cluster": 40,
    "history": 20,
    "request": 25,
    "annotation": 20,
    "quantity": 10,
    "claim": 10,
    "unit": 10,
}
"""Kind of a case -> how many of it are drawn."""
MAX_BYTES = 4000
"""Of a case that is drawn: a smaller one is easier to understand."""
_FIRST_SEED = 1_000_000
_USUAL = 2**40


def table() -> Iterator[Json]:
    """Yields the cases with core's answers: those made by hand, then those drawn."""
    for case in handmade():
        yield case | {"answer": answer(case)}
    yield from _drawn()


def _drawn() -> Iterator[Json]:
    assert DRAWN.keys() == KINDS.keys()
    left, seed = Counter(DRAWN), _FIRST_SEED
    while left.total():
        seed += 1
        case = draw(seed)
        if not left[case["kind"]]:
            continue
        answered = case | {"answer": answer(case)}
        if len(written(answered)) <= MAX_BYTES and answered["answer"] == normal(answered["answer"]):
            left[case["kind"]] -= 1
            yield answered


def written(case: Json) -> str:
    return json.dumps(case, ensure_ascii=False)


def stored() -> list[Json]:
    """Returns the table as it is in the repository."""
    return [json.loads(line) for line in TABLE.read_text(encoding="utf-8").split("\n") if line]


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 1 where the table in the repository is not what core answers now."""
    parser = argparse.ArgumentParser(prog="python -m tests.engine.cases", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table; else only compare it")
    parsed = parser.parse_args(arguments)
    lines = "".join(f"{written(case)}\n" for case in table())
    if parsed.write:
        TABLE.write_text(lines, encoding="utf-8")
        return 0
    if TABLE.read_text(encoding="utf-8") == lines:
        return 0
    print(f"{TABLE} is not what core answers: python -m tests.engine.cases --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
