"""What a run prints at its end: Markdown tables; and the same as JSON."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from chaos.operations.table import kinds_of
from chaos.record import Recovery
from chaos.run import Outcome

ALONE = "none"
"""Stands for a round without any fault."""
TOGETHER = "several at once"


def markdown(outcome: Outcome, *, seed: str) -> str:
    """Returns the tables of docs/robustness.md for one run."""
    figures = summary(outcome, seed=seed)
    return "\n\n".join(
        (
            _table("Run", ("figure", "value"), [(name, value) for name, value in figures.items()]),
            _table("Operations", ("kind", "times", "answers"), _outcomes(outcome, outcome.record.operations)),
            _table("Faults", ("kind", "times", "answers"), _outcomes(outcome, outcome.record.faults)),
            f"Kinds of faults that did not come up: {', '.join(_never(outcome)) or 'none'}",
            f"Hit nothing: {', '.join(f'{kind} {n}' for kind, n in outcome.record.missed.items()) or 'none'}",
            _table(
                "Seconds after a fault was over",
                ("fault", "rounds", "quiet p50", "quiet max", "books agree p50", "books agree max"),
                recovery_rows(outcome.record.recoveries),
            ),
            _table("Memory of our processes, MiB", ("program", "first", "last", "highest"), _memory(outcome)),
            _table(
                "Differences",
                ("promise", "what"),
                [(finding.rule, finding.sentence) for finding in outcome.findings.all],
            ),
        )
    )


def summary(outcome: Outcome, *, seed: str) -> dict[str, object]:
    record = outcome.record
    total = record.operations.total() + record.faults.total()
    return {
        "seed": seed,
        "engine": outcome.engine,
        "operations, faults included": total,
        "faults": record.faults.total(),
        "seconds": round(outcome.seconds, 1),
        "operations a second": round(total / outcome.seconds, 2) if outcome.seconds else 0,
        "faults that hit nothing": record.missed.total(),
        "readings of all books": outcome.readings,
        "readings that failed": outcome.unreadable,
        "longest reading, seconds": round(outcome.longest_reading, 1),
        "readings without a book": ", ".join(f"{book} {n}" for book, n in outcome.unread.items()) or "none",
        "ordinary pods": outcome.ordinary_pods,
        "longest wait of an ordinary pod, seconds": round(outcome.longest_wait, 1),
        "differences": len(outcome.findings.all),
    }


def write_json(path: Path, outcome: Outcome, *, seed: str) -> None:
    """The figures for machines."""
    content = {
        "summary": summary(outcome, seed=seed),
        "operations": outcome.record.operations,
        "faults": outcome.record.faults,
        "outcomes": outcome.record.outcomes,
        "hit nothing": outcome.record.missed,
        "recoveries": [recovery._asdict() for recovery in outcome.record.recoveries],
        "memory": outcome.memory,
        "differences": [
            {"rule": finding.rule, "sentence": finding.sentence} for finding in outcome.findings.all
        ],
    }
    path.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def recovery_rows(recoveries: Sequence[Recovery]) -> list[tuple[object, ...]]:
    """By kind of fault, where the round had a single one: only then its cost is known."""
    groups: dict[str, list[Recovery]] = defaultdict(list)
    for recovery in recoveries:
        groups[_group(recovery.faults)].append(recovery)
    return [
        (
            name,
            len(group),
            *_middle_and_most([outcome.quiet for outcome in group]),
            *_middle_and_most([outcome.agreement for outcome in group]),
        )
        for name, group in sorted(groups.items())
    ]


def _group(faults: Sequence[str]) -> str:
    if not faults:
        return ALONE
    return faults[0] if len(faults) == 1 else TOGETHER


def _middle_and_most(numbers: Sequence[float]) -> tuple[str, str]:
    ordered = sorted(numbers)
    return f"{ordered[math.ceil(len(ordered) / 2) - 1]:.1f}", f"{ordered[-1]:.1f}"


def _outcomes(outcome: Outcome, counts: Mapping[str, int]) -> list[tuple[object, ...]]:
    answers = outcome.record.outcomes
    return [
        (kind, times, ", ".join(f"{said} {n}" for said, n in answers[kind].most_common(3)))
        for kind, times in sorted(counts.items())
    ]


def _never(outcome: Outcome) -> list[str]:
    kinds = kinds_of(outcome.engine)
    return sorted(kind.name for kind in kinds if kind.is_fault and not outcome.record.faults[kind.name])


def _memory(outcome: Outcome) -> list[tuple[object, ...]]:
    return [
        (program, f"{numbers[0]:.0f}", f"{numbers[-1]:.0f}", f"{max(numbers):.0f}")
        for program, numbers in sorted(outcome.memory.items())
        if numbers
    ]


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    cells = [[str(cell).replace("|", "/").replace("\n", " ") for cell in row] for row in (header, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [_line(row, widths) for row in cells]
    return "\n".join(
        [f"### {title}\n", lines[0], _line(["-" * width for width in widths], widths), *lines[1:]]
    )


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"
