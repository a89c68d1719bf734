import pytest

from gpushare_cli.completion.main import MAX_SECONDS, MOST_SECONDS, SECONDS_VARIABLE, max_seconds


@pytest.mark.parametrize("text", ["120", "1e9", "inf"])
def test_more_seconds_than_there_can_be_are_the_most(text: str) -> None:
    assert max_seconds({SECONDS_VARIABLE: text}) == MOST_SECONDS


def test_seconds_that_are_set_count() -> None:
    assert max_seconds({SECONDS_VARIABLE: "5"}) == 5


@pytest.mark.parametrize("text", ["", "soon", "-1", "0", "nan", "-inf"])
def test_seconds_that_make_no_sense_do_not_count(text: str) -> None:
    assert max_seconds({SECONDS_VARIABLE: text}) == MAX_SECONDS
    assert max_seconds({}) == MAX_SECONDS
