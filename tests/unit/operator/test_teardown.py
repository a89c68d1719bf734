"""A deleted policy is taken back in an order that leaves no pod on a half-removed node."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from tests.samples.operator import (
    INSTALLATION,
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
from gpushare_core.api.plugin_heartbeat import IsolationFiles, isolation_files
from gpushare_operator.actions import (
    DeleteDaemonSet,
    DeleteShareNode,
    LabelNode,
    SetFinalizers,
)
from gpushare_operator.backends.teardown_step import Leftover
from gpushare_operator.cluster.objects import PodObject, PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.teardown.steps import still_there, teardown_steps
from gpushare_operator.desired.plugin_daemon_set import plugin_daemon_set
from gpushare_operator.desired.plugin_platform import ISOLATION, PluginPlatform

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
        "isolation files",
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


HOOKED = PluginPlatform(folders=(ISOLATION,))


def with_files(
    files: Mapping[str, IsolationFiles | None] | None, owner: PolicyObject = GONE
) -> ClusterSnapshot:
    """Schedulers are disconnected, and plugins run that may have made files of isolation."""
    daemon_set = plugins(owner, body=plugin_daemon_set(owner, INSTALLATION, HOOKED))
    nodes = (node("gpu-1", "default"), node("gpu-2", "default", ready=False), node("gpu-3", "other"))
    return replace(snapshot(owner, *nodes, daemon_set, plugin_pod("gpu-1")), isolation_files=files)


NEEDED = isolation_files(["default/a", "team/b"])


def test_plugins_stay_while_containers_need_the_files_that_they_were_given() -> None:
    seen = with_files({"gpu-1": NEEDED})
    assert policy_actions(seen) == []
    (left, *_) = still_there(seen, "default")
    assert left.names == ("default/a", "team/b")
    assert "gpushare.io/leave-isolation-files=true of the policy leaves them" in left.description


@pytest.mark.parametrize(
    ("files", "names"),
    [
        pytest.param({"gpu-1": isolation_files([])}, ("gpu-1",), id="they are being removed"),
        pytest.param(None, (), id="no plugin was asked yet"),
        pytest.param({"gpu-1": None}, (), id="a plugin has just started"),
    ],
)
def test_plugins_stay_until_they_have_removed_the_files(
    files: Mapping[str, IsolationFiles | None] | None, names: tuple[str, ...]
) -> None:
    seen = with_files(files)
    assert policy_actions(seen) == []
    assert still_there(seen, "default")[0].names == names


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="none"),
        pytest.param({"gpu-2": NEEDED}, id="on a node that is not Ready"),
        pytest.param({"gpu-2": None}, id="on a node that is not Ready, where it has just started"),
        pytest.param({"gpu-3": NEEDED}, id="on another policy's node"),
        pytest.param({"gone": NEEDED}, id="on a node that is gone"),
    ],
)
def test_files_that_no_plugin_of_the_policy_removes_are_not_waited_for(
    files: Mapping[str, IsolationFiles | None],
) -> None:
    assert "DeleteDaemonSet" in class_names(policy_actions(with_files(files)))


@pytest.mark.parametrize(
    "pods", [(plugin_pod("gpu-1", ready=False),), ()], ids=["it crashes", "none is there"]
)
def test_a_plugin_that_does_not_run_is_named_as_what_keeps_the_files(pods: tuple[PodObject, ...]) -> None:
    seen = replace(with_files({"gpu-1": isolation_files([])}), pods={pod.name: pod for pod in pods})
    (left, *_) = still_there(seen, "default")
    assert left.names == ("gpu-1",)
    assert (
        "which no plugin is there to remove (the annotation gpushare.io/leave-isolation-files=true"
        in left.description
    )


def test_people_may_leave_the_files() -> None:
    leaving = policy(deleting=True, leaves_isolation_files=True)
    assert "DeleteDaemonSet" in class_names(policy_actions(with_files({"gpu-1": NEEDED}, leaving)))


def test_pods_that_are_not_named_are_counted() -> None:
    many = isolation_files([f"default/pod-{number:02}" for number in range(23)])
    assert still_there(with_files({"gpu-1": many}), "default")[0].names[-1] == "3 more on gpu-1"
