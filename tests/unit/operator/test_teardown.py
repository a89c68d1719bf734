"""A deleted policy is taken back in an order that leaves no pod on a half-removed node."""

from typing import Any

import pytest
from tests.samples.operator import (
    class_names,
    cluster_actions,
    control_plane,
    extender,
    extender_pod,
    installed,
    node,
    plugin_pod,
    plugins,
    policy,
    policy_actions,
    rule,
    serving,
    share,
    snapshot,
)

from gpushare_core.api.names import FINALIZER, MODE_LABEL, PLUGIN_NODE_LABEL, POLICY_LABEL
from gpushare_operator.actions import (
    DeleteDaemonSet,
    DeleteShareNode,
    LabelNode,
    SetFinalizers,
)
from gpushare_operator.backends.teardown_step import Leftover
from gpushare_operator.decide.teardown.steps import still_there, teardown_steps

MEMORY = "gpushare.io/memory"
NO_LABELS: dict[str, str | None] = {PLUGIN_NODE_LABEL: None, POLICY_LABEL: None}
LEAVING = {MODE_LABEL: "Memory"}

GONE = policy(deleting=True)


def test_first_nothing_is_offered_any_more() -> None:
    seen = snapshot(serving(GONE, "gpu-1"))
    assert policy_actions(seen) == [DeleteShareNode("gpu-1", "uid-share-gpu-1")]
    assert cluster_actions(seen) == [], "the scheduler stays connected while units are offered"


def test_then_the_scheduler_is_restored() -> None:
    seen = snapshot(GONE, node("gpu-1", "default"), plugins(GONE), *connected_scheduler())
    assert policy_actions(seen) == []
    assert class_names(cluster_actions(seen)) == ["CreateJob"]


def test_then_plugins_and_labels_go() -> None:
    seen = snapshot(GONE, node("gpu-1", "default"), plugins(GONE), plugin_pod("gpu-1"))
    assert policy_actions(seen) == [
        DeleteDaemonSet("gpushare-plugin-default", "uid-ds"),
        LabelNode("gpu-1", "uid-gpu-1", NO_LABELS),
    ]


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(plugin_pod("gpu-1"), id="a plugin that stops"),
        pytest.param(
            node("gpu-1", labels=LEAVING, offered=(MEMORY,), zeros=frozenset({MEMORY})), id="capacity"
        ),
        pytest.param(extender_pod(), id="an extender that stops"),
        pytest.param(installed(), id="an edited scheduler"),
        pytest.param(plugins(GONE, deleting=True), id="a DaemonSet that goes"),
    ],
)
def test_the_finalizer_waits_for(left: Any) -> None:
    assert policy_actions(snapshot(GONE, node("gpu-1"), control_plane(), left)) == []


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(node("other", offered=(MEMORY,)), id="somebody else's plugin"),
        pytest.param(node("other", offered=(MEMORY,), zeros=frozenset({MEMORY})), id="zeros"),
    ],
)
def test_a_foreign_node_that_shows_our_resource_holds_up_nothing(foreign: Any) -> None:
    assert class_names(policy_actions(snapshot(GONE, node("gpu-1"), foreign))) == ["SetFinalizers"]


def test_the_finalizer_goes_last() -> None:
    seen = snapshot(policy(deleting=True, finalizers=("theirs", FINALIZER)), node("gpu-1"))
    assert policy_actions(seen) == [SetFinalizers("default", "7", ("theirs",))]


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(plugin_pod("gpu-1"), id="a plugin"),
        pytest.param(extender_pod("gpu-1"), id="an extender"),
    ],
)
def test_a_kubelet_that_is_away_does_not_hold_it_up(left: Any) -> None:
    assert class_names(policy_actions(snapshot(GONE, node("gpu-1", ready=False), left))) == ["SetFinalizers"]


def test_the_scheduler_stays_connected_for_another_policy() -> None:
    other = policy("other", rule("gpu-2"))
    seen = snapshot(serving(other, "gpu-2"), GONE, node("gpu-1"))
    assert class_names(policy_actions(seen)) == ["SetFinalizers"]
    assert cluster_actions(seen) == []


def test_without_our_finalizer_nothing_is_ours_to_do() -> None:
    assert policy_actions(snapshot(policy(deleting=True, finalizers=("theirs",)), node("gpu-1"))) == []


def connected_scheduler() -> list[Any]:
    return [control_plane(), extender(), extender_pod(), installed()]


def test_what_a_policy_left_whose_finalizer_was_taken_off_by_force_is_removed() -> None:
    forced = policy()
    offered = snapshot(node("gpu-1", "default"), share("gpu-1", forced), plugins(forced))
    assert class_names(cluster_actions(offered)) == ["DeleteShareNode"]
    silent = snapshot(node("gpu-1", "default"), plugins(forced))
    assert class_names(cluster_actions(silent)) == ["DeleteDaemonSet", "LabelNode"]
    edited = snapshot(control_plane(), extender(), extender_pod(), installed())
    assert class_names(cluster_actions(edited)) == ["CreateJob"]


def test_the_steps_stand_in_this_order() -> None:
    assert [step.name for step in teardown_steps(None)] == [
        "GPUShareNodes",
        "schedulers restored",
        "extender",
        "marks on control-plane nodes",
        "Jobs",
        "extender stopped",
        "external extender",
        "external extender stopped",
        "external marks",
        "dedicated scheduler",
        "dedicated scheduler stopped",
        "Volcano's ConfigMap restored",
        "plugins and labels",
        "capacity on nodes",
        "startup taints",
        "finalizer",
    ]


def test_everything_that_is_still_there_is_named() -> None:
    seen = snapshot(serving(GONE, "gpu-1"))
    assert still_there(seen, "default") == [
        Leftover("the scheduler's connection"),
        Leftover("GPUShareNodes", ("gpu-1",)),
        Leftover("DaemonSet", ("gpushare-plugin-default",)),
        Leftover("the plugin on", ("gpu-1",)),
        Leftover("labels on", ("gpu-1",)),
    ]
