"""The number of pods of other schedulers, on the Lease that the operator reads."""

import pytest
from tests.fakes.api_server import LEASES, PODS, FakeApi
from tests.fakes.extender_clock import FakeClock
from tests.unit.extender.test_other_schedulers import pod

from gpushare_core.api.names import ASKING_ANNOTATION, CALLS_LEASE, OTHER_SCHEDULERS_ANNOTATION
from gpushare_core.kube.client import KubeClient
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.cluster.other_schedulers import OtherSchedulers
from gpushare_extender.cluster.paced_pods import PacedPods


def said(api: FakeApi, annotation: str = OTHER_SCHEDULERS_ANNOTATION) -> str | None:
    annotations = api.objects[LEASES][("", CALLS_LEASE)]["metadata"].get("annotations") or {}
    text: str | None = annotations.get(annotation)
    return text


def others(api: FakeApi, client: KubeClient, *asking: str) -> OtherSchedulers:
    lease = {"metadata": {"name": CALLS_LEASE, "resourceVersion": "1"}}
    api.objects[LEASES].setdefault(("", CALLS_LEASE), lease)
    clock = FakeClock()
    pods = PacedPods(client, clock=clock, sleep=clock.sleep)
    return OtherSchedulers(client, Ledger(), "gpushare-system", {*asking}, pods)


def put_pod(api: FakeApi, scheduler: str) -> None:
    bound = pod(scheduler, scheduler=scheduler)
    bound["metadata"]["uid"] = f"uid-{scheduler}"
    bound["spec"]["nodeName"] = "n1"
    api.put(PODS, bound)


async def test_it_is_made_known_while_there_are_some(api: FakeApi, client: KubeClient) -> None:
    looking = others(api, client, "default-scheduler")
    put_pod(api, "other")
    await looking.look()
    assert said(api) == "1 default/other"
    calls = len(api.seen)
    await looking.look()
    assert len(api.seen) == calls + 2, "what is known is read and not written again"
    api.delete(PODS, "other", "default")
    await looking.look()
    assert said(api) is None


async def test_who_has_asked_another_extender_is_no_other_scheduler(api: FakeApi, client: KubeClient) -> None:
    """Of several control planes only the leading kube-scheduler asks, and only its own host's extender."""
    put_pod(api, "profile")
    await others(api, client, "default-scheduler", "profile").look()
    assert said(api, ASKING_ANNOTATION) == "default-scheduler profile"
    await others(api, client, "default-scheduler").look()
    assert said(api) is None


async def test_while_nobody_has_asked_nothing_is_known(api: FakeApi, client: KubeClient) -> None:
    """Right after a start: with a scheduler of its own all pods would count."""
    put_pod(api, "profile")
    await others(api, client).look()
    assert said(api) is None
    assert not [request for request in api.seen if request.path == PODS]


@pytest.mark.parametrize("name", ["", "a,b", "a=b", "a\\b", "a" * 254, "a\nb", "\u0430"])
async def test_a_name_that_no_field_selector_takes_is_left_out(
    api: FakeApi, client: KubeClient, name: str
) -> None:
    """It would keep all others from being counted, and stay on the Lease."""
    looking = others(api, client, "profile", name)
    put_pod(api, "other")
    await looking.look()
    assert (said(api), said(api, ASKING_ANNOTATION)) == ("1 default/other", "profile")


async def test_nor_one_that_is_on_the_lease(api: FakeApi, client: KubeClient) -> None:
    looking = others(api, client, "profile")
    api.objects[LEASES][("", CALLS_LEASE)]["metadata"]["annotations"] = {ASKING_ANNOTATION: "a,b older"}
    await looking.look()
    assert said(api, ASKING_ANNOTATION) == "older profile"
