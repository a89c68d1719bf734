"""Only the best of the nodes that fit are offered, as many as each policy says; equal ones take turns."""

import dataclasses
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.samples.extender import asked, pod_request, pod_update, reference, share_node

from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.modes.table import MODES
from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.scheduling.fit.candidates import alike, offer, prioritize_nodes
from gpushare_core.scheduling.fit.filter import FilterResult, Narrowing, filter_nodes
from gpushare_core.scheduling.ledger.fit_index import Answer, Fit
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.share_node import ShareNode

NARROWED = Narrowing()


def nodes(
    *names: str, candidates: int = 2, strategy: Strategy = Strategy.BINPACK, score: int = 100
) -> list[ShareNode]:
    return [
        replace(share_node(name, strategy=strategy), candidates=candidates, compute_score=score)
        for name in names
    ]


def ledger_of(*share_nodes: ShareNode) -> Ledger:
    ledger = Ledger()
    ledger.replace_share_nodes(share_nodes)
    return ledger


def offered(ledger: Ledger, names: list[str], *, uid: str = "p", units: int = 4) -> FilterResult:
    return filter_nodes(ledger, names, uid=uid, request=pod_request(units), narrowing=NARROWED)


def test_the_best_pass_first_and_of_the_others_nothing_is_said() -> None:
    ledger = ledger_of(*nodes("n1", "n2", "n3"), share_node("full", 2))
    ledger.set_pod(pod_update("a", node="n3", c0=12))
    ledger.set_pod(pod_update("b", node="n2", c0=4))
    result = offered(ledger, ["n1", "n2", "n3", "full", "other"])
    assert result.passing == ["n3", "n2"]
    assert (result.left_out, result.failed) == (["n1"], {})
    assert sorted(result.unresolvable) == ["full", "other"]


def test_no_more_than_are_offered_stay_in_their_order() -> None:
    ledger = ledger_of(*nodes("n1", "n2", candidates=2), share_node("full", 2))
    ledger.set_pod(pod_update("a", node="n2", c0=12))
    result = offered(ledger, ["n1", "full", "n2"])
    assert (result.passing, result.left_out) == (["n1", "n2"], [])


def test_0_offers_all() -> None:
    names = [f"n{number}" for number in range(40)]
    ledger = ledger_of(*nodes(*names, candidates=0))
    assert offered(ledger, names) == FilterResult(names)


def test_each_policy_offers_its_own() -> None:
    few, many = [f"few{number}" for number in range(5)], [f"many{number}" for number in range(5)]
    spread = [f"spread{number}" for number in range(5)]
    ledger = ledger_of(
        *nodes(*few, candidates=1),
        *nodes(*many, candidates=3),
        *nodes(*spread, candidates=3, strategy=Strategy.SPREAD),
    )
    passing = offered(ledger, [*few, *many, *spread]).passing
    assert Counter(name.rstrip("01234") for name in passing) == {"few": 1, "many": 3, "spread": 3}


def test_with_binpack_the_same_of_equal_nodes_are_offered_to_every_pod() -> None:
    """Pods that follow one another closely do not see each other's units yet."""
    names = [f"n{number:02}" for number in range(50)]
    ledger = ledger_of(*nodes(*names, candidates=16))
    for uid in map(str, range(20)):
        asking = names[int(uid) :] + names[: int(uid)]  # kube-scheduler begins at another one each time
        assert offered(ledger, asking, uid=uid).passing == names[:16]


def test_with_spread_equal_nodes_take_turns() -> None:
    names = [f"n{number}" for number in range(50)]
    ledger = ledger_of(*nodes(*names, candidates=16, strategy=Strategy.SPREAD))
    passing = {uid: offered(ledger, names, uid=uid).passing for uid in map(str, range(1000))}
    assert all(len(set(value)) == 16 for value in passing.values())
    times = Counter(name for value in passing.values() for name in value)
    assert len(times) == 50
    assert max(times.values()) < 1.5 * 1000 * 16 / 50
    assert passing["7"] == offered(ledger, names, uid="7").passing, "the same pod, the same nodes"


def test_the_best_node_is_offered_to_all_pods_and_only_equal_ones_take_turns() -> None:
    names = [f"n{number}" for number in range(50)]
    ledger = ledger_of(*nodes(*names, candidates=16))
    ledger.set_pod(pod_update("a", node="n30", c0=12))
    assert all(offered(ledger, names, uid=str(uid)).passing[0] == "n30" for uid in range(20))


def test_the_nominated_node_is_offered_however_it_ranks() -> None:
    names = [f"n{number}" for number in range(8)]
    ledger = ledger_of(*nodes(*names), *nodes("slow", score=900))
    asking = [*names, "slow"]
    assert "slow" not in offered(ledger, asking).passing
    narrowing = Narrowing(nominated_node="slow")
    result = filter_nodes(ledger, asking, uid="p", request=pod_request(4), narrowing=narrowing)
    assert len(result.passing) == 3
    assert "slow" in result.passing
    assert "slow" not in result.left_out


def test_a_nominated_node_without_room_is_not_offered() -> None:
    ledger = ledger_of(*nodes("n1", "n2", "n3"), share_node("full", 2))
    narrowing = Narrowing(nominated_node="full")
    names = ["n1", "n2", "n3", "full"]
    result = filter_nodes(ledger, names, uid="p", request=pod_request(4), narrowing=narrowing)
    assert "full" in result.unresolvable


