"""What people read of it."""

import pytest
from bench.measuring.figures import Figure, Outcome, at_least, at_most
from bench.measuring.report import durations, markdown, number, summary

SHARED = Outcome(
    "shared",
    "Shared pods",
    "100 nodes",
    (Figure("plain pods", 312.4, "pods/s"), Figure("shared over plain", 0.34, target=at_least(0.8))),
    seconds=12.3,
)
FAST = Outcome("start", "Start", "100 nodes", (Figure("start", 0.5, "s", at_most(1)),), seconds=2.0)
GONE = Outcome("cpu", "Processor", "1,000 nodes", problem="TimeoutError: the cluster is not ready")


def test_a_row_is_a_table_with_target_figure_and_whether_it_is_reached() -> None:
    assert markdown(SHARED).splitlines() == [
        "### Shared pods (shared; 100 nodes)",
        "",
        "| figure            | target | measured   | reached |",
        "| ----------------- | ------ | ---------- | ------- |",
        "| plain pods        |        | 312 pods/s |         |",
        "| shared over plain | >= 0.8 | 0.34       | no      |",
    ]


def test_a_row_that_failed_says_why() -> None:
    assert markdown(GONE).endswith("\n\nnot measured: TimeoutError: the cluster is not ready")


def test_the_summary_counts_what_is_judged_and_names_the_rest() -> None:
    assert summary([SHARED, FAST, GONE]).splitlines()[2:] == [
        "1 of 2 targets reached; 1 rows not measured.",
        "- missed: shared over plain: 0.34, target >= 0.8 (shared, 100 nodes)",
        "- not measured: cpu, 1,000 nodes: TimeoutError: the cluster is not ready",
    ]


def test_how_long_each_row_took_and_the_clusters_besides() -> None:
    assert durations([SHARED, FAST, GONE], 40.3) == (
        "It took 40 s: 100 nodes: shared 12 s, start 2 s; 1,000 nodes: cpu 0 s;"
        " besides the rows, such as to start clusters, 26 s."
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.34, "0.34"),
        (0.00001234, "0.000012"),
        (1.0, "1"),
        (12.345, "12.3"),
        (312.4, "312"),
        (40_000.0, "40,000"),
        (-0.5, "-0.5"),
    ],
)
def test_numbers_have_three_significant_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_rounding_never_makes_a_missed_target_look_reached() -> None:
    outcome = Outcome("a", "A", "s", (Figure("x", 1.3004, target=at_most(1.3)),))
    assert "| x      | <= 1.3 | 1.3004   | no      |" in markdown(outcome)
