"""What the extender reads of pods, GPUShareNodes and budgets: one odd object harms nobody but itself."""

import json
from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies import objects
from tests.fuzz.strategies.odd_json import damaged, mutated, nested
from tests.samples.extender import pod_request, pod_update, share_node

from gpushare_core.dialects.aliyun import ALIYUN
from gpushare_core.dialects.enflame import ENFLAME
from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.scheduling.fit.candidates import prioritize_nodes
from gpushare_core.scheduling.fit.filter import filter_nodes
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.holder import read_pod
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.scheduling.objects.share_node import read_share_node
from gpushare_core.scheduling.preemption.bound_pods import PodList
from gpushare_core.scheduling.preemption.disruption_budgets import BudgetList, violating
from gpushare_core.text.json_object import UNREADABLE_JSON
from gpushare_extender.decide.pod_state import PodState, rejection_for
from gpushare_extender.decide.waiting.unserved_pods import read_waiting, remark
from gpushare_extender.verbs.dialect_inspection import inspect_dialect
from gpushare_extender.verbs.inspection import inspect_all, inspect_node

BUDGET = {
    "metadata": {"name": "b", "namespace": "default"},
    "spec": {
        "selector": {
            "matchLabels": {"a": "b"},
            "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
        }
    },
    "status": {"disruptionsAllowed": 1},
}


REFUSED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "3 Insufficient gpushare.io/mem.",
}
WAITING = {
    "metadata": {"name": "a", "namespace": "default", "uid": "uid-a"},
    "spec": {
        "containers": [
            {"name": "main", "resources": {"limits": {"gpushare.io/mem": "1", "gpushare.io/memory": 4096}}}
        ]
    },
    "status": {"conditions": [REFUSED]},
}


@st.composite
def raw(draw: st.DrawFn, documents: st.SearchStrategy[Any]) -> bytes:
    return draw(damaged(json.dumps(draw(documents)).encode("utf-8", "surrogatepass")))


def ledger() -> Ledger:
    """With a good node, ``good``, on which 4 units are taken."""
    made = Ledger()
    made.replace_share_nodes([share_node("good")])
    made.set_pod(pod_update("kept", node="good", c0=4))
    return made


def require_service(seen: Ledger) -> None:
    """Raises where the good state is not served any more."""
    result = filter_nodes(seen, ["good", "n1"], uid="new", request=pod_request(4))
    assert "good" in result.passing
    assert filter_nodes(seen, ["good"], uid="other", request=pod_request(17)).passing == []
    prioritize_nodes(seen, ["good", "n1"], pod_request(4).resources[0])
    msgspec.json.encode(inspect_all(seen))
    msgspec.json.encode(inspect_node(seen, "n1"))
    for dialect in (ALIYUN, ENFLAME):
        msgspec.json.encode(inspect_dialect(seen, dialect, ""))


@fuzzes(read_share_node, inspect_all, inspect_dialect, few=30)
@given(raw(objects.watched(objects.SHARE_NODE)))
@example(json.dumps(objects.SHARE_NODE).replace('"units": 16', '"units": ' + "9" * 30).encode())
@example(json.dumps(objects.SHARE_NODE).replace('"units": 16', '"units": -5').encode())
@example(json.dumps(objects.SHARE_NODE).replace('"units": 4', '"units": ' + "9" * 30).encode())
@example(json.dumps(objects.SHARE_NODE).replace('"index": 0', '"index": ' + "9" * 30).encode())
@example(nested(100_000))
def test_an_odd_share_node_takes_no_pods_and_harms_no_other(content: bytes) -> None:
    try:
        node = read_share_node(content)
    except UNREADABLE_JSON as error:
        assert str(error)
        return
    seen = ledger()
    seen.set_share_node(node)
    require_service(seen)
    seen.replace_share_nodes([node, share_node("good")])
    seen.drop_share_node(node.name)
    if node.name != "good":
        require_service(seen)


@fuzzes(read_pod, few=30)
@given(st.lists(raw(objects.watched(objects.POD)), min_size=1, max_size=3))
@example([json.dumps(objects.POD).replace('"uid-a"', '"\\ud800"').encode()])
@example(
    [
        json.dumps(
            {
                **objects.POD,
                "metadata": {
                    **objects.META,
                    "annotations": {
                        "gpushare.io/allocation": '{"node":"good","uid":"uid-a","at":"","unit":"1Gi",'
                        '"containers":{"m":{"good-0":' + "9" * 30 + "}}}"
                    },
                },
            }
        ).encode()
    ]
)
def test_an_odd_pod_is_not_believed_and_harms_no_other(contents: list[bytes]) -> None:
    seen = ledger()
    for content in contents:
        try:
            update = read_pod(content)
        except UNREADABLE_JSON as error:
            assert str(error)
            continue
        seen.set_pod(update)
        seen.pod_deleted(update.uid, now=1.0)
    result = filter_nodes(seen, ["good"], uid="new", request=pod_request(1))
    assert result.passing == ["good"] or result.failed
    msgspec.json.encode(inspect_all(seen))


@fuzzes(KubePod.request, rejection_for, PodList.pods)
@given(raw(objects.watched(objects.POD)), raw(mutated({"items": [BUDGET]})))
def test_a_pod_of_the_api_server_is_read_or_refused(content: bytes, budgets: bytes) -> None:
    try:
        pod = msgspec.json.decode(content, type=KubePod)
        state = msgspec.json.decode(content, type=PodState)
        bound = msgspec.json.decode(b'{"items":[' + content + b"]}", type=PodList).pods()
        allowed = msgspec.json.decode(budgets, type=BudgetList).items
    except UNREADABLE_JSON as error:
        assert str(error)
        return
    request = pod.request({"gpushare.io/memory": ResourceClass.MEMORY})
    assert isinstance(request, PodRequest)
    rejection_for("gpushare.io/memory", state)
    for node in bound:
        assert all(amount >= 0 for amount in node.frees.values())
    violating(bound, allowed)


@fuzzes(read_waiting)
@given(mutated(WAITING))
def test_an_odd_pod_that_waits_keeps_no_other_from_being_told(odd: Any) -> None:
    told = [remark(pod, {"gpushare.io/memory": 16}) for pod in read_waiting([odd, WAITING])]
    assert told[-1] is not None
    assert "gpushare.io/mem," in told[-1].note
