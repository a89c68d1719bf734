"""Pods that wait for what no node has are told so, and the others nothing."""

from typing import Any

import pytest
from tests.samples.extender import share_node

from gpushare_core.process.clock import utc_now
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.text.json_object import Json
from gpushare_extender.decide.waiting.unserved_pods import Remark, Waiting, read_waiting, remark

MEMORY = "gpushare.io/memory"
INSUFFICIENT = "0/3 nodes are available: 2 Insufficient {name}."


def waiting(*limits: dict[str, Any], message: str = "", **fields: Any) -> Json:
    """A pod for which kube-scheduler has found no node."""
    name = next(iter(limits[0]))
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    containers = [{"name": f"c{at}", "resources": {"limits": each}} for at, each in enumerate(limits)]
    return {
        "metadata": {"name": "a", "namespace": "default", "uid": "uid-a", **fields.pop("metadata", {})},
        "spec": {"containers": containers, **fields},
        "status": {"conditions": [{**refusal, "message": message or INSUFFICIENT.format(name=name)}]},
    }


def told(pod: Json, **biggest: int) -> Remark | None:
    served = {name.replace("_", "/"): amount for name, amount in biggest.items()} or {MEMORY: 16}
    found = [remark(waiting, served) for waiting in read_waiting([pod])]
    return found[0] if found else None


@pytest.mark.parametrize("name", ["aliyun.com/gpu-mem", "gpushare.io/mem", "gpushare.io/slice"])
def test_who_asks_for_what_nobody_serves_is_told_what_is_served(name: str) -> None:
    found = told(waiting({name: "2"}))
    assert found
    assert (found.reason, str(found.pod)) == (Waiting.NOT_SERVED, "default/a")
    assert found.note == f"the pod asks for {name}, and no node serves that; ask for one of these: {MEMORY}"


def test_what_another_device_plugin_may_offer_is_not_denied() -> None:
    found = told(waiting({"nvidia.com/gpu": 1}))
    assert found
    assert "it waits for a node on which another device plugin offers it" in found.note


def test_who_asks_for_more_than_the_biggest_card_has_is_told_how_much_that_is() -> None:
    found = told(waiting({MEMORY: "4096"}))
    assert found
    assert found.reason is Waiting.TOO_MUCH
    assert found.note.startswith(f"the pod asks for 4096 of {MEMORY}, and the biggest card has 16:")


def test_the_sum_of_containers_is_explained() -> None:
    found = told(waiting({MEMORY: 10}, {MEMORY: 12}))
    assert found
    assert f"asks for 22 of {MEMORY} (its containers together: c0 10, c1 12), and" in found.note


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(waiting({MEMORY: 16}), id="fits an empty card"),
        pytest.param(
            waiting({MEMORY: 20}, message="2 insufficient GPU memory in one card: asked 20, largest free 16"),
            id="was told by its scheduler",
        ),
        pytest.param(
            waiting({MEMORY: 20}, message="3 node(s) had untolerated taint(s)."), id="other reasons"
        ),
        pytest.param(waiting({"cpu": 1000}), id="asks for nothing of ours"),
        pytest.param(waiting({"example.com/gpu": 1}), id="another domain"),
        pytest.param(waiting({"gpushare.io/mem": "0"}), id="asks for nothing"),
        pytest.param(waiting({"gpushare.io/mem": 1}, schedulingGates=[{"name": "x"}]), id="gated"),
        pytest.param(
            waiting({"gpushare.io/mem": 1}, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), id="goes"
        ),
        pytest.param({**waiting({"gpushare.io/mem": 1}), "status": {}}, id="not tried yet"),
        pytest.param({"metadata": {"name": 5}}, id="unreadable"),
    ],
)
def test_the_others_are_told_nothing(pod: Json) -> None:
    assert told(pod) is None


def test_of_each_reason_there_is_one_event_whoever_writes_it() -> None:
    others = (waiting({MEMORY: 20}), waiting({MEMORY: 30}), waiting({"gpushare.io/mem": 1}))
    names = [found.to_event(utc_now())["metadata"]["name"] for pod in others if (found := told(pod))]
    assert names[0] == names[1] != names[2]


def test_the_biggest_is_that_of_empty_cards_closed_ones_too() -> None:
    ledger = Ledger()
    ledger.replace_share_nodes([share_node("n1"), share_node("n2", 8)])
    before = ledger.biggest()
    ledger.pause("n1", "its kubelet rejected a pod")
    assert ledger.biggest() == before
    assert list(before) == [MEMORY]
    ledger.drop_share_node("n1")
    ledger.drop_share_node("n2")
    assert ledger.biggest() == {}
