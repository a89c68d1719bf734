"""What a filter has shown of a pod is known until its bind, and does not grow."""

from tests.samples.extender import asked, pod_request

from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_extender.decide.expected_requests import ExpectedRequests, is_same


def test_what_was_shown_last_is_known_once() -> None:
    expected = ExpectedRequests()
    expected.put("a", pod_request(4))
    expected.put("a", pod_request(8))
    taken = expected.take("a")
    assert taken is not None
    assert is_same(taken, pod_request(8))
    assert expected.take("a") is None


def test_containers_are_not_kept() -> None:
    expected = ExpectedRequests()
    expected.put("a", pod_request(4))
    taken = expected.take("a")
    assert taken is not None
    assert not taken.containers


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


def test_requests_are_the_same_by_resource_and_amount() -> None:
    four = pod_request(4)
    assert is_same(four, PodRequest((asked(4, container="other"),)))
    assert not is_same(four, pod_request(5))
    assert not is_same(four, PodRequest((asked(4, ResourceClass.SLICE),)))
    assert not is_same(four, PodRequest((asked(4), asked(1, ResourceClass.SLICE))))
