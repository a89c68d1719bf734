"""A pod asks for what the scheduler and the kubelet count, container by container."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import RESOURCES as RESOURCES_OF_ALL
from gpushare_core.placement.requests import PodRequest, read_request
from gpushare_core.text.json_object import Json

RESOURCE = "gpushare.io/memory"
RESOURCES = GPUSHARE.resources


def container(name: str, units: object = None, *, sidecar: bool = False, **requests: str) -> Json:
    limits = {} if units is None else {RESOURCE: units}
    stays = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": name, "resources": {"limits": limits, "requests": requests}, **stays}


def spec(*containers: Json, init: tuple[Json, ...] = ()) -> Json:
    return {"containers": list(containers), "initContainers": list(init)}


@pytest.mark.parametrize(
    ("asked", "containers", "total"),
    [
        pytest.param(spec(container("main", "4")), {"main": 4}, 4, id="one container"),
        pytest.param(spec(container("a", "4"), container("b", "2")), {"a": 4, "b": 2}, 6, id="two add up"),
        pytest.param(spec(container("a", "4"), container("b")), {"a": 4}, 4, id="one does not ask"),
        pytest.param(spec(container("main")), {}, 0, id="none asks"),
        pytest.param(
            spec(container("main", "4"), init=(container("init", "3"),)),
            {"init": 3, "main": 4},
            4,
            id="an init container lends its units",
        ),
        pytest.param(
            spec(container("main", "4"), init=(container("init", "9"),)),
            {"init": 9, "main": 4},
            9,
            id="a bigger init container is the peak",
        ),
        pytest.param(
            spec(container("main", "4"), init=(container("sidecar", "3", sidecar=True),)),
            {"sidecar": 3, "main": 4},
            7,
            id="a sidecar stays and adds up",
        ),
        pytest.param(
            spec(
                container("main", "1"),
                init=(container("sidecar", "3", sidecar=True), container("init", "5")),
            ),
            {"sidecar": 3, "init": 5, "main": 1},
            8,
            id="an init container after a sidecar runs beside it",
        ),
        pytest.param(
            spec(
                container("main", "1"),
                init=(container("init", "5"), container("sidecar", "3", sidecar=True)),
            ),
            {"init": 5, "sidecar": 3, "main": 1},
            5,
            id="an init container before a sidecar does not",
        ),
    ],
)
def test_a_pod_asks_for(asked: Json, containers: dict[str, int], total: int) -> None:
    request = read_request(asked, RESOURCES)
    assert (request.containers, request.total) == (containers, total)


def test_containers_come_in_the_order_in_which_they_start() -> None:
    asked = spec(container("z", "1"), container("a", "1"), init=(container("m", "1"),))
    assert list(read_request(asked, RESOURCES).containers) == ["m", "z", "a"]


@pytest.mark.parametrize(
    ("amount", "units"),
    [
        pytest.param(4, 4, id="a number"),
        pytest.param("2k", 2000, id="a suffix"),
        pytest.param("2e3", 2000, id="an exponent"),
        pytest.param("4000m", 4, id="whole although in thousandths"),
        pytest.param("+4", 4, id="a sign"),
        pytest.param("4e000", 4, id="an exponent of zeros"),
        pytest.param("0", 0, id="zero"),
        pytest.param(None, 0, id="null"),
        pytest.param("1.5", 2, id="a fraction is rounded up"),
        pytest.param("500m", 1, id="thousandths are rounded up"),
    ],
)
def test_an_amount_counts_as(amount: object, units: int) -> None:
    assert read_request(spec(container("main", amount)), RESOURCES).total == units


@pytest.mark.parametrize("amount", ["-4", "four", "", "9" * 5000, "4" + "0" * 45])
def test_an_amount_that_nobody_can_count_is_too_much_for_every_card(amount: str) -> None:
    """Not nothing: a pod that is placed for nothing takes what the kubelet reads."""
    request = read_request(spec(container("main", amount), container("other", "1")), RESOURCES)
    assert request.total > 2**63 - 1
    assert request.containers == {"main": 2**63 - 1, "other": 1}


@pytest.mark.parametrize(
    "empty",
    [
        pytest.param({}, id="no containers"),
        pytest.param({"containers": None, "initContainers": None}, id="nulls"),
        pytest.param({"containers": [{"name": "a"}]}, id="no resources"),
        pytest.param({"containers": [{"name": "a", "resources": {"limits": None}}]}, id="null limits"),
    ],
)
def test_a_pod_that_asks_for_nothing(empty: Json) -> None:
    assert read_request(empty, RESOURCES) == PodRequest()


@given(
    st.lists(st.integers(0, 9), max_size=4), st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=4)
)
def test_the_total_lies_between_the_peak_and_the_sum(main: list[int], init: list[tuple[int, bool]]) -> None:
    asked = spec(
        *(container(f"c{place}", str(units)) for place, units in enumerate(main)),
        init=tuple(
            container(f"i{place}", str(units), sidecar=stays) for place, (units, stays) in enumerate(init)
        ),
    )
    total = read_request(asked, RESOURCES).total
    staying = sum(units for units, stays in init if stays)
    assert max([sum(main) + staying, *(units for units, _ in init)]) <= total
    assert total <= sum(main) + sum(units for units, _ in init)


def test_requests_of_containers_that_run_together_add_up() -> None:
    asked = spec(
        container("main", cpu="500m"),
        container("plain"),
        init=(container("sidecar", cpu="1", sidecar=True), container("init", cpu="8")),
    )
    assert read_request(asked, RESOURCES).cpu == "1500m"


@pytest.mark.parametrize("cpu", [pytest.param("lots", id="a word"), pytest.param("-1", id="negative")])
def test_a_request_that_nobody_can_read_counts_as_too_much(cpu: str) -> None:
    request = read_request(spec(container("main", cpu=cpu), container("other", cpu="1")), RESOURCES)
    assert request.cpu == str(2**63)


def test_a_limit_stands_for_a_request_that_is_not_there() -> None:
    limited = {"name": "a", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}
    request = read_request(spec(limited), RESOURCES)
    assert (request.cpu, request.memory) == ("1", "1Gi")


def test_ordinary_init_containers_are_named_apart() -> None:
    asked = spec(
        container("main", "4"),
        init=(container("init", "3"), container("sidecar", "2", sidecar=True)),
    )
    request = read_request(asked, RESOURCES)
    assert request.init_containers == {"init"}
    assert request.running_containers == {"sidecar": 2, "main": 4}


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"gpushare.io/slice": "2"}, [("slice", 2)], id="slices"),
        pytest.param({"gpushare.io/card": "1"}, [("card", 1)], id="cards"),
        pytest.param(
            {"gpushare.io/slice": "2", "gpushare.io/memory": "4"},
            [("memory", 4), ("slice", 2)],
            id="two classes",
        ),
    ],
)
def test_every_class_is_read_by_itself(limits: Json, asked: list[tuple[str, int]]) -> None:
    request = read_request(spec({"name": "a", "resources": {"limits": limits}}), RESOURCES)
    assert [(resource.resource, resource.total) for resource in request.resources] == asked


def test_nothing_counts_for_a_container_that_asks_for_several_resources() -> None:
    """No node admits it."""
    limits = {"gpushare.io/slice": "2", "gpushare.io/memory": "4"}
    request = read_request(spec({"name": "a", "resources": {"limits": limits}}), RESOURCES)
    assert (request.containers, request.crowded_containers) == ({}, ("a",))


def test_each_part_of_a_pod_is_what_it_asks_of_one_resource() -> None:
    halves = {"name": "a", "resources": {"limits": {"gpushare.io/slice": "2"}}}
    memory = {"name": "b", "resources": {"limits": {"gpushare.io/memory": "4"}}}
    request = read_request(spec(halves, memory), RESOURCES)
    assert request.containers == {"a": 2, "b": 4}
    assert [dict(part.containers) for part in request.parts] == [{"b": 4}, {"a": 2}]
    assert request.crowded_containers == ()


def test_resources_come_in_the_order_of_their_classes_in_every_dialect() -> None:
    limits = {"gpushare.io/slice": "1", "aliyun.com/gpu-mem": "4"}
    containers = ({"name": name, "resources": {"limits": {name: amount}}} for name, amount in limits.items())
    request = read_request(spec(*containers), RESOURCES_OF_ALL)
    assert [resource.name for resource in request.resources] == ["aliyun.com/gpu-mem", "gpushare.io/slice"]
