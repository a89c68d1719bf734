"""What every process shows of itself, and gauges that are read from a snapshot."""

import pytest
from prometheus_client import Counter
from prometheus_client.parser import text_string_to_metric_families

from gpushare_core.process.metrics import Gauge, Sample, SnapshotCollector, exposition, new_registry
from gpushare_core.process.version import VERSION

CARDS = Gauge("gpushare_test_cards", "Cards.", ("health",))


def figures(text: bytes) -> dict[tuple[str, tuple[str, ...]], float]:
    families = text_string_to_metric_families(text.decode())
    return {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_process_shows_its_version_and_memory() -> None:
    shown = figures(exposition(new_registry("gpushare-test")))
    assert shown["gpushare_build_info", ("gpushare-test", VERSION)] == 1
    assert shown["process_resident_memory_bytes", ()] > 1e6


def test_gauges_are_read_when_they_are_asked_for() -> None:
    samples: list[Sample] = []
    registry = new_registry("gpushare-test")
    registry.register(SnapshotCollector([CARDS], lambda: samples))
    assert b"# TYPE gpushare_test_cards gauge" in exposition(registry)
    samples.append(CARDS.at(3, "Healthy"))
    assert figures(exposition(registry))["gpushare_test_cards", ("Healthy",)] == 3
    samples.clear()
    assert ("gpushare_test_cards", ("Healthy",)) not in figures(exposition(registry))


def test_two_processes_in_one_share_nothing() -> None:
    one, other = new_registry("one"), new_registry("other")
    Counter("gpushare_test_calls", "Calls.", registry=one).inc()
    assert b"gpushare_test_calls_total 1.0" in exposition(one)
    assert b"gpushare_test_calls" not in exposition(other)


def test_times_of_creation_are_left_out() -> None:
    registry = new_registry("gpushare-test")
    Counter("gpushare_test_calls", "Calls.", registry=registry)
    assert b"_created" not in exposition(registry)


def test_a_sample_has_all_labels_of_its_gauge() -> None:
    with pytest.raises(ValueError, match=r"gpushare_test_cards has the labels \('health',\), not 0"):
        CARDS.at(1)
