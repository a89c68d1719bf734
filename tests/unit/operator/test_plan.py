"""Snapshot in, actions out."""

from typing import Any

import pytest
from tests.samples.operator import (
    INSTALLATION,
    NOW,
    control_plane,
    extender,
    extender_pod,
    installed,
    node,
    plugin_pod,
    plugins,
    policy,
    rule,
    serving,
    share,
    snapshot,
    spec,
)

from gpushare_core.api.names import FINALIZER, MODE_LABEL, POLICY_LABEL
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.actions import (
    Action,
    ApplyDaemonSet,
    ApplyShareNode,
    ClearCapacity,
    DeleteDaemonSet,
    DeleteShareNode,
    LabelNode,
    SetFinalizers,
)
from gpushare_operator.decide.policy import plan_policy, plan_shared

MEMORY = "gpushare.io/memory"
OURS = {POLICY_LABEL: "default", MODE_LABEL: "Memory"}
NOTHING_OF_OURS = {POLICY_LABEL: None, MODE_LABEL: None}


def due(seen: Snapshot, name: str = "default") -> list[Action]:
    return list(plan_policy(seen, seen.policies[name], INSTALLATION).actions)


def shared(seen: Snapshot) -> list[Action]:
    return list(plan_shared(seen, INSTALLATION, NOW).actions)


def kinds(actions: list[Action]) -> list[str]:
    return [type(action).__name__ for action in actions]


def test_a_new_policy_gets_the_finalizer_before_anything_is_touched() -> None:
    new = policy(finalizers=("theirs",))
    (action,) = due(snapshot(new, node("gpu-1")))
    assert action == SetFinalizers("default", "7", ("theirs", FINALIZER))


def test_a_selected_node_gets_plugin_share_node_and_labels() -> None:
    first, second, third = due(snapshot(policy(), node("gpu-1"), node("gpu-2")))
    assert isinstance(first, ApplyDaemonSet)
    assert first.name == "gpushare-plugin-default"
    assert isinstance(second, ApplyShareNode)
    assert second.node == "gpu-1"
    assert second.body["spec"]["memoryUnit"] == "1Gi"
    assert second.body["metadata"]["ownerReferences"][0]["uid"] == "uid-default"
    assert third == LabelNode("gpu-1", "uid-gpu-1", OURS)


def test_a_policy_in_force_needs_nothing() -> None:
    seen = snapshot(serving(policy(), "gpu-1"))
    assert due(seen) == []
    assert shared(seen) == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(node("gpu-1"), ["LabelNode"], id="labels removed"),
        pytest.param(node("gpu-1", "default", {MODE_LABEL: "Off"}), ["LabelNode"], id="a label changed"),
        pytest.param(share("gpu-1", policy(), spec={}), ["ApplyShareNode"], id="share node changed"),
        pytest.param(share("gpu-1", policy(), owners=()), ["ApplyShareNode"], id="owner removed"),
        pytest.param(share("gpu-1", policy(), deleting=True), [], id="share node going, made anew when gone"),
        pytest.param(plugins(policy(), body={}), ["ApplyDaemonSet"], id="DaemonSet changed"),
        pytest.param(plugins(policy(), deleting=True), [], id="DaemonSet going, made anew when gone"),
    ],
)
def test_what_others_changed_is_put_right(changed: Any, expected: list[str]) -> None:
    assert kinds(due(snapshot(serving(policy(), "gpu-1"), changed))) == expected


@pytest.mark.parametrize(
    "edited",
    [
        pytest.param(spec(rule("gpu-1"), memoryUnit="256Mi"), id="unit"),
        pytest.param(spec(rule("gpu-1", reservedMemory="1Gi")), id="reserved memory"),
        pytest.param(spec(rule("gpu-1"), placement={"strategy": "Spread"}), id="placement"),
        pytest.param(spec(rule("gpu-1"), plugin={"logLevel": "debug"}), id="log level"),
    ],
)
def test_an_edited_policy_changes_the_share_nodes_and_restarts_nothing(edited: Any) -> None:
    seen = snapshot(serving(policy(), "gpu-1"), policy(spec=edited))
    assert kinds(due(seen)) == ["ApplyShareNode"]


def test_a_node_that_left_the_selection_loses_its_share_node_first() -> None:
    seen = snapshot(serving(policy(), "gpu-1", "gpu-2"))
    assert due(seen) == [DeleteShareNode("gpu-2", "uid-share-gpu-2")]


def test_and_then_its_labels() -> None:
    seen = snapshot(serving(policy(), "gpu-1"), node("gpu-2", "default"), plugin_pod("gpu-2"))
    assert due(seen) == [LabelNode("gpu-2", "uid-gpu-2", NOTHING_OF_OURS)]


def test_and_at_last_the_capacity_that_the_kubelet_keeps() -> None:
    left = node("gpu-2", offered=(MEMORY,))
    assert shared(snapshot(serving(policy(), "gpu-1"), left, plugin_pod("gpu-2"))) == []
    seen = snapshot(serving(policy(), "gpu-1"), left)
    assert shared(seen) == [ClearCapacity("gpu-2", "uid-gpu-2", (MEMORY,))]


