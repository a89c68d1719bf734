"""What Prometheus reads of a node: figures of cards and units, as many series as there are cards."""

from dataclasses import replace

import pytest
from tests.samples.plugin import GIB, card, name_of, share_node

from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.process.metrics import Sample, exposition, new_registry
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.report.figures import MAX_CONTAINERS, use_figures
from gpushare_plugin.decide.use.container_use import ContainerShare, MeasuredUse
from gpushare_plugin.kubelet.device_plugin import ALLOCATE, KubeletRequest
from gpushare_plugin.metrics import PluginMetrics, ProcessState, figures

HOLDING = ContainerShare(name_of("a"), "uid-a", "x", "GPU-0")
OF_A = ("gpu-1", "GPU-0", "default", "a")
SERIES_OF_A_CARD = 7
MAX_SERIES_BESIDE_CARDS = 100


def condition(kind: str, status: str) -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": "Tested",
        "message": "",
        "lastTransitionTime": "2026-11-21T12:00:00Z",
    }


SHARED = share_node(
    status={
        "units": {"total": 32, "allocated": 6},
        "conditions": [
            condition("Registered", "True"),
            condition("CardsHealthy", "False"),
            condition("LedgerInSync", "Unknown"),
        ],
        "cards": [
            {
                "index": 0,
                "uuid": "GPU-0",
                "memory": "16Gi",
                "units": 16,
                "allocatedUnits": 6,
                "pods": [
                    {"namespace": "default", "name": "a", "uid": "uid-a", "container": "x", "units": 4},
                    {"namespace": "default", "name": "a", "uid": "uid-a", "container": "y", "units": 2},
                ],
            }
        ],
    }
)


def state(share: GPUShareNode | None = SHARED, *, cards: int = 1) -> ProcessState:
    return ProcessState(
        node="gpu-1",
        cards=[card(index) for index in range(cards)],
        spec=share.spec if share else None,
        status=share.status if share else None,
        measured=MeasuredUse(
            cards={f"GPU-{index}": 2 * GIB for index in range(cards)},
            containers={HOLDING: GIB},
            requested={HOLDING: 4 * GIB, HOLDING._replace(container="y"): 2 * GIB},
        ),
        listed={"pods": True, "gpusharenodes": True},
        registered=True,
        assignments_age=1.5,
    )


def by_labels(samples: list[Sample], name: str) -> dict[tuple[str, ...], float]:
    return {sample.labels: sample.value for sample in samples if sample.gauge.name == name}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("gpushare_cards", {("gpu-1", "Healthy"): 1, ("gpu-1", "Unhealthy"): 0}, id="cards"),
        pytest.param(
            "gpushare_units",
            {("gpu-1", "memory", "allocated"): 6, ("gpu-1", "memory", "free"): 26},
            id="units by state",
        ),
        pytest.param(
            "gpushare_node_condition",
            {("gpu-1", "Registered"): 1, ("gpu-1", "CardsHealthy"): 0},
            id="conditions that are known",
        ),
        pytest.param("gpushare_card_memory_bytes", {("gpu-1", "GPU-0"): 16 * GIB}, id="memory"),
        pytest.param("gpushare_card_memory_used_bytes", {("gpu-1", "GPU-0"): 2 * GIB}, id="used bytes"),
        pytest.param(
            "gpushare_container_memory_used_bytes",
            {(*OF_A, "x"): GIB, (*OF_A, "y"): 0},
            id="used bytes of containers, those that use nothing too",
        ),
        pytest.param(
            "gpushare_container_memory_requested_bytes",
            {(*OF_A, "x"): 4 * GIB, (*OF_A, "y"): 2 * GIB},
            id="bytes that containers asked for",
        ),
        pytest.param("gpushare_card_pods", {("gpu-1", "GPU-0"): 1}, id="a pod of two containers is one"),
        pytest.param("gpushare_plugin_books_age_seconds", {("gpu-1",): 1.5}, id="age of the books"),
    ],
)
def test_a_shared_node(name: str, expected: dict[tuple[str, ...], float]) -> None:
    assert by_labels(list(figures(state())), name) == expected


