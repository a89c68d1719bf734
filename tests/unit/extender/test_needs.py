"""What a pod needs is read from its filter and found again at its bind."""

import msgspec
import pytest
from tests.samples.extender import RESOURCE, Json, container

from gpushare_core.placement.requests import PodRequest
from gpushare_extender.decide.requests import NeedsMemory, PodNeeds, read_needs
from gpushare_extender.http.wire import PodSpec


def needs_of(*containers: Json) -> PodNeeds:
    return read_needs(msgspec.convert({"containers": containers}, PodSpec), resource=RESOURCE)


def needs(units: int) -> PodNeeds:
    return PodNeeds(PodRequest({"main": units}, units), "0", "0")


def test_units_per_container_and_cpu_and_memory_together() -> None:
    assert needs_of(container("a", 4), container("b", 2), container("c")) == PodNeeds(
        PodRequest({"a": 4, "b": 2}, 6), cpu="1500m", memory="768Mi"
    )


def test_an_amount_nobody_can_read_does_not_keep_the_pod_from_running() -> None:
    odd = {"name": "a", "resources": {"limits": {RESOURCE: "4"}, "requests": {"cpu": "lots"}}}
    assert needs_of(odd) == PodNeeds(PodRequest({"a": 4}, 4), cpu="0", memory="0")


@pytest.mark.parametrize(
    "spec", [PodSpec(), PodSpec(containers=[], init_containers=[])], ids=["no lists", "empty lists"]
)
def test_a_spec_without_containers_needs_nothing(spec: PodSpec) -> None:
    assert read_needs(spec, resource=RESOURCE) == PodNeeds(PodRequest({}, 0), "0", "0")


class TestNeedsMemory:
    def test_it_recalls_what_it_was_told_last(self) -> None:
        memory = NeedsMemory()
        memory.remember("a", needs(4))
        memory.remember("a", needs(8))
        assert memory.recall("a") == needs(8)

    def test_it_forgets_the_pod_told_longest_ago(self) -> None:
        memory = NeedsMemory(most=2)
        memory.remember("a", needs(1))
        memory.remember("b", needs(2))
        memory.remember("a", needs(1))
        memory.remember("c", needs(3))
        assert [memory.recall(uid) for uid in "abc"] == [needs(1), None, needs(3)]

    def test_it_forgets_on_demand(self) -> None:
        memory = NeedsMemory()
        memory.remember("a", needs(1))
        memory.forget("a")
        memory.forget("never heard of")
        assert memory.recall("a") is None
