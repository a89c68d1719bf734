"""The benchmark of the filter without a cluster asks what kube-scheduler would."""

import pytest
from bench.cluster.cluster_objects import Layout
from bench.filter_cost import filled_ledger, measure


@pytest.mark.parametrize(
    ("candidates", "passing"), [pytest.param(4, 4, id="the best"), pytest.param(0, 9, id="all with room")]
)
def test_as_many_pass_as_the_policy_offers(candidates: int, passing: int) -> None:
    layout = Layout(nodes=20)
    ledger = filled_ledger(layout, candidates=candidates)
    cost = measure(ledger, layout, names=10, units=4, count=3)
    assert cost.passing == passing
    assert 0 < cost.filter.p50 <= cost.filter.highest
