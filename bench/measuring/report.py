"""What ``make bench`` prints: Markdown, so that it can be pasted into docs/benchmarks.md as it is."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from bench.measuring.figures import Figure, Outcome, Target

HEADER = ("figure", "target", "measured", "reached")
SIGNIFICANT = 3


def markdown(outcome: Outcome) -> str:
    """Returns the section of one row."""
    title = f"### {outcome.title} ({outcome.row}; {outcome.stage})"
    if not outcome.is_measured:
        return f"{title}\n\nnot measured: {outcome.problem}"
    return f"{title}\n\n{table(HEADER, [_row(figure) for figure in outcome.figures])}"


def summary(outcomes: Sequence[Outcome]) -> str:
    """Returns which targets are reached, which are missed, and what could not be measured."""
    judged = [(figure, outcome) for outcome in outcomes for figure in outcome.figures if figure.target]
    missed = [(target, outcome) for target, outcome in judged if not target.reached]
    unmeasured = [outcome for outcome in outcomes if not outcome.is_measured]
    lines = [
        f"{len(judged) - len(missed)} of {len(judged)} targets reached; {len(unmeasured)} rows not measured.",
        *(f"- missed: {_sentence(target)} ({outcome.row}, {outcome.stage})" for target, outcome in missed),
        *(f"- not measured: {outcome.row}, {outcome.stage}: {outcome.problem}" for outcome in unmeasured),
    ]
    return "\n".join(["## Summary", "", *lines])


def durations(outcomes: Sequence[Outcome], seconds: float) -> str:
    """Returns how long each row took, in stages, out of ``seconds`` that all took."""
    rest = seconds - sum(outcome.seconds for outcome in outcomes)
    took = f"{_by_stage(outcomes)}; besides the rows, such as to start clusters, {rest:.0f} s"
    return f"It took {seconds:.0f} s: {took}."


def _by_stage(outcomes: Iterable[Outcome]) -> str:
    parts = []
    for stage, rows in groupby(outcomes, key=lambda outcome: outcome.stage):
        parts.append(f"{stage}: " + ", ".join(f"{row.row} {row.seconds:.0f} s" for row in rows))
    return "; ".join(parts)


def number(value: float) -> str:
    """Returns three significant digits, and all digits of larger numbers."""
    if value == 0 or abs(value) >= 10 ** (SIGNIFICANT - 1):
        return f"{value:,.0f}"
    text = f"{value:.{SIGNIFICANT}g}"
    return f"{value:.6f}".rstrip("0").rstrip(".") if "e" in text else text


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table, columns padded so that it reads well in a terminal too."""
    cells = [tuple(header), *map(tuple, rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = [_line(row, widths) for row in cells]
    return "\n".join([lines[0], _line(["-" * width for width in widths], widths), *lines[1:]])


def _row(figure: Figure) -> tuple[str, str, str, str]:
    reached = {True: "yes", False: "no", None: ""}[figure.reached]
    return figure.what, _target(figure.target, figure.unit), _measured(figure), reached


def _sentence(figure: Figure) -> str:
    return f"{figure.what}: {_measured(figure)}, target {_target(figure.target, figure.unit)}"


def _target(target: Target | None, unit: str) -> str:
    return _with_unit(f"{target.bound.value} {target.value:g}", unit) if target else ""


def _measured(figure: Figure) -> str:
    """What rounding would make equal to a target that is missed is shown with more digits."""
    text = number(figure.measured)
    if figure.reached is False and figure.target and float(text.replace(",", "")) == figure.target.value:
        text = f"{figure.measured:.6g}"
    return _with_unit(text, figure.unit)


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {unit}".rstrip()


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return f"| {' | '.join(padded)} |"
