"""docs/audit.md says what the auditor does."""

from pathlib import Path

import pytest

from gpushare_core.audit.difference import DifferenceKind, Rule

TEXT = (Path(__file__).resolve().parents[4] / "docs" / "audit.md").read_text()


@pytest.mark.parametrize("rule", list(Rule))
def test_each_kind_stands_with_its_rule(rule: Rule) -> None:
    (row,) = (line for line in TEXT.splitlines() if line.startswith(f"| {rule} |"))
    named = {word.strip("` ") for word in row.rsplit("|", 2)[1].split(",")}
    assert named == {kind for kind in DifferenceKind if kind.rule is rule}


def test_the_kinds_that_may_never_be_seen_are_named_as_such() -> None:
    (line,) = (line for line in TEXT.split("\n\n") if "may never" in line)
    named = {kind for kind in DifferenceKind if f"`{kind}`" in line}
    assert named == {kind for kind in DifferenceKind if kind.at_once}
