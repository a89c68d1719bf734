"""What a filter has shown of a pod is known until its bind, and does not grow."""

from dataclasses import replace

import pytest
from tests.samples.extender import asked, pod_request

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.scheduling.objects.pod import PodVersion
from gpushare_extender.decide.waiting.expected_requests import ExpectedRequests, is_same


def test_what_was_shown_last_is_known_once() -> None:
    expected = ExpectedRequests()
    expected.put("a", pod_request(4))
    expected.put("a", pod_request(8))
    taken = expected.take("a")
    assert taken is not None
    assert is_same(taken.request, pod_request(8))
    assert expected.take("a") is None


def test_what_anybody_says_is_kept_without_containers_and_is_not_certain() -> None:
    expected = ExpectedRequests()
    expected.put("a", pod_request(4))
    taken = expected.take("a")
    assert taken is not None
    assert (taken.request.containers, taken.names) == ({}, None)


def test_what_kube_scheduler_says_is_kept_whole() -> None:
    expected = ExpectedRequests()
    version = PodVersion("7", annotations_size=100)
    expected.put("a", pod_request(4), authenticated=RESOURCES, version=version)
    taken = expected.take("a")
    assert taken is not None
    assert (taken.request, taken.names, taken.version) == (pod_request(4), RESOURCES, version)


def test_of_a_pod_without_a_version_nothing_is_certain() -> None:
    """A Binding could not say of which pod it is true that what it writes fits."""
    expected = ExpectedRequests()
    expected.put("a", pod_request(4), authenticated=RESOURCES)
    taken = expected.take("a")
    assert taken is not None
    assert (taken.request.containers, taken.names) == ({}, None)


NAMES = [str(number) for number in range(17)]


@pytest.mark.parametrize(
    "large",
    [
        pytest.param(PodRequest((replace(asked(17), containers=dict.fromkeys(NAMES, 1)),)), id="containers"),
        pytest.param(PodRequest((asked(4),), init_containers=frozenset(NAMES)), id="init containers"),
    ],
)
def test_of_a_pod_of_many_containers_nothing_is_certain(large: PodRequest) -> None:
    expected = ExpectedRequests()
    expected.put("a", large, authenticated=RESOURCES, version=PodVersion("7"))
    taken = expected.take("a")
    assert taken is not None
    assert (taken.request.containers, taken.names) == ({}, None)


def test_those_filtered_longest_ago_are_forgotten() -> None:
    expected = ExpectedRequests(most=2)
    for uid in ("a", "b", "a", "c"):
        expected.put(uid, pod_request(4))
    assert (len(expected), expected.take("b")) == (2, None)
    assert expected.take("a") is not None


def test_of_a_pod_without_uid_or_request_nothing_is_known() -> None:
    expected = ExpectedRequests()
    expected.put("", pod_request(4))
    expected.put("a", pod_request(0))
    assert len(expected) == 0


def test_a_pod_that_asks_for_nothing_of_ours_any_more_is_forgotten() -> None:
    expected = ExpectedRequests()
    expected.put("a", pod_request(4))
    expected.put("a", pod_request(0))
    assert expected.take("a") is None


def test_requests_are_the_same_by_resource_and_amount() -> None:
    four = pod_request(4)
    assert is_same(four, PodRequest((asked(4, container="other"),)))
    assert not is_same(four, pod_request(5))
    assert not is_same(four, PodRequest((asked(4, ResourceClass.SLICE),)))
    assert not is_same(four, PodRequest((asked(4), asked(1, ResourceClass.SLICE))))
