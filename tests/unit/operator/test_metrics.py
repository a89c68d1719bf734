"""What Prometheus reads of the operator."""

from collections.abc import Iterable

import pytest
from prometheus_client import CollectorRegistry

from gpushare_core.api.policy_status import PolicyStatus
from gpushare_core.process.metrics import exposition
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.process.metrics import OperatorMetrics, show_figures
from gpushare_operator.reconcile import CLUSTER
from gpushare_operator.work_queue import WorkQueue

POLICY = PolicyObject(
    name="default",
    uid="uid",
    spec=None,
    status=PolicyStatus.from_json(
        {
            "nodes": {"enabled": 5000, "ready": 4999},
            "cards": {"total": 40000, "healthy": 39990},
            "units": {"total": 640000, "allocated": 1000},
            "memory": {"total": "640000Gi", "allocated": "1000Gi", "used": "1Gi"},
        }
    ),
)


def shown(registry: CollectorRegistry) -> list[str]:
    return exposition(registry).decode().splitlines()


def registry_of(policies: Iterable[PolicyObject]) -> CollectorRegistry:
    registry, queue = CollectorRegistry(), WorkQueue(clock=lambda: 7.0)
    queue.add("default")
    show_figures(registry, queue, lambda: policies, is_at_work=lambda: True)
    return registry


@pytest.mark.parametrize(
    "line",
    [
        pytest.param('gpushare_policy_nodes{policy="default",state="not_ready"} 1.0', id="nodes"),
        pytest.param('gpushare_policy_cards{health="Unhealthy",policy="default"} 10.0', id="cards"),
        pytest.param('gpushare_policy_units{policy="default",state="free"} 639000.0', id="units"),
        pytest.param('gpushare_policy_memory_used_bytes{policy="default"} 1.073741824e+09', id="used"),
        pytest.param("gpushare_operator_queue_keys 1.0", id="queue"),
        pytest.param("gpushare_operator_queue_silence_seconds 0.0", id="a queue that was not started"),
        pytest.param("gpushare_operator_at_work 1.0", id="it has the Lease"),
    ],
)
def test_figures(line: str) -> None:
    assert line in shown(registry_of([POLICY]))


def test_without_a_policy_the_names_are_there_and_no_figures() -> None:
    lines = shown(registry_of([]))
    assert "# TYPE gpushare_policy_nodes gauge" in lines
    assert not any(line.startswith("gpushare_policy_nodes{") for line in lines)


async def test_work_is_counted_by_its_result_and_goes_on_as_it_was() -> None:
    registry = CollectorRegistry()
    times = iter([0.0, 2.0, 3.0, 3.5])
    metrics = OperatorMetrics(registry, clock=lambda: next(times))

    async def work(key: str) -> float | None:
        if key == CLUSTER:
            raise RuntimeError("failed")
        return 5.0

    measured = metrics.measured(work)
    assert await measured("default") == 5.0
    with pytest.raises(RuntimeError, match="failed"):
        await measured(CLUSTER)
    lines = shown(registry)
    assert 'gpushare_operator_reconciles_total{result="Done",work="policy"} 1.0' in lines
    assert 'gpushare_operator_reconciles_total{result="Failed",work="cluster"} 1.0' in lines
    assert 'gpushare_operator_reconcile_duration_seconds_sum{work="policy"} 2.0' in lines
    assert 'gpushare_operator_reconcile_duration_seconds_sum{work="cluster"} 0.5' in lines


def test_lists_and_events_are_told_apart() -> None:
    registry = CollectorRegistry()
    metrics = OperatorMetrics(registry)
    metrics.observed("nodes", None)
    metrics.observed("nodes", "ADDED")
    metrics.observed("nodes", "DELETED")
    lines = shown(registry)
    assert 'gpushare_operator_watch_events_total{resource="nodes"} 2.0' in lines
    assert 'gpushare_operator_watch_listed_objects_total{resource="nodes"} 1.0' in lines
