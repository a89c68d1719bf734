"""The table of cases says what core answers: the Go engine is held to it."""

import pytest
from tests.engine.answers import answer
from tests.engine.cases import DRAWN, stored
from tests.engine.draw import KINDS
from tests.engine.handmade import handmade

from gpushare_core.text.json_object import Json

CASES = stored()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_core_answers(case: Json) -> None:
    assert answer(case) == case["answer"], "python -m tests.engine.cases --write, if this is meant"


def test_the_table_has_every_case_made_by_hand_and_some_of_each_kind_drawn() -> None:
    by_hand = [*handmade()]
    assert [case["name"] for case in CASES[: len(by_hand)]] == [case["name"] for case in by_hand]
    kinds = [case["kind"] for case in CASES[len(by_hand) :]]
    assert {kind: kinds.count(kind) for kind in KINDS} == DRAWN


def test_no_two_cases_have_one_name() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES)
