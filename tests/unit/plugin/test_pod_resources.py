"""What PodResources list, as the plugin reads it."""

import pytest
from google.protobuf.message import DecodeError
from tests.samples.plugin import by_name, container, ids, layout, node_assignments, pod, stored

from gpushare_core.dialects.table import RESOURCES
from gpushare_plugin.decide.held.allocations import every_allocation, orphans
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pod_identity import identify
from gpushare_plugin.kubelet.pod_resources import AnswerReader, read_assigned
from gpushare_plugin.kubelet.proto import podresources_pb2 as api

MEMORY = "gpushare.io/memory"


def listed(*units: int) -> api.PodResources:
    devices = [
        api.ContainerDevices(resource_name=MEMORY, device_ids=[identifier]) for identifier in ids(*units)
    ]
    main = api.ContainerResources(name="main", devices=devices)
    return api.PodResources(name="a", namespace="default", containers=[main])


@pytest.mark.parametrize("asked", [0, 2], ids=["that asks for nothing", "that has units"])
@pytest.mark.parametrize("is_first", [True, False], ids=["listed first", "listed last"])
def test_a_static_pod_keeps_its_units_beside_another_pod_of_its_name(asked: int, *, is_first: bool) -> None:
    """Anybody may take the name while there is no mirror. The kubelet lists both, in any order."""
    both = [listed(*range(12)), listed(*range(16, 16 + asked))]
    answer = api.ListPodResourcesResponse(pod_resources=both if is_first else both[::-1])
    assigned = read_assigned(answer.SerializeToString(), RESOURCES)
    assert sorted(assigned.numbers()) == [*range(12), *range(16, 16 + asked)]
    held = every_allocation(node_assignments(assigned), by_name(pod("a", container(units=asked))))
    assert sum(allocation.cards.get("GPU-0", 0) for allocation in held) == 12


@pytest.mark.parametrize("is_first", [True, False], ids=["listed first", "listed last"])
@pytest.mark.parametrize("asked", [0, 2], ids=["that asks for nothing", "that has units"])
def test_the_checkpoint_tells_two_pods_of_one_name_apart(asked: int, *, is_first: bool) -> None:
    both = [listed(*range(12)), listed(*range(16, 16 + asked))]
    answer = api.ListPodResourcesResponse(pod_resources=both if is_first else both[::-1])
    given = {"static": {"main": [*range(12)]}, **({"a": {"main": [16, 17]}} if asked else {})}
    entries = [entry for containers in stored(layout(), **given).values() for entry in containers.values()]
    pods = by_name(pod("a", container(units=asked)))
    assigned = identify(
        read_assigned(answer.SerializeToString(), RESOURCES), entries, AssignedDevices(), pods
    )
    assert [orphan.uid for orphan in orphans(assigned, pods)] == ["uid-static"]
    held = every_allocation(node_assignments(assigned), pods)
    assert {allocation.pod.uid: dict(allocation.cards) for allocation in held} == {
        "uid-static": {"GPU-0": 12},
        **({"uid-a": {"GPU-1": 2}} if asked else {}),
    }


def test_answers_one_after_the_other_are_read_like_each_alone() -> None:
    """What is listed as before is not decoded again; what is listed otherwise counts."""
    reader = AnswerReader(RESOURCES)
    first, second = listed(1, 2), api.PodResources(name="b", namespace="default")
    for pods in (
        [first],
        [first, second],
        [listed(1), second],
        [second],
        [],
        [first, first],
        [listed(*range(99))],
    ):
        answer = api.ListPodResourcesResponse(pod_resources=pods).SerializeToString()
        assert reader.read(answer) == read_assigned(answer, RESOURCES)


def test_an_answer_that_is_none_spoils_no_later_one() -> None:
    reader = AnswerReader(RESOURCES)
    answer = api.ListPodResourcesResponse(pod_resources=[listed(1, 2)]).SerializeToString()
    before = reader.read(answer)
    with pytest.raises(DecodeError):
        reader.read(answer + b"\x0a\x7f")
    assert reader.read(answer) == before
