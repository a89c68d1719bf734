"""Which names are ours: on a node, and for the schedulers."""

from typing import Any

import pytest
from tests.samples.operator import (
    marked,
    node,
    policy,
    rule,
    serving,
    share,
    share_condition,
    sharing,
    snapshot,
    spec,
)

from gpushare_core.api.names import DIALECT_LABEL, MODE_LABEL, POLICY_LABEL
from gpushare_core.dialects.table import DIALECTS
from gpushare_operator.decide.nodes.dialect_names import dialect_in_force, names_left_by_kubelet, own_names
from gpushare_operator.policies.served_resources import ignored_resources, managed_resources

OURS = ("gpushare.io/memory", "gpushare.io/slice", "gpushare.io/card")
ALIYUN = ("aliyun.com/gpu-mem", "gpushare.io/slice", "gpushare.io/card")
VOLCANOS = {DIALECT_LABEL: "volcano.sh", MODE_LABEL: "Memory"}
TUYA = ("tuya.com/vcuda-memory", "tuya.com/sgpu")
SLICES: dict[str, Any] = {"mode": "Slices", "slicesPerCard": 2}


def speaking(dialect: str, *, name: str = "default", created: int = 0, **how: Any) -> Any:
    return policy(name, created=created, spec=spec(rule("gpu-1", **how), dialect=dialect))


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        pytest.param([], OURS, id="no policy: hostctl wants some"),
        pytest.param([speaking("gpushare.io")], OURS, id="ours, whatever the mode"),
        pytest.param([speaking("aliyun.com")], ALIYUN, id="a dialect without a name for slices and cards"),
        pytest.param([speaking("tuya.com")], TUYA, id="no node serves nvidia.com/gpu"),
        pytest.param([speaking("tuya.com", **SLICES)], TUYA, id="nor with slices"),
        pytest.param([speaking("tuya.com", mode="Exclusive")], (*TUYA, "nvidia.com/gpu"), id="whole cards"),
        pytest.param([speaking("tuya.com", mode="Off")], OURS, id="off"),
        pytest.param([speaking("tuya.com"), speaking("aliyun.com", name="b")], (*ALIYUN, *TUYA), id="two"),
        pytest.param([speaking("aliyun.com"), speaking("tuya.com", name="b")], (*ALIYUN, *TUYA), id="two, b"),
    ],
)
def test_schedulers_ask_the_extender_for_the_names_in_use(policies: Any, expected: tuple[str, ...]) -> None:
    assert managed_resources(sharing(policies)) == expected


def test_what_a_policy_without_nodes_asks_for_is_nobodys() -> None:
    """A younger policy that won no node had kube-scheduler edited for its dialect."""
    owner, loser = policy(), speaking("volcano.sh", name="younger")
    seen = snapshot(owner, loser, node("gpu-1", "default"), share("gpu-1", owner))
    assert managed_resources(seen) == OURS


def test_what_is_in_force_counts_although_no_policy_asks_for_it_any_more() -> None:
    edited = speaking("aliyun.com")
    kept = share("gpu-1", speaking("tuya.com", mode="Exclusive"))
    assert "nvidia.com/gpu" in managed_resources(sharing(edited, kept))
    leaving = node("gpu-2", labels={**marked("default"), **VOLCANOS})
    assert "volcano.sh/gpu-memory" in managed_resources(sharing(edited, leaving))


def test_a_kubelet_that_labels_its_node_has_no_scheduler_edited() -> None:
    mine = node("gpu-3", labels={POLICY_LABEL: "default", **VOLCANOS})
    assert managed_resources(sharing(speaking("aliyun.com"), mine)) == ALIYUN


def test_what_no_node_offers_is_told_apart() -> None:
    assert ignored_resources(sharing(speaking("tuya.com"))) == ("tuya.com/vcuda-core",)
    assert ignored_resources(sharing(speaking("aliyun.com"))) == ()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, ("gpushare.io/memory",), id="nothing recorded"),
        pytest.param({DIALECT_LABEL: "?"}, ("gpushare.io/memory",), id="of another version"),
        pytest.param({DIALECT_LABEL: "aliyun.com"}, ("aliyun.com/gpu-count",), id="a dialect"),
        pytest.param({DIALECT_LABEL: "tuya.com"}, ("nvidia.com/gpu",), id="a name that others have, too"),
    ],
)
def test_on_a_node_the_names_of_its_recorded_dialect_are_ours(
    labels: dict[str, str], expected: tuple[str, ...]
) -> None:
    offered = ("aliyun.com/gpu-count", "gpushare.io/memory", "nvidia.com/gpu")
    assert own_names(node("gpu-1", labels=labels, offered=offered)) == expected


def test_what_the_plugin_says_of_its_dialect_decides() -> None:
    recorded = node("gpu-1", labels={DIALECT_LABEL: "aliyun.com"})
    answered = share("gpu-1", speaking("volcano.sh"), dialect="enflame.com")
    assert dialect_in_force(recorded, answered, "volcano.sh", "Memory") is DIALECTS["enflame.com"]
    unknown = share("gpu-1", speaking("volcano.sh"), dialect="of another version")
    assert dialect_in_force(recorded, unknown, "volcano.sh", "Memory") is DIALECTS["volcano.sh"]
    assert "enflame.com/gcu-memory" in managed_resources(sharing(speaking("volcano.sh"), answered))


@pytest.mark.parametrize(
    ("share_of", "expected"),
    [
        pytest.param(None, "aliyun.com", id="its GPUShareNode is not there yet"),
        pytest.param({"generation": 2}, "aliyun.com", id="its plugin has not answered"),
        pytest.param({"conditions": share_condition("UnitChangeBlocked")}, "aliyun.com", id="blocked"),
        pytest.param(
            {"conditions": share_condition("UnitChangeBlocked", status="False")}, "volcano.sh", id="in force"
        ),
    ],
)
def test_the_dialect_in_force_is_the_plugins(share_of: dict[str, Any] | None, expected: str) -> None:
    recorded = node("gpu-1", labels={DIALECT_LABEL: "aliyun.com"})
    answered = None if share_of is None else share("gpu-1", speaking("volcano.sh"), **share_of)
    assert dialect_in_force(recorded, answered, "volcano.sh", "Memory") is DIALECTS[expected]
    assert dialect_in_force(node("gpu-1"), answered, "volcano.sh", "Memory") is DIALECTS["volcano.sh"]


ZEROS = frozenset({"aliyun.com/gpu-mem", "gpushare.io/memory", "nvidia.com/gpu", "aliyun.com/gpu-count"})


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, ("aliyun.com/gpu-mem", "gpushare.io/memory"), id="no node of ours any more"),
        pytest.param({DIALECT_LABEL: "aliyun.com"}, ("gpushare.io/memory",), id="of a dialect before"),
        pytest.param({DIALECT_LABEL: "gpushare.io"}, ("aliyun.com/gpu-mem",), id="of a dialect before, b"),
    ],
)
def test_kubelets_leave_zeros_by_names_that_only_dialects_have(
    labels: dict[str, str], expected: tuple[str, ...]
) -> None:
    left = node("gpu-1", labels=labels, offered=tuple(sorted(ZEROS)), zeros=ZEROS)
    assert names_left_by_kubelet(sharing(left).states[left.name]) == expected


def test_in_force_by_default_nothing_is_stale() -> None:
    seen = sharing(serving(policy(), "gpu-1"))
    assert names_left_by_kubelet(seen.states["gpu-1"]) == ()
