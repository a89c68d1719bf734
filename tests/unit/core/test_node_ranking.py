"""Better nodes get higher scores, whatever their number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.node_ranking import BEST, Candidate, rank

CANDIDATES = st.builds(
    Candidate, compute_score=st.integers(0, 3), allocated=st.integers(0, 3), left_over=st.integers(0, 16)
)


def candidate(*, compute_score: int = 100, allocated: int = 0, left_over: int = 8) -> Candidate:
    return Candidate(compute_score=compute_score, allocated=allocated, left_over=left_over)


@pytest.mark.parametrize(
    ("better", "worse", "strategy"),
    [
        pytest.param(
            candidate(compute_score=10),
            candidate(allocated=4, left_over=0),
            Strategy.BINPACK,
            id="slow first",
        ),
        pytest.param(candidate(allocated=4), candidate(left_over=0), Strategy.BINPACK, id="shared already"),
        pytest.param(
            candidate(allocated=4, left_over=0),
            candidate(allocated=9),
            Strategy.BINPACK,
            id="fills up the card",
        ),
        pytest.param(candidate(), candidate(allocated=4), Strategy.SPREAD, id="spread: emptier node"),
        pytest.param(candidate(left_over=12), candidate(), Strategy.SPREAD, id="spread: emptier card"),
        pytest.param(
            candidate(compute_score=10, allocated=9),
            candidate(),
            Strategy.SPREAD,
            id="spread: slow first too",
        ),
    ],
)
def test_the_better_node_scores_higher(better: Candidate, worse: Candidate, strategy: Strategy) -> None:
    scores = rank({"worse": worse, "better": better}, strategy)
    assert scores["better"] == BEST
    assert scores["worse"] < BEST


def test_equal_nodes_score_equally() -> None:
    assert set(rank({f"n{i}": candidate() for i in range(20)}).values()) == {BEST}


def test_no_node_no_score() -> None:
    assert rank({}) == {}


@given(st.dictionaries(st.text(max_size=4), CANDIDATES, min_size=1, max_size=200), st.sampled_from(Strategy))
def test_scores_keep_to_the_range_and_name_every_node(
    candidates: dict[str, Candidate], strategy: Strategy
) -> None:
    scores = rank(candidates, strategy)
    assert scores.keys() == candidates.keys()
    assert max(scores.values()) == BEST
    assert min(scores.values()) >= 0


@given(st.lists(CANDIDATES, min_size=12, max_size=60, unique=True))
def test_a_worse_node_never_scores_higher(candidates: list[Candidate]) -> None:
    best_first = sorted(
        candidates, key=lambda each: (each.compute_score, each.allocated == 0, each.left_over)
    )
    scores = rank({str(place): each for place, each in enumerate(best_first)})
    in_order = [scores[str(place)] for place in range(len(best_first))]
    assert in_order == sorted(in_order, reverse=True)
