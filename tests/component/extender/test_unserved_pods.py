"""Events of pods that wait for what no node has, against an API server."""

import pytest
from tests.fakes.api_server import EVENTS, PODS, FakeApi, cut, status
from tests.fakes.extender_clock import FakeClock
from tests.samples.extender import share_node
from tests.unit.extender.test_unserved_pods import MEMORY, waiting

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.cluster.paced_pods import LOOK_SECONDS, MAX_SECONDS, PAGE, PacedPods
from gpushare_extender.cluster.unserved_pods import AGAIN_SECONDS, MAX_EVENTS, UNPLACED, UnservedPods

PATH = "/apis/events.k8s.io/v1/namespaces/default/events"


def an_extender(client: KubeClient, clock: FakeClock) -> UnservedPods:
    ledger = Ledger()
    ledger.replace_share_nodes([share_node("n1")])
    return UnservedPods(client, ledger, PacedPods(client, clock, clock.sleep))


def put(api: FakeApi, *names: str, asks: str = "4096") -> None:
    for name in names:
        api.put(PODS, waiting({MEMORY: asks}, metadata={"name": name, "uid": f"uid-{name}"}))


def told(api: FakeApi) -> list[str]:
    return sorted(event["regarding"]["name"] for event in api.objects[EVENTS].values())


def tries(api: FakeApi) -> int:
    return sum(request.path == PATH for request in api.seen)


async def test_a_pod_that_waits_for_more_than_any_card_has_gets_an_event(
    api: FakeApi, client: KubeClient, clock: FakeClock
) -> None:
    put(api, "big")
    put(api, "fits", asks="1")
    await an_extender(client, clock).look()
    assert told(api) == ["big"]
    (event,) = api.objects[EVENTS].values()
    assert (event["reason"], event["type"]) == ("MoreThanAnyNodeHas", "Warning")


async def test_all_extenders_together_write_one_event(
    api: FakeApi, client: KubeClient, clock: FakeClock
) -> None:
    put(api, "big")
    for extender in (an_extender(client, clock), an_extender(client, clock)):
        await extender.look()
        await extender.look()
    assert (told(api), tries(api)) == (["big"], 2)


async def test_and_again_when_the_api_server_may_have_forgotten(
    api: FakeApi, client: KubeClient, clock: FakeClock
) -> None:
    put(api, "big")
    extender = an_extender(client, clock)
    await extender.look()
    api.objects[EVENTS].clear()
    clock.now += AGAIN_SECONDS
    await extender.look()
    assert told(api) == ["big"]


async def test_for_thousands_of_pods_events_are_written_some_at_a_time(
    api: FakeApi, client: KubeClient, clock: FakeClock
) -> None:
    put(api, *(f"big-{number}" for number in range(PAGE - 1)))
    extender = an_extender(client, clock)
    await extender.look()
    assert len(told(api)) == MAX_EVENTS
    await extender.look()
    assert len(told(api)) == 2 * MAX_EVENTS


async def test_an_event_that_is_refused_keeps_no_other_pod_from_its_own(
    api: FakeApi, client: KubeClient, clock: FakeClock
) -> None:
    put(api, "one", "two")
    api.fail("POST", PATH, status(403))
    await an_extender(client, clock).look()
    assert len(told(api)) == 1


async def test_an_event_that_did_not_reach_the_api_server_is_written_at_the_next_look(
    api: FakeApi, client: KubeClient, clock: FakeClock
) -> None:
    put(api, "big")
    extender = an_extender(client, clock)
    api.fail("POST", PATH, cut)
    with pytest.raises(UnreachableError):
        await extender.look()
    await extender.look()
    assert told(api) == ["big"]


@pytest.mark.parametrize(
    ("seconds", "pause"),
    [
        pytest.param(0.0, LOOK_SECONDS, id="small cluster"),
        pytest.param(0.5, 50.0, id="large cluster"),
        pytest.param(60.0, MAX_SECONDS, id="never given up"),
    ],
)
async def test_the_longer_the_api_server_needs_the_more_rarely_it_is_asked(
    client: KubeClient, seconds: float, pause: float
) -> None:
    times = iter((0.0, seconds))
    pods = PacedPods(client, lambda: next(times), FakeClock().sleep)
    assert [len(items) async for items in pods.pages(UNPLACED)] == [1]
    assert pods.pause == pytest.approx(pause)


@pytest.mark.parametrize(
    ("seconds", "pause"),
    [
        pytest.param(0.0, LOOK_SECONDS, id="refused at once"),
        pytest.param(15.0, MAX_SECONDS, id="no answer in time"),
    ],
)
async def test_after_a_failure_the_api_server_is_left_alone_as_well(
    api: FakeApi, client: KubeClient, seconds: float, pause: float
) -> None:
    api.fail("GET", PODS, status(403))
    times = iter((0.0, seconds))
    pods = PacedPods(client, lambda: next(times), FakeClock().sleep)
    with pytest.raises(ApiError):
        _ = [items async for items in pods.pages(UNPLACED)]
    assert pods.pause == pytest.approx(pause)