def test_in_mode_mixed_units_of_different_classes_are_kept_apart() -> None:
    mixed = share_node(
        mode="Mixed",
        slicesPerCard=2,
        status={
            "units": {"total": 16},
            "resources": [
                {"resource": "memory", "total": 16, "allocated": 3},
                {"resource": "slice", "total": 2, "allocated": 2},
            ],
        },
    )
    assert by_labels(list(figures(state(mixed))), "gpushare_units") == {
        ("gpu-1", "memory", "allocated"): 3,
        ("gpu-1", "memory", "free"): 13,
        ("gpu-1", "slice", "allocated"): 2,
        ("gpu-1", "slice", "free"): 0,
    }


def test_an_over_full_card_has_nothing_free() -> None:
    crowded = share_node(status={"units": {"total": 4, "allocated": 6}})
    assert by_labels(list(figures(state(crowded))), "gpushare_units")["gpu-1", "memory", "free"] == 0


def test_a_node_that_is_not_shared_shows_its_cards_and_no_units() -> None:
    shown = list(figures(state(None)))
    assert by_labels(shown, "gpushare_card_healthy") == {("gpu-1", "GPU-0"): 1}
    assert by_labels(shown, "gpushare_units") == {}


def series(*, cards: int) -> int:
    one = SHARED.to_json()["status"]["cards"][0]
    status = {"units": {"total": 1}, "cards": [{**one, "uuid": f"GPU-{index}"} for index in range(cards)]}
    registry = new_registry("gpushare-plugin")
    PluginMetrics(registry, lambda: state(share_node(status=status), cards=cards))
    return sum(not line.startswith(b"#") for line in exposition(registry).splitlines())


def test_the_number_of_series_follows_from_the_number_of_cards_alone() -> None:
    assert series(cards=0) <= MAX_SERIES_BESIDE_CARDS
    of_their_namespace = 1
    assert series(cards=16) - series(cards=0) == 16 * SERIES_OF_A_CARD + of_their_namespace


def test_calls_of_the_kubelet_are_counted_from_zero() -> None:
    registry = new_registry("gpushare-plugin")
    metrics = PluginMetrics(registry, state)
    refused = 'gpushare_plugin_kubelet_refusals_total{reason="UnusableUnits",verb="Allocate"}'
    assert f"{refused} 0.0" in exposition(registry).decode()
    metrics.called(KubeletRequest(verb=ALLOCATE, seconds=0.002, refusal="UnusableUnits"))
    text = exposition(registry).decode()
    assert f"{refused} 1.0" in text
    assert 'gpushare_plugin_kubelet_call_duration_seconds_sum{verb="Allocate"} 0.002' in text


def test_what_is_not_known_is_not_shown() -> None:
    problem = Problem("DriverHung", "wait")
    off = share_node(measurement={"scope": "Off"})
    for without_use in (
        replace(state(), measured=MeasuredUse(problem=problem)),
        replace(state(), measured=None),
        state(off),
    ):
        assert by_labels(list(figures(without_use)), "gpushare_card_memory_used_bytes") == {}
    partly = replace(
        state(), measured=MeasuredUse(cards={"GPU-0": 1}, requested={HOLDING: 1}, problem=problem)
    )
    assert by_labels(list(figures(partly)), "gpushare_card_memory_used_bytes") == {("gpu-1", "GPU-0"): 1}
    assert by_labels(list(figures(partly)), "gpushare_container_memory_used_bytes") == {}


def test_a_node_of_many_containers_shows_those_that_use_most() -> None:
    held = [HOLDING._replace(container=f"c{number}") for number in range(MAX_CONTAINERS + 44)]
    measured = MeasuredUse(
        containers={key: number for number, key in enumerate(held)}, requested=dict.fromkeys(held, GIB)
    )
    shown = by_labels(list(use_figures("gpu-1", measured)), "gpushare_container_memory_used_bytes")
    assert (len(shown), min(shown.values())) == (MAX_CONTAINERS, 44)
