"""Books on their way are no alarm: a difference counts when it has lasted."""

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from gpushare_core.audit.difference import Difference, DifferenceKind, LastingDifferences

ONE = Difference(
    node="n1", kind=DifferenceKind.SHARES_DIFFER, pod="default/a", sentence="4 units here, 0 there"
)
OTHER = replace(ONE, pod="default/b")


def test_a_difference_counts_when_it_has_lasted() -> None:
    lasting = LastingDifferences()
    assert lasting.look([ONE], now=100.0) == []
    assert lasting.look([ONE, OTHER], now=104.9) == []
    assert lasting.look([ONE, OTHER], now=105.0) == [ONE]
    assert lasting.look([ONE, OTHER], now=109.9) == [ONE, OTHER]


def test_a_difference_that_was_away_begins_anew() -> None:
    lasting = LastingDifferences()
    lasting.look([ONE], now=100.0)
    lasting.look([], now=103.0)
    assert lasting.look([ONE], now=106.0) == []
    assert lasting.look([ONE], now=111.0) == [ONE]


def test_other_figures_are_the_same_difference_and_the_newest_are_told() -> None:
    lasting = LastingDifferences()
    lasting.look([ONE], now=100.0)
    changed = replace(ONE, sentence="6 units here, 0 there")
    assert lasting.look([changed], now=105.0) == [changed]


def test_the_next_look_is_due_when_one_will_have_lasted() -> None:
    lasting = LastingDifferences()
    assert lasting.seconds_until_due(now=0.0) is None
    lasting.look([ONE], now=100.0)
    lasting.look([ONE, OTHER], now=102.0)
    assert lasting.seconds_until_due(now=103.0) == 2.0
    lasting.look([ONE, OTHER], now=105.0)
    assert lasting.seconds_until_due(now=105.0) == 2.0
    lasting.look([ONE, OTHER], now=107.0)
    assert lasting.seconds_until_due(now=107.0) is None


@given(since=st.floats(0.0, 1e6), now=st.floats(0.0, 1e6))
@example(since=127.77539769099924, now=132.77539769099923)
def test_who_waits_until_it_is_due_finds_it_and_never_waits_for_nothing(since: float, now: float) -> None:
    """Sums and differences of clocks are rounded: a look for nothing was due again at once, for ever."""
    lasting = LastingDifferences()
    lasting.look([ONE], now=since)
    due = lasting.seconds_until_due(now=max(since, now))
    if due is not None:
        assert due > 0.0
        assert lasting.look([ONE], now=max(since, now) + due) == [ONE]
