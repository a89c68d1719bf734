"""Better nodes get higher scores, whatever their number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.placement.card_choice import Card, Strategy
from gpushare_core.placement.node_ranking import BEST, Candidate, key_scores, ranking_key
from gpushare_core.placement.requests import ResourceClass

MEMORY, SLICE, CARD = ResourceClass
CLASSES = st.sampled_from(ResourceClass)


def candidates_of(resource: ResourceClass) -> st.SearchStrategy[Candidate]:
    return st.builds(
        Candidate,
        resource=st.just(resource),
        compute_score=st.integers(0, 3),
        allocated=st.integers(0, 3),
        holds=st.frozensets(CLASSES),
        left_over=st.integers(0, 16),
        free_cards=st.integers(0, 4),
        numa_nodes=st.integers(1, 2),
    )


def candidate(
    resource: ResourceClass = MEMORY,
    *,
    score: int = 100,
    allocated: int = 0,
    holds: tuple[ResourceClass, ...] = (),
    left_over: int = 8,
    free_cards: int = 4,
    numa_nodes: int = 1,
    link_groups: int = 1,
) -> Candidate:
    return Candidate(
        resource=resource,
        compute_score=score,
        allocated=allocated,
        holds=frozenset(holds),
        left_over=left_over,
        free_cards=free_cards,
        numa_nodes=numa_nodes,
        link_groups=link_groups,
    )


def rank(candidates: dict[str, Candidate], strategy: Strategy = Strategy.BINPACK) -> dict[str, int]:
    """Scores by name, of candidates for the same request."""
    keys = {name: ranking_key(candidate, strategy) for name, candidate in candidates.items()}
    scores = key_scores(keys.values())
    return {name: scores[key] for name, key in keys.items()}


SHARED = [
    pytest.param(
        candidate(score=10), candidate(holds=(MEMORY,), left_over=0), Strategy.BINPACK, id="slow first"
    ),
    pytest.param(candidate(holds=(MEMORY,)), candidate(left_over=0), Strategy.BINPACK, id="shared already"),
    pytest.param(
        candidate(SLICE, holds=(SLICE, CARD)),
        candidate(SLICE, holds=(MEMORY, CARD), left_over=0),
        Strategy.BINPACK,
        id="the same class already",
    ),
    pytest.param(
        candidate(holds=(MEMORY,), left_over=0),
        candidate(holds=(MEMORY,)),
        Strategy.BINPACK,
        id="fills up the card",
    ),
    pytest.param(
        candidate(SLICE, left_over=1, free_cards=0),
        candidate(SLICE, left_over=1),
        Strategy.BINPACK,
        id="fills up the node",
    ),
    pytest.param(candidate(), candidate(allocated=4), Strategy.SPREAD, id="spread: emptier node"),
    pytest.param(candidate(left_over=12), candidate(), Strategy.SPREAD, id="spread: emptier card"),
    pytest.param(candidate(score=10, allocated=9), candidate(), Strategy.SPREAD, id="spread: slow first too"),
]
WHOLE = [
    pytest.param(
        candidate(CARD),
        candidate(CARD, score=10, holds=(CARD,), free_cards=0),
        Strategy.BINPACK,
        id="fast first",
    ),
    pytest.param(
        candidate(CARD),
        candidate(CARD, holds=(CARD,), numa_nodes=2),
        Strategy.BINPACK,
        id="on one NUMA node",
    ),
    pytest.param(
        candidate(CARD),
        candidate(CARD, holds=(CARD,), link_groups=2),
        Strategy.BINPACK,
        id="of one link group",
    ),
    pytest.param(
        candidate(CARD),
        candidate(CARD, holds=(SLICE, CARD), free_cards=0),
        Strategy.BINPACK,
        id="not where others share",
    ),
    pytest.param(
        candidate(CARD, holds=(CARD,)),
        candidate(CARD, free_cards=0),
        Strategy.BINPACK,
        id="whole cards are held already",
    ),
    pytest.param(
        candidate(CARD, free_cards=0), candidate(CARD, free_cards=1), Strategy.BINPACK, id="fills the node up"
    ),
    pytest.param(candidate(CARD, allocated=9), candidate(CARD, score=10), Strategy.SPREAD, id="spread: fast"),
    pytest.param(candidate(CARD), candidate(CARD, allocated=4), Strategy.SPREAD, id="spread: emptier"),
]


@pytest.mark.parametrize(("better", "worse", "strategy"), [*SHARED, *WHOLE])
def test_the_better_node_scores_higher(better: Candidate, worse: Candidate, strategy: Strategy) -> None:
    scores = rank({"worse": worse, "better": better}, strategy)
    assert scores["better"] == BEST
    assert scores["worse"] < BEST


def test_equal_nodes_score_equally() -> None:
    assert set(rank({f"n{i}": candidate() for i in range(20)}).values()) == {BEST}


def test_no_node_no_score() -> None:
    assert rank({}) == {}


@given(
    CLASSES.flatmap(
        lambda name: st.dictionaries(st.text(max_size=4), candidates_of(name), min_size=1, max_size=200)
    ),
    st.sampled_from(Strategy),
)
def test_scores_keep_to_the_range_and_name_every_node(
    candidates: dict[str, Candidate], strategy: Strategy
) -> None:
    scores = rank(candidates, strategy)
    assert scores.keys() == candidates.keys()
    assert max(scores.values()) == BEST
    assert min(scores.values()) >= 0


@given(st.lists(candidates_of(ResourceClass.SLICE), min_size=12, max_size=60))
def test_a_worse_node_never_scores_higher(candidates: list[Candidate]) -> None:
    best_first = sorted(
        candidates,
        key=lambda candidate: (
            candidate.compute_score,
            SLICE not in candidate.holds,
            candidate.left_over,
            candidate.free_cards,
        ),
    )
    scores = rank({str(place): candidate for place, candidate in enumerate(best_first)})
    in_order = [scores[str(place)] for place in range(len(best_first))]
    assert in_order == sorted(in_order, reverse=True)


def card(index: int, allocated: int = 0, *, units: int = 4, healthy: bool = True, numa_node: int = 0) -> Card:
    return Card(f"GPU-{index}", index, units, allocated, healthy, numa_node)


def test_a_candidate_is_the_node_once_the_cards_are_taken() -> None:
    cards = (
        card(0, 3),
        card(1, numa_node=1),
        card(2),
        card(3, healthy=False),
        card(4, units=0),
    )
    assert Candidate.of_cards(
        cards,
        {"GPU-0": 1, "GPU-1": 1},
        resource=SLICE,
        holds=frozenset({SLICE}),
        compute_score=7,
    ) == Candidate(
        resource=SLICE,
        compute_score=7,
        allocated=3,
        holds=frozenset({SLICE}),
        left_over=3,
        free_cards=1,
        numa_nodes=2,
        link_groups=2,
    )
