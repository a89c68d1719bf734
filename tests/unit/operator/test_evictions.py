"""Which evictions are due: what was measured and noted in, evictions out."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.samples.operator import NOW, node, policy, rule, share, share_condition, snapshot

from gpushare_core.kube.errors import ApiError
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import EvictPod
from gpushare_operator.apply import Failure, Performed
from gpushare_operator.cluster.objects import Excess, PolicyObject
from gpushare_operator.cluster.readers.share_nodes import read_share_node
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.evictions import (
    LOOK_AGAIN_SECONDS,
    MAX_TOGETHER,
    EvictionPlan,
    KnownExcesses,
    plan_evictions,
)
from gpushare_operator.desired.pod_template import digest
from gpushare_operator.desired.share_nodes import share_node_spec
from gpushare_operator.evictions import EvictionResult, Evictions

GRACE = 60
LONG_AGO = NOW - timedelta(hours=1)
EVICTING = policy("default", rule("gpu-1", "gpu-2", isolation={"onExcess": "Evict", "graceSeconds": GRACE}))


def excess(pod: str = "a", **extra: Any) -> Excess:
    given = {"uid": f"uid-{pod}", "container": "main", "card": "GPU-0", "since": LONG_AGO, **extra}
    return Excess(namespace="team", pod=pod, used="12Gi", asked="8Gi", **given)


def exceeding(
    *excesses: Excess, owner: PolicyObject = EVICTING, name: str = "gpu-1", **extra: Any
) -> ClusterSnapshot:
    conditions = {**share("gpu-1", owner).conditions, **share_condition("MemoryExceeded")}
    found = share(name, owner, excesses=excesses, conditions=conditions, **extra)
    return snapshot(owner, node(name, owner.name), found)


def known(*excesses: Excess, seconds: float = GRACE, **extra: Any) -> KnownExcesses:
    """The operator has seen them for so long, and their plugin has renewed its Lease since."""
    noted = {"seconds": {each.key: seconds for each in excesses}, "renewed": {"gpu-1": NOW}}
    return KnownExcesses(**{**noted, **extra})


def planned(seen: ClusterSnapshot, noted: KnownExcesses, owner: PolicyObject = EVICTING) -> EvictionPlan:
    return plan_evictions(seen, owner, noted)


def evicted(plan: EvictionPlan) -> list[str]:
    return [action.name for action in plan.actions]


def test_a_pod_is_evicted_once_however_many_of_its_containers_and_cards_exceed() -> None:
    several = [excess(), excess(container="other"), excess(card="GPU-1"), excess("b")]
    assert evicted(planned(exceeding(*several), known(*several))) == ["team/a", "team/b"]


def test_what_is_due_later_is_looked_at_then() -> None:
    plan = planned(exceeding(excess()), known(excess(), seconds=45))
    assert plan == EvictionPlan((), GRACE - 45, frozenset({"uid-a"}))


@pytest.mark.parametrize(
    ("noted", "again"),
    [
        pytest.param({"renewed": {}}, LOOK_AGAIN_SECONDS, id="its plugin has no Lease"),
        pytest.param(
            {"renewed": {"gpu-1": LONG_AGO + timedelta(seconds=GRACE - 1)}},
            LOOK_AGAIN_SECONDS,
            id="its plugin has not been heard of since",
        ),
        pytest.param({"renewed": {"gpu-2": NOW}}, LOOK_AGAIN_SECONDS, id="another node's plugin was heard"),
        pytest.param({"waits": {"uid-a": 20.0}}, 20.0, id="it was refused"),
        pytest.param({"pause": 7.0}, 7.0, id="others were evicted just now"),
        pytest.param({"done": frozenset({"uid-a"})}, None, id="it was evicted"),
        pytest.param({"seconds": 0.0}, GRACE, id="it has just been seen"),
    ],
)
def test_an_eviction_waits_where(noted: Mapping[str, Any], again: float | None) -> None:
    plan = planned(exceeding(excess()), known(excess(), **noted))
    assert (plan.actions, plan.retry_after) == ((), again)


def test_pods_that_budgets_protect_do_not_keep_others_from_being_tried() -> None:
    protected = [excess(f"pod-{number:03}") for number in range(2 * MAX_TOGETHER)]
    waits = {each.uid: -float(number) for number, each in enumerate(protected)}
    seen = exceeding(*protected, excess("z"))
    first, second, *_ = evicted(planned(seen, known(*protected, excess("z"), waits=waits)))
    assert first == "team/z", "it was never tried"
    assert second == f"team/{protected[-1].pod}", "it has waited longest"


def test_what_follows_from_an_earlier_spec_evicts_nobody() -> None:
    """The policy lets contexts have more by now, and its GPUShareNode could not be written yet."""
    isolation = {"onExcess": "Evict", "graceSeconds": GRACE, "contextMemory": "2Gi"}
    lenient = policy("default", rule("gpu-1", isolation=isolation))
    assert planned(exceeding(excess()), known(excess()), lenient) == EvictionPlan()


def test_few_are_evicted_together() -> None:
    many = [excess(f"pod-{number:03}") for number in range(2 * MAX_TOGETHER)]
    plan = planned(exceeding(*many), known(*many))
    assert evicted(plan) == [f"team/{each.pod}" for each in many[:MAX_TOGETHER]]
    assert plan.retry_after == LOOK_AGAIN_SECONDS


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param(policy("default", rule("gpu-1")), id="a policy that reports"),
        pytest.param(replace(EVICTING, deleting=True), id="a policy that goes"),
        pytest.param(replace(EVICTING, spec=None, error="?"), id="a policy that cannot be read"),
        pytest.param(policy("other", *(EVICTING.spec.nodes if EVICTING.spec else ())), id="another policy"),
    ],
)
def test_nobody_is_evicted_for(owner: PolicyObject) -> None:
    assert planned(exceeding(excess()), known(excess()), owner) == EvictionPlan()


def test_the_rule_of_the_node_counts() -> None:
    reporting = rule("gpu-1", isolation={"onExcess": "Report"})
    owner = policy("default", reporting, rule("gpu-2", isolation={"onExcess": "Evict", "graceSeconds": 0}))
    noted = known(excess(), renewed={"gpu-1": NOW, "gpu-2": NOW})
    assert evicted(planned(exceeding(excess(), owner=owner), noted, owner)) == []
    spec = share_node_spec(owner, owner.spec.nodes[1]) if owner.spec else {}
    on_second = exceeding(excess(), owner=owner, name="gpu-2", spec=spec, spec_hash=digest(spec))
    assert evicted(planned(on_second, noted, owner)) == ["team/a"]


def test_pods_of_a_namespace_that_is_being_deleted_are_not_tried_again() -> None:
    action = EvictPod(node="gpu-1", policy="default", excess=excess(), seconds=GRACE)
    message = (
        'pods "a" is forbidden: unable to create new content in namespace team because it is being terminated'
    )
    results: list[EvictionResult] = []
    evictions = Evictions(lambda: 0.0, results.append)
    refused = Failure(action, ApiError(403, "Forbidden", message))
    assert evictions.conclude(Performed([action], [refused]), NOW) == []
    assert (results, evictions.refused("default")) == ([EvictionResult.GONE], [])


SHARE: Json = {"namespace": "team", "name": "a", "uid": "uid-a", "container": "main", "units": 2}
SINCE = "2026-11-21T11:00:00Z"


def read_excesses(
    share: Json, *, unit: str = "1Gi", lock: str = "", reserved: str = "0"
) -> tuple[Excess, ...]:
    card = {"index": 0, "uuid": "GPU-0", "memory": "16Gi", "units": 16, "lock": lock, "pods": [share]}
    spec = {"policy": "default", "mode": "Memory", "memoryUnit": "1Gi", "reservedMemory": reserved}
    status = {"memoryUnit": unit, "cards": [card]}
    return read_share_node(
        {"metadata": {"name": "gpu-1", "uid": "u"}, "spec": spec, "status": status}
    ).excesses


@pytest.mark.parametrize(
    ("report", "asked"),
    [
        pytest.param({}, "2Gi", id="memory"),
        pytest.param({"unit": "1/4 card"}, "8Gi", id="slices"),
        pytest.param({"unit": "1/4 card", "reserved": "4Gi"}, "6Gi", id="slices of what is shared"),
        pytest.param({"unit": "1Gi, 1/4 card, 1 card", "lock": "Slices"}, "8Gi", id="the class of the card"),
        pytest.param({"unit": "1Gi, 1/4 card, 1 card"}, "2Gi", id="the first class of an open card"),
        pytest.param({"unit": "?"}, "", id="a unit of a later version"),
        pytest.param({"reserved": "?"}, "", id="a quantity of a later version"),
    ],
)
def test_what_was_asked_for_is_said_in_memory(report: Mapping[str, str], asked: str) -> None:
    (found,) = read_excesses({**SHARE, "usedMemory": "12Gi", "exceededSince": SINCE}, **report)
    assert (found.used, found.asked, found.key) == ("12Gi", asked, ("uid-a", "main", "GPU-0", LONG_AGO))


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param({}, id="within what it asked for"),
        pytest.param({"exceededSince": ""}, id="no time"),
        pytest.param({"exceededSince": "yesterday"}, id="no time that can be read"),
        pytest.param({"exceededSince": SINCE, "orphaned": True}, id="not in the API server any more"),
    ],
)
def test_no_excess_is_read_of_a_container(extra: Json) -> None:
    assert read_excesses({**SHARE, **extra}) == ()


def test_how_much_more_it_has_decides_nothing() -> None:
    before = share("gpu-1", EVICTING, excesses=(excess(),))
    more = share("gpu-1", EVICTING, excesses=(replace(excess(), used="13Gi"),))
    another = share("gpu-1", EVICTING, excesses=(excess(since=NOW),))
    assert before.differs_in_figures_only(more)
    assert not before.differs_in_figures_only(another)
