"""When a pod may not wait."""

from typing import Any

import pytest
from chaos.model.room import node_with_room

from gpushare_core.audit.readers import read_share_node
from gpushare_core.text.json_object import Json

CARD = {"memory": "16Gi", "health": "Healthy"}
MIXED = {"offers": {"memory": 16, "slice": 2, "card": 1}}


def pod(*limits: Json, init: tuple[Json, ...] = ()) -> Json:
    def containers(all_limits: tuple[Json, ...]) -> list[Json]:
        return [{"name": f"c{n}", "resources": {"limits": each}} for n, each in enumerate(all_limits)]

    return {"spec": {"containers": containers(limits), "initContainers": containers(init)}}


def share_node(*cards: Json, unit: str = "1Gi", dialect: str = "gpushare.io") -> Json:
    described = [
        {**CARD, "uuid": f"GPU-{index}", "index": index, "firstUnit": index * 100, **card}
        for index, card in enumerate(cards)
    ]
    status = {"memoryUnit": unit, "dialect": dialect, "cards": described}
    return {"metadata": {"name": "gpu-1"}, "status": status}


def room(body: Json, share: Json, **node: Any) -> str:
    return node_with_room(body, [({"spec": node}, read_share_node(share))])


MEMORY, SLICE, WHOLE = "gpushare.io/memory", "gpushare.io/slice", "gpushare.io/card"
FULL, HALF, FREE = (
    {"units": 16, "allocatedUnits": 16},
    {"units": 16, "allocatedUnits": 8},
    {"units": 16, "allocatedUnits": 0},
)
MIXED_UNIT = "1Gi, 1/2 card, 1 card"


@pytest.mark.parametrize(
    ("body", "share", "expected"),
    [
        pytest.param(pod({MEMORY: "8"}), share_node(FULL, HALF), "gpu-1", id="on one card"),
        pytest.param(pod({MEMORY: "9"}), share_node(HALF, HALF), "", id="only on two cards together"),
        pytest.param(pod({MEMORY: "4"}, {MEMORY: "4"}), share_node(HALF), "gpu-1", id="both containers"),
        pytest.param(pod({MEMORY: "8"}, init=({MEMORY: "8"},)), share_node(HALF), "", id="in doubt: none"),
        pytest.param(pod({MEMORY: "1"}), share_node({**FREE, "health": "Unhealthy"}), "", id="sick card"),
        pytest.param(pod({MEMORY: "1"}), share_node({**FREE, "cordoned": True}), "", id="cordoned card"),
        pytest.param(pod({SLICE: "1"}), share_node(FREE), "", id="another class than the mode's"),
        pytest.param(
            pod({SLICE: "2"}),
            share_node({**FREE, **MIXED}, {**FREE, **MIXED}, unit=MIXED_UNIT),
            "gpu-1",
            id="slices on two free cards",
        ),
        pytest.param(
            pod({WHOLE: "1"}),
            share_node({**HALF, **MIXED, "lock": "Memory"}, unit=MIXED_UNIT),
            "",
            id="no whole card where memory is in use",
        ),
        pytest.param(
            pod({"aliyun.com/gpu-mem": "2"}), share_node(FREE, dialect="aliyun.com"), "gpu-1", id="dialect"
        ),
        pytest.param(pod({MEMORY: "2"}), share_node(FREE, dialect="aliyun.com"), "", id="another dialect"),
        pytest.param(pod({}), share_node(FREE), "", id="ordinary pod: not asked here"),
        pytest.param(pod({MEMORY: "1", "x.org/y": "1"}), share_node(FREE), "", id="asks for more than that"),
    ],
)
def test_room(body: Json, share: Json, expected: str) -> None:
    assert room(body, share) == expected


def test_a_pod_of_a_daemonset_waits_for_one_node() -> None:
    body = pod({MEMORY: "1"})
    body["spec"]["affinity"] = {"nodeAffinity": {}}
    assert room(body, share_node(FREE)) == ""


@pytest.mark.parametrize("node", [{"unschedulable": True}, {"taints": [{"key": "a"}]}])
def test_a_node_that_takes_no_pods_has_no_room(node: Json) -> None:
    assert room(pod({MEMORY: "1"}), share_node(FREE), **node) == ""