def test_a_node_where_units_are_held_for_the_pod_is_offered_however_it_ranks() -> None:
    names = [f"n{number}" for number in range(8)]
    ledger = ledger_of(*nodes(*names), *nodes("held", score=900))
    ledger.set_pod(pod_update("a", node="held", c0=16))
    ledger.hold(reference("p", uid="p"), node="held", request=pod_request(16), priority=1, until=9.0)
    asking = [*names, "held"]
    own = offered(ledger, asking, uid="p", units=16)
    assert len(own.passing) == 3
    assert "held" in own.passing
    assert "held" in offered(ledger, asking, uid="other", units=16).failed


def test_what_is_held_for_a_lesser_pod_is_taken_last() -> None:
    ledger = ledger_of(*nodes("n1", "n2"))
    for card in range(2):
        lesser = reference(f"lesser{card}")
        ledger.hold(lesser, node="n1", request=pod_request(16), priority=1, until=9.0)
    request = dataclasses.replace(pod_request(4), priority=2)

    def passing(names: list[str]) -> list[str]:
        return filter_nodes(ledger, names, uid="p", request=request, narrowing=NARROWED).passing

    assert passing(["n1"]) == ["n1"]
    ledger.replace_share_nodes(nodes("n1", "n2", candidates=1))
    assert passing(["n1", "n2"]) == ["n2"]


def test_a_pod_that_has_units_passes_where_it_has_them() -> None:
    names = [f"n{number}" for number in range(8)]
    ledger = ledger_of(*nodes(*names), *nodes("slow", score=900))
    ledger.reserve(reference("p", uid="p"), node="slow", request=asked(4))
    assert offered(ledger, [*names, "slow"], uid="p").passing == ["slow"]


@pytest.mark.parametrize("resource", ResourceClass)
def test_mixed_nodes_are_narrowed_as_well(resource: ResourceClass) -> None:
    mode = {"memory": "Memory", "slice": "Slices", "card": "Exclusive"}[resource]
    unit = {"memory": "1Gi", "slice": "1/2 card", "card": "1 card"}[resource]
    names = [f"n{number}" for number in range(20)]
    ledger = ledger_of(*(share_node(name, 2, 2, mode=MODES[mode], unit=unit) for name in names))
    request = PodRequest((asked(1, resource),))
    result = filter_nodes(ledger, names, uid="p", request=request, narrowing=NARROWED)
    assert len(result.passing) == 16
    assert len(result.left_out) == 4


NODE = st.builds(
    lambda used, score, candidates, strategy: (used, score, candidates, strategy),
    st.tuples(st.integers(0, 16), st.integers(0, 16)),
    st.sampled_from([100, 200]),
    st.sampled_from([0, 1, 2, 3]),
    st.sampled_from(Strategy),
)


@given(
    drawn=st.lists(NODE, min_size=1, max_size=12),
    units=st.integers(1, 16),
    uid=st.text(max_size=4),
    data=st.data(),
)
def test_those_offered_are_the_best_of_those_that_fit(
    drawn: list[tuple[tuple[int, int], int, int, Strategy]], units: int, uid: str, data: st.DataObject
) -> None:
    ledger = Ledger()
    for number, (used, score, candidates, strategy) in enumerate(drawn):
        name = f"n{number}"
        ledger.set_share_node(*nodes(name, candidates=candidates, strategy=strategy, score=score))
        for card, taken in enumerate(used):
            shares: Any = {f"c{card}": taken}
            ledger.set_pod(pod_update(f"{name}-{card}", node=name, **shares))
    names = data.draw(st.permutations([f"n{number}" for number in range(len(drawn) + 1)]))
    request = pod_request(units)
    every = filter_nodes(ledger, names, uid=uid, request=request)
    result = filter_nodes(ledger, names, uid=uid, request=request, narrowing=NARROWED)
    others = {*result.left_out}
    assert sorted([*result.passing, *others]) == sorted(every.passing)
    assert every.failed == result.failed
    assert every.unresolvable == result.unresolvable
    answers = dict(zip(names, ledger.answers(names, request), strict=True))
    scores = prioritize_nodes(ledger, every.passing, request)
    for name in others:
        left = answers[name]
        assert isinstance(left, Fit)
        chosen = [name for name in result.passing if _is_of(answers[name], left)]
        assert len(chosen) == left.candidates
        assert all(scores[name] >= scores[name] for name in chosen)
        assert all(fit.key <= left.key for name in chosen if isinstance(fit := answers[name], Fit))


def _is_of(answer: Answer, other: Fit) -> bool:
    """Whether both are of policies that say the same."""
    return isinstance(answer, Fit) and (answer.strategy, answer.candidates) == (
        other.strategy,
        other.candidates,
    )


@given(
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=12),
    st.integers(0, 4),
    st.text(max_size=3),
)
def test_every_node_that_fits_is_offered_or_left_out(kinds: list[str], most: int, uid: str) -> None:
    fits = {kind: Fit(Strategy.BINPACK, most, (ord(kind),)) for kind in "abc"}
    names = [f"{kind}{number}" for number, kind in enumerate(kinds)]
    made = offer(alike(names, [fits[kind] for kind in kinds]), uid=uid)
    assert sorted([*made.offered, *made.left_out]) == sorted(names)
    assert len(made.offered) == min(most or len(names), len(names))
    assert [name[0] for name in made.offered] == sorted(kinds)[: len(made.offered)]
