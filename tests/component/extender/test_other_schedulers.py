"""The number of pods of other schedulers, on the Lease that the operator reads."""

from tests.fakes.api_server import LEASES, PODS, FakeApi
from tests.fakes.extender_clock import FakeClock
from tests.unit.extender.test_other_schedulers import pod

from gpushare_core.api.names import CALLS_LEASE, OTHER_SCHEDULERS_ANNOTATION
from gpushare_core.kube.client import KubeClient
from gpushare_extender.cluster.other_schedulers import OtherSchedulers
from gpushare_extender.cluster.paced_pods import PacedPods
from gpushare_extender.decide.other_schedulers import CANDIDATES
from gpushare_extender.ledger.ledger import Ledger


def said(api: FakeApi) -> str | None:
    annotations = api.objects[LEASES][("", CALLS_LEASE)]["metadata"].get("annotations") or {}
    text: str | None = annotations.get(OTHER_SCHEDULERS_ANNOTATION)
    return text


async def test_it_is_made_known_while_there_are_some(
    api: FakeApi, client: KubeClient, clock: FakeClock
) -> None:
    api.objects[LEASES][("", CALLS_LEASE)] = {"metadata": {"name": CALLS_LEASE, "resourceVersion": "1"}}
    pods = PacedPods(client, CANDIDATES, clock, clock.sleep)
    others = OtherSchedulers(client, Ledger(), "gpushare-system", {"default-scheduler"}, pods)
    unbound = pod("other")
    unbound["metadata"]["uid"] = "uid-other"
    unbound["spec"]["nodeName"] = "n1"
    api.put(PODS, unbound)
    await others.look()
    assert said(api) == "1 default/other"
    calls = len(api.seen)
    await others.look()
    assert len(api.seen) == calls + 1, "what is known is not written again"
    api.delete(PODS, "other", "default")
    await others.look()
    assert said(api) is None
