"""What a pod requests is read from as little of it as is decoded."""

import msgspec
import pytest
from tests.samples.extender import RESOURCE, container_json

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest
from gpushare_core.scheduling.objects.pod import KubePod, PodSpec
from gpushare_core.text.json_object import Json


def memory(total: int, **containers: int) -> tuple[ResourceRequest, ...]:
    return (ResourceRequest("gpushare.io/memory", ResourceClass.MEMORY, total, containers),)


def request_of(*containers: Json) -> PodRequest:
    return msgspec.convert({"spec": {"containers": containers}}, KubePod).request(GPUSHARE.resources)


def test_units_per_container_and_cpu_and_memory_together() -> None:
    containers = container_json("a", 4), container_json("b", 2), container_json("c")
    assert request_of(*containers) == PodRequest(memory(6, a=4, b=2), cpu="1500m", memory="768Mi")


def test_an_amount_nobody_can_read_does_not_keep_the_pod_from_running() -> None:
    odd = {"name": "a", "resources": {"limits": {RESOURCE: "4"}, "requests": {"cpu": "lots"}}}
    assert request_of(odd) == PodRequest(memory(4, a=4), cpu=str(2**63 - 1), memory="0")


@pytest.mark.parametrize(
    "spec", [PodSpec(), PodSpec(containers=[], init_containers=[])], ids=["no lists", "empty lists"]
)
def test_a_spec_without_containers_requests_nothing(spec: PodSpec) -> None:
    assert KubePod(spec=spec).request(GPUSHARE.resources) == PodRequest(cpu="0", memory="0")


def test_what_was_read_is_known_to_the_next_pod_that_asks_for_the_same() -> None:
    assert request_of(container_json("a", 4)) is request_of(container_json("a", 4))
    assert request_of(container_json("a", 4)) != request_of(container_json("b", 4))


def test_what_was_read_is_good_for_the_same_resources_only() -> None:
    pod = msgspec.convert({"spec": {"containers": [container_json("a", 4)]}}, KubePod)
    assert pod.request(GPUSHARE.resources).total == 4
    assert pod.request({}).total == 0
    assert pod.request({RESOURCE: ResourceClass.SLICE}).resources[0].resource is ResourceClass.SLICE


def test_pods_with_many_containers_are_not_remembered() -> None:
    containers = [container_json(f"c{number}", 1) for number in range(100)]
    assert request_of(*containers) == request_of(*containers)
    assert request_of(*containers) is not request_of(*containers)


PREFERRED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}


@pytest.mark.parametrize(
    ("spec", "prefers"),
    [
        pytest.param({}, False, id="nothing"),
        pytest.param({"affinity": {"podAntiAffinity": PREFERRED}}, True, id="pods apart"),
        pytest.param({"affinity": {"podAffinity": PREFERRED}}, True, id="pods together"),
        pytest.param({"affinity": {"nodeAffinity": PREFERRED}}, True, id="nodes"),
        pytest.param({"affinity": {"podAntiAffinity": REQUIRED}}, False, id="a filter"),
        pytest.param({"affinity": {"podAntiAffinity": None}}, False, id="null"),
        pytest.param(
            {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, True, id="spread softly"
        ),
        pytest.param(
            {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]},
            False,
            id="spread, a filter",
        ),
    ],
)
def test_whether_a_pod_says_itself_which_nodes_are_better(spec: Json, *, prefers: bool) -> None:
    assert msgspec.convert({"spec": spec}, KubePod).prefers_nodes is prefers


def test_what_it_prefers_is_no_other_request() -> None:
    containers = [container_json("a", 4)]
    pod = msgspec.convert(
        {"spec": {"containers": containers, "affinity": {"podAffinity": PREFERRED}}}, KubePod
    )
    assert pod.request(GPUSHARE.resources) is request_of(*containers)


def test_what_a_filter_does_not_need_of_a_status_may_be_anything() -> None:
    status: Json = {"nominatedNodeName": "n1", "phase": None, "reason": 1, "message": [], "startTime": 2}
    assert msgspec.convert({"status": status}, KubePod).nominated_node == "n1"