def test_a_node_that_vanished_is_forgotten() -> None:
    seen = snapshot(serving(policy("default", rule("gpu-1", "gpu-2")), "gpu-1"), share("gpu-2", policy()))
    assert due(seen) == [DeleteShareNode("gpu-2", "uid-share-gpu-2")]


def test_a_node_that_is_being_deleted_is_let_go() -> None:
    seen = snapshot(serving(policy(), "gpu-1"), node("gpu-1", "default", deleting=True))
    assert kinds(due(seen)) == ["DeleteShareNode"]


@pytest.mark.parametrize(
    "unserved",
    [
        pytest.param(spec(rule("gpu-1", mode="Exclusive")), id="mode"),
        pytest.param(spec({"names": ["gpu-1"]}), id="source NVML"),
        pytest.param(spec(rule("gpu-1"), dialect="aliyun.com"), id="dialect"),
        pytest.param(spec(rule("gpu-1"), scheduler={"backend": "Dedicated"}), id="backend"),
        pytest.param(spec(rule("gpu-1", mode="Off")), id="off"),
        pytest.param(None, id="invalid"),
    ],
)
def test_what_is_not_served_enables_no_node(unserved: Any) -> None:
    assert due(snapshot(policy(spec=unserved), node("gpu-1"))) == []


def test_the_rest_of_a_policy_is_served_all_the_same() -> None:
    mixed = policy("default", rule("gpu-1", mode="Exclusive"), rule("gpu-2"))
    actions = due(snapshot(mixed, node("gpu-1"), node("gpu-2")))
    assert [action.node for action in actions if isinstance(action, LabelNode)] == ["gpu-2"]


class TestDeletion:
    """A deleted policy is taken back in an order that leaves no pod on a half-removed node."""

    gone = policy(deleting=True)

    def test_first_nothing_is_offered_any_more(self) -> None:
        seen = snapshot(serving(self.gone, "gpu-1"))
        assert due(seen) == [DeleteShareNode("gpu-1", "uid-share-gpu-1")]
        assert shared(seen) == [], "the scheduler stays connected while units are offered"

    def test_then_the_scheduler_is_restored(self) -> None:
        seen = snapshot(self.gone, node("gpu-1", "default"), plugins(self.gone), *self.scheduler())
        assert due(seen) == []
        assert kinds(shared(seen)) == ["CreateJob"]

    def test_then_plugins_and_labels_go(self) -> None:
        seen = snapshot(self.gone, node("gpu-1", "default"), plugins(self.gone), plugin_pod("gpu-1"))
        assert due(seen) == [
            DeleteDaemonSet("gpushare-plugin-default", "uid-ds"),
            LabelNode("gpu-1", "uid-gpu-1", NOTHING_OF_OURS),
        ]

    @pytest.mark.parametrize(
        "left",
        [
            pytest.param(plugin_pod("gpu-1"), id="a plugin that stops"),
            pytest.param(node("gpu-1", offered=(MEMORY,)), id="capacity"),
            pytest.param(extender_pod(), id="an extender that stops"),
            pytest.param(installed(), id="an edited scheduler"),
            pytest.param(plugins(gone, deleting=True), id="a DaemonSet that goes"),
        ],
    )
    def test_the_finalizer_waits_for(self, left: Any) -> None:
        assert due(snapshot(self.gone, node("gpu-1"), control_plane(), left)) == []

    def test_the_finalizer_goes_last(self) -> None:
        seen = snapshot(policy(deleting=True, finalizers=("theirs", FINALIZER)), node("gpu-1"))
        assert due(seen) == [SetFinalizers("default", "7", ("theirs",))]

    @pytest.mark.parametrize(
        "left",
        [
            pytest.param(plugin_pod("gpu-1"), id="a plugin"),
            pytest.param(extender_pod("gpu-1"), id="an extender"),
        ],
    )
    def test_a_kubelet_that_is_away_does_not_hold_it_up(self, left: Any) -> None:
        assert kinds(due(snapshot(self.gone, node("gpu-1", ready=False), left))) == ["SetFinalizers"]

    def test_the_scheduler_stays_connected_for_another_policy(self) -> None:
        other = policy("other", rule("gpu-2"))
        seen = snapshot(serving(other, "gpu-2"), self.gone, node("gpu-1"))
        assert kinds(due(seen)) == ["SetFinalizers"]
        assert shared(seen) == []

    def test_without_our_finalizer_nothing_is_ours_to_do(self) -> None:
        assert due(snapshot(policy(deleting=True, finalizers=("theirs",)), node("gpu-1"))) == []

    def scheduler(self) -> list[Any]:
        return [control_plane(), extender(), extender_pod(), installed()]


def test_what_a_policy_left_whose_finalizer_was_taken_off_by_force_is_removed() -> None:
    forced = policy()
    offered = snapshot(node("gpu-1", "default"), share("gpu-1", forced), plugins(forced))
    assert kinds(shared(offered)) == ["DeleteShareNode"]
    silent = snapshot(node("gpu-1", "default"), plugins(forced))
    assert kinds(shared(silent)) == ["DeleteDaemonSet", "LabelNode"]
    edited = snapshot(control_plane(), extender(), extender_pod(), installed())
    assert kinds(shared(edited)) == ["CreateJob"]
