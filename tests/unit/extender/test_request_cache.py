"""What a pod requests at its filter is found again at its bind."""

from gpushare_core.placement.requests import PodRequest
from gpushare_extender.decide.request_cache import RequestCache


def request(units: int) -> PodRequest:
    return PodRequest({"main": units}, units)


def test_it_has_what_was_put_last() -> None:
    cache = RequestCache()
    cache.put("a", request(4))
    cache.put("a", request(8))
    assert cache.get("a") == request(8)


def test_the_pod_put_longest_ago_goes_first() -> None:
    cache = RequestCache(size=2)
    cache.put("a", request(1))
    cache.put("b", request(2))
    cache.put("a", request(1))
    cache.put("c", request(3))
    assert [cache.get(uid) for uid in "abc"] == [request(1), None, request(3)]


def test_a_pod_can_be_dropped() -> None:
    cache = RequestCache()
    cache.put("a", request(1))
    cache.drop("a")
    cache.drop("never heard of")
    assert cache.get("a") is None
