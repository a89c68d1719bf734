"""What Prometheus reads of the extender: few series, however many nodes and pods there are."""

import pytest
from prometheus_client import CollectorRegistry
from tests.samples.extender import pod_update, share_node

from gpushare_core.process.metrics import exposition
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.unfit_reason import Refusal
from gpushare_extender.bind.binder import BindResult
from gpushare_extender.cluster.watchers import WatchHealth
from gpushare_extender.decide.figures import ledger_figures
from gpushare_extender.evictions.eviction_call import EvictionOutcome
from gpushare_extender.verbs.metrics import ExtenderMetrics, show_figures

MAX_SERIES = 150


def shown(nodes: int) -> str:
    registry, ledger = CollectorRegistry(), Ledger()
    metrics = ExtenderMetrics(registry)
    watches = [WatchHealth("pods", lambda: 0.0, listed=True)]
    show_figures(registry, ledger, watches=watches, binds_under_way=lambda: 2)
    ledger.replace_share_nodes([share_node(f"n{number}") for number in range(nodes)])
    metrics.refused("uid-of-a", {Refusal.NO_ROOM, Refusal.NOT_SHARED})
    metrics.bind_ended(BindResult.BOUND)
    metrics.eviction_attempted(EvictionOutcome.REFUSED)
    return exposition(registry).decode()


@pytest.mark.parametrize(
    "line",
    [
        pytest.param('gpushare_extender_refusals_total{reason="NoRoom"} 1.0', id="refused"),
        pytest.param('gpushare_extender_refusals_total{reason="CardsTooSmall"} 0.0', id="not refused"),
        pytest.param('gpushare_extender_binds_total{result="Bound"} 1.0', id="bound"),
        pytest.param('gpushare_extender_binds_total{result="Refused"} 0.0', id="not bound"),
        pytest.param('gpushare_extender_evictions_total{result="Refused"} 1.0', id="eviction"),
        pytest.param("gpushare_extender_binds_under_way 2.0", id="binds under way"),
        pytest.param('gpushare_watch_listed{collection="pods"} 1.0', id="watch"),
        pytest.param('gpushare_extender_nodes{resource="gpushare.io/memory"} 2.0', id="nodes"),
        pytest.param('gpushare_extender_largest_free{resource="gpushare.io/memory"} 16.0', id="largest free"),
        pytest.param('gpushare_extender_request_duration_seconds_count{verb="bind"} 0.0', id="latency"),
    ],
)
def test_figures(line: str) -> None:
    assert line in shown(nodes=2).splitlines()


def test_5000_nodes_are_as_many_series_as_one() -> None:
    assert len(shown(nodes=5000).splitlines()) == len(shown(nodes=1).splitlines())
    assert len([line for line in shown(nodes=5000).splitlines() if line[0] != "#"]) <= MAX_SERIES


def test_the_largest_free_amount_is_what_is_left() -> None:
    ledger = Ledger()
    ledger.replace_share_nodes([share_node("n1")])
    ledger.set_pod(pod_update("x", node="n1", c0=14, c1=10))
    figures = {
        (ledger_figure.gauge.name, ledger_figure.labels): ledger_figure.value
        for ledger_figure in ledger_figures(ledger)
    }
    assert figures["gpushare_extender_largest_free", ("gpushare.io/memory",)] == 6
