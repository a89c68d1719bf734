"""What is planned for a policy: snapshot in, actions out."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.samples.operator import (
    INSTALLATION,
    SLICED,
    class_names,
    cluster_actions,
    marked,
    node,
    plugin_pod,
    plugins,
    policy,
    policy_actions,
    rule,
    serving,
    share,
    share_condition,
    snapshot,
    spec,
    spec_of_volcano,
)

from gpushare_core.api.conditions import condition_true
from gpushare_core.api.names import (
    DIALECT_LABEL,
    FINALIZER,
    MODE_LABEL,
    PLUGIN_NODE_LABEL,
    POLICY_LABEL,
    REGISTERED,
)
from gpushare_core.api.plugin_heartbeat import IsolationFiles, isolation_files
from gpushare_operator.actions import (
    ApplyDaemonSet,
    ApplyShareNode,
    CapacityLeft,
    ClearCapacity,
    DeleteShareNode,
    LabelNode,
    SetFinalizers,
)
from gpushare_operator.cluster.objects import DaemonSetObject, NodeObject, PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.conflicting_managers import conflicting_manager
from gpushare_operator.desired.plugin_daemon_set import plugin_daemon_set
from gpushare_operator.desired.plugin_platform import PluginPlatform

MEMORY = "gpushare.io/memory"
LABELS = {**marked("default"), MODE_LABEL: "Memory", DIALECT_LABEL: "gpushare.io"}
NO_LABELS: dict[str, str | None] = {PLUGIN_NODE_LABEL: None, POLICY_LABEL: None}


def test_a_new_policy_gets_the_finalizer_before_anything_is_touched() -> None:
    new = policy(finalizers=("theirs",))
    (action,) = policy_actions(snapshot(new, node("gpu-1")))
    assert action == SetFinalizers("default", "7", ("theirs", FINALIZER))


@pytest.mark.parametrize("kubernetes", ["v1.31.5", "v1.20.0"])
def test_a_server_that_is_too_old_gets_nothing_new(kubernetes: str) -> None:
    new = policy(finalizers=())
    assert policy_actions(snapshot(new, node("gpu-1"), kubernetes=kubernetes)) == []
    changed = policy("default", rule("gpu-1", "gpu-2"))
    seen = serving(policy("default", rule("gpu-1")), "gpu-1"), changed, node("gpu-2")
    assert policy_actions(snapshot(*seen))
    refused = snapshot(*seen, kubernetes=kubernetes)
    assert policy_actions(refused) == []
    assert cluster_actions(refused) == []


def test_a_plugin_that_is_not_heard_of_is_doubted_on_a_server_that_is_too_old_as_well() -> None:
    owner = policy("default", rule("gpu-1"))
    said = {REGISTERED: condition_true(REGISTERED, "Registered")}
    reported = replace(share("gpu-1", owner), conditions=said)
    seen = snapshot(serving(owner, "gpu-1"), reported, kubernetes="v1.31.5")
    silent = replace(seen, unavailable={"gpu-1": datetime(2026, 11, 21, 12, tzinfo=UTC)})
    assert class_names(policy_actions(silent)) == ["DoubtShareNode"]


@pytest.mark.parametrize("kubernetes", ["", "v1.32.0", "v1.37.2", "v1.38.0", "v2.0.0"])
def test_a_server_of_an_unknown_or_newer_version_is_served(kubernetes: str) -> None:
    assert policy_actions(snapshot(policy(finalizers=()), node("gpu-1"), kubernetes=kubernetes))


def test_labels_come_after_all_share_nodes_so_that_each_kind_is_written_at_the_same_time() -> None:
    seen = snapshot(policy("default", rule("gpu-1", "gpu-2")), node("gpu-1"), node("gpu-2"))
    assert class_names(policy_actions(seen)) == [
        "ApplyShareNode",
        "ApplyShareNode",
        "LabelNode",
        "LabelNode",
        "ApplyDaemonSet",
    ]


def test_a_selected_node_gets_plugin_share_node_and_labels() -> None:
    first, second, third = policy_actions(snapshot(policy(), node("gpu-1"), node("gpu-2")))
    assert isinstance(first, ApplyShareNode)
    assert first.node == "gpu-1"
    assert first.body["spec"]["memoryUnit"] == "1Gi"
    assert first.body["metadata"]["ownerReferences"][0]["uid"] == "uid-default"
    assert second == LabelNode("gpu-1", "uid-gpu-1", LABELS)
    assert isinstance(third, ApplyDaemonSet)
    assert third.name == "gpushare-plugin-default"


def test_a_policy_in_force_needs_nothing() -> None:
    seen = snapshot(serving(policy(), "gpu-1"))
    assert policy_actions(seen) == []
    assert cluster_actions(seen) == []


PLAIN = share("gpu-1", policy())
ADDED_TO = replace(PLAIN, spec={**PLAIN.spec, "slicesPerCard": 2})
OF_TOMORROW = replace(PLAIN, spec={**PLAIN.spec, "ofTomorrow": "yes"})


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(node("gpu-1"), ["LabelNode"], id="labels removed"),
        pytest.param(node("gpu-1", "default", {MODE_LABEL: "Off"}), ["LabelNode"], id="a label changed"),
        pytest.param(share("gpu-1", policy(), spec={}), ["ApplyShareNode"], id="share node changed"),
        pytest.param(ADDED_TO, ["ApplyShareNode"], id="a field added that the policy leaves out"),
        pytest.param(OF_TOMORROW, [], id="a field added that this version does not know"),
        pytest.param(share("gpu-1", policy(), owners=()), ["ApplyShareNode"], id="owner removed"),
        pytest.param(share("gpu-1", policy(), deleting=True), [], id="share node going, made anew when gone"),
        pytest.param(plugins(policy(), body={}), ["ApplyDaemonSet"], id="DaemonSet changed"),
        pytest.param(plugins(policy(), deleting=True), [], id="DaemonSet going, made anew when gone"),
    ],
)
def test_what_others_changed_is_put_right(changed: Any, expected: list[str]) -> None:
    assert class_names(policy_actions(snapshot(serving(policy(), "gpu-1"), changed))) == expected


def test_whoever_adds_a_field_that_the_policy_leaves_out_is_told_what_it_is() -> None:
    seen = snapshot(serving(policy(), "gpu-1"), ADDED_TO)
    (action,) = policy_actions(seen)
    assert conflicting_manager(seen, action) == "somebody changes spec.slicesPerCard"


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
    assert class_names(policy_actions(seen)) == ["ApplyShareNode"]


def test_a_node_that_left_the_selection_loses_its_share_node_first() -> None:
    seen = snapshot(serving(policy(), "gpu-1", "gpu-2"))
    assert policy_actions(seen) == [DeleteShareNode("gpu-2", "uid-share-gpu-2")]


def test_and_then_its_labels() -> None:
    seen = snapshot(serving(policy(), "gpu-1"), node("gpu-2", "default"), plugin_pod("gpu-2"))
    assert policy_actions(seen) == [LabelNode("gpu-2", "uid-gpu-2", NO_LABELS)]


@pytest.mark.parametrize("left", [POLICY_LABEL, PLUGIN_NODE_LABEL])
def test_either_label_alone_is_taken_off(left: str) -> None:
    """One a kubelet may have set on its own node; and it may have taken it off where the other one is."""
    seen = snapshot(serving(policy(), "gpu-1"), node("gpu-2", labels={left: "default"}))
    assert policy_actions(seen) == [LabelNode("gpu-2", "uid-gpu-2", {left: None})]


def test_a_node_of_another_policy_is_left_to_that_whatever_its_kubelet_says() -> None:
    theirs = node("gpu-2", "other", labels={POLICY_LABEL: "default"})
    assert policy_actions(snapshot(serving(policy(), "gpu-1"), theirs)) == []


def test_the_label_that_a_kubelet_may_set_keeps_no_node_from_its_policy() -> None:
    seen = snapshot(policy(), node("gpu-1", labels={POLICY_LABEL: "of nobody"}))
    assert class_names(policy_actions(seen)) == ["ApplyShareNode", "LabelNode", "ApplyDaemonSet"]


def of_the_last_release() -> DaemonSetObject:
    body = copy.deepcopy(plugins(policy()).body)
    body["spec"]["template"]["spec"]["nodeSelector"] = {POLICY_LABEL: "default"}
    return plugins(policy(), body=body)


def test_plugins_of_an_earlier_version_stay_until_all_nodes_have_the_label_they_are_selected_by() -> None:
    def actions(*nodes: NodeObject) -> list[str]:
        asking = policy(spec=spec(rule(*(node.name for node in nodes))))
        return class_names(policy_actions(snapshot(serving(asking, "gpu-1"), *nodes, of_the_last_release())))

    former = {POLICY_LABEL: "default", MODE_LABEL: "Memory", DIALECT_LABEL: "gpushare.io"}
    assert actions(node("gpu-1", labels=former)) == ["LabelNode"]
    assert actions(node("gpu-1", "default")) == ["ApplyDaemonSet"]


@pytest.mark.parametrize("taken_off", [POLICY_LABEL, MODE_LABEL])
def test_a_kubelet_that_takes_labels_off_keeps_no_plugin_as_it_was(taken_off: str) -> None:
    labels = {key: value for key, value in LABELS.items() if key != taken_off}
    seen = snapshot(serving(policy(), "gpu-1"), node("gpu-1", labels=labels), of_the_last_release())
    assert class_names(policy_actions(seen)) == ["LabelNode", "ApplyDaemonSet"]


def test_a_plugin_that_selects_by_the_label_is_changed_while_nodes_join() -> None:
    asking = policy(spec=spec(rule("gpu-1", "gpu-2")))
    seen = snapshot(serving(asking, "gpu-1"), node("gpu-2"), changed_otherwise())
    assert class_names(policy_actions(seen)) == ["ApplyShareNode", "LabelNode", "ApplyDaemonSet"]


def changed_otherwise() -> DaemonSetObject:
    body = copy.deepcopy(plugins(policy()).body)
    body["spec"]["template"]["spec"]["priorityClassName"] = "system-cluster-critical"
    return plugins(policy(), body=body)


def leaving(**extra: Any) -> NodeObject:
    """A node of which only the last label says that it was ours."""
    return node("gpu-2", labels={MODE_LABEL: "Memory"}, **extra)


CLEAR = ClearCapacity("gpu-2", "uid-gpu-2", (MEMORY,))


def test_and_at_last_the_capacity_that_the_kubelet_keeps_and_the_last_label() -> None:
    left = leaving(offered=(MEMORY,))
    assert cluster_actions(snapshot(serving(policy(), "gpu-1"), left, plugin_pod("gpu-2"))) == []
    seen = snapshot(serving(policy(), "gpu-1"), left)
    assert cluster_actions(seen) == [CLEAR, LabelNode("gpu-2", "uid-gpu-2", {MODE_LABEL: None})]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(node("gpu-2", offered=(MEMORY,)), [], id="the kubelet still remembers"),
        pytest.param(
            node("gpu-2", offered=(MEMORY,), zeros=frozenset({MEMORY})),
            [replace(CLEAR, left=CapacityLeft.BY_KUBELET)],
            id="the kubelet has forgotten: zeros",
        ),
        pytest.param(node("gpu-2"), [], id="nothing"),
    ],
)
def test_what_the_kubelet_writes_back_is_cleared_when_it_has_forgotten(
    shown: Any, expected: list[Any]
) -> None:
    assert cluster_actions(snapshot(serving(policy(), "gpu-1"), shown)) == expected


def test_of_many_nodes_those_writes_come_together_that_are_alike() -> None:
    many = [
        node(f"n{at}", labels={MODE_LABEL: "Memory"}, offered=(MEMORY,), zeros=frozenset({MEMORY}))
        for at in range(3)
    ]
    assert class_names(cluster_actions(snapshot(many))) == ["ClearCapacity"] * 3 + ["LabelNode"] * 3


def test_a_node_that_vanished_is_forgotten() -> None:
    seen = snapshot(serving(policy("default", rule("gpu-1", "gpu-2")), "gpu-1"), share("gpu-2", policy()))
    assert policy_actions(seen) == [DeleteShareNode("gpu-2", "uid-share-gpu-2")]


def test_a_node_that_is_being_deleted_is_let_go() -> None:
    seen = snapshot(serving(policy(), "gpu-1"), node("gpu-1", "default", deleting=True))
    assert class_names(policy_actions(seen)) == ["DeleteShareNode"]


@pytest.mark.parametrize(
    "unserved",
    [
        pytest.param(spec_of_volcano(rule("gpu-1", **SLICED)), id="mode"),
        pytest.param(spec(rule("gpu-1", mode="Off")), id="off"),
        pytest.param(None, id="invalid"),
    ],
)
def test_what_is_not_served_enables_no_node(unserved: Any) -> None:
    assert policy_actions(snapshot(policy(spec=unserved), node("gpu-1"))) == []


UNREADABLE_OR_UNSERVED = [
    pytest.param(None, id="unreadable, as after a downgrade"),
]


@pytest.mark.parametrize("edited", UNREADABLE_OR_UNSERVED)
def test_an_edit_that_cannot_be_applied_leaves_in_force_what_was(edited: Any) -> None:
    seen = snapshot(serving(policy(), "gpu-1"), policy(spec=edited))
    assert policy_actions(seen) == []
    assert cluster_actions(seen) == []


@pytest.mark.parametrize("edited", UNREADABLE_OR_UNSERVED)
def test_what_stays_in_force_is_still_put_right(edited: Any) -> None:
    seen = snapshot(
        serving(policy(), "gpu-1"), policy(spec=edited), node("gpu-1"), plugins(policy(), body={})
    )
    assert policy_actions(seen) == [
        LabelNode("gpu-1", "uid-gpu-1", LABELS),
        ApplyDaemonSet("gpushare-plugin-default", plugins(policy()).body),
    ]


def with_runtime_class(name: str) -> PolicyObject:
    return policy(spec=spec(rule("gpu-1"), plugin={"runtimeClassName": name}))


def test_another_runtime_class_of_the_plugin_is_another_daemon_set() -> None:
    running = plugins(policy())
    (apply,) = policy_actions(snapshot(serving(policy(), "gpu-1"), with_runtime_class("nvidia"), running))
    assert isinstance(apply, ApplyDaemonSet)
    assert apply.body["spec"]["template"]["spec"]["runtimeClassName"] == "nvidia"


@pytest.mark.parametrize("edited", UNREADABLE_OR_UNSERVED)
def test_an_edit_that_cannot_be_applied_does_not_take_the_runtime_class(edited: Any) -> None:
    body = plugin_daemon_set(policy(), INSTALLATION, PluginPlatform(runtime_class="nvidia"))
    seen = snapshot(serving(policy(), "gpu-1"), policy(spec=edited), plugins(policy(), body=body))
    assert policy_actions(seen) == []


def test_only_the_nodes_of_the_unserved_rule_stay_as_they_were() -> None:
    edited = policy(spec=spec_of_volcano(rule("gpu-1", **SLICED), rule("gpu-2", reservedMemory="1Gi")))
    seen = snapshot(
        serving(policy("default", rule("gpu-1", "gpu-2", "gpu-3")), "gpu-1", "gpu-2", "gpu-3"), edited
    )
    apply, delete = policy_actions(seen)
    assert isinstance(apply, ApplyShareNode)
    assert apply.node == "gpu-2"
    assert delete == DeleteShareNode("gpu-3", "uid-share-gpu-3")


def test_what_a_former_policy_of_the_name_left_is_not_in_force() -> None:
    seen = snapshot(serving(policy(), "gpu-1"), policy(uid="uid-anew", spec=None))
    assert policy_actions(seen) == [DeleteShareNode("gpu-1", "uid-share-gpu-1")]


def test_the_rest_of_a_policy_is_served_all_the_same() -> None:
    unserved = policy(spec=spec_of_volcano(rule("gpu-1", **SLICED), rule("gpu-2")))
    actions = policy_actions(snapshot(unserved, node("gpu-1"), node("gpu-2")))
    assert [action.node for action in actions if isinstance(action, LabelNode)] == ["gpu-2"]


CLOSED = "volcano.sh/gpu-unhealthy-ids"


def volcano_node(
    annotation: str = "", *, dialect: str = "volcano.sh", closed: tuple[int, ...] = ()
) -> ClusterSnapshot:
    """A node in force in the dialect, whose annotation says this."""
    asking = policy(spec=spec(rule("gpu-1"), dialect=dialect))
    labels = {**marked("default"), MODE_LABEL: "Memory", DIALECT_LABEL: dialect}
    shown = node("gpu-1", labels=labels, closed_cards={CLOSED: annotation} if annotation else {})
    return snapshot(asking, shown, share("gpu-1", asking, dialect=dialect, closed_cards=closed))


def annotations(seen: ClusterSnapshot) -> list[Mapping[str, str | None]]:
    return [
        policy_action.annotations
        for policy_action in policy_actions(seen)
        if isinstance(policy_action, LabelNode)
    ]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(volcano_node(closed=(0, 2)), [{CLOSED: "0,2"}], id="cards were closed"),
        pytest.param(volcano_node("0,2", closed=(0, 2)), [], id="it is said already"),
        pytest.param(volcano_node("0,2", closed=(2,)), [{CLOSED: "2"}], id="one is open again"),
        pytest.param(
            volcano_node("0,2"), [{CLOSED: None}], id="all are open, or the replaced plugin said so"
        ),
        pytest.param(volcano_node(dialect="gpushare.io", closed=(0,)), [], id="no word for it"),
        pytest.param(volcano_node("0", dialect="gpushare.io"), [], id="somebody else's"),
    ],
)
def test_the_dialects_own_scheduler_is_told_which_cards_take_no_pods(
    seen: ClusterSnapshot, expected: list[Mapping[str, str | None]]
) -> None:
    assert annotations(seen) == expected


@pytest.mark.parametrize(
    ("unit_change", "told", "expected"),
    [
        pytest.param(None, {}, [{CLOSED: "0,1"}], id="no new pod is to come"),
        pytest.param("Keep", {}, [{CLOSED: "1"}], id="it goes on by the former unit"),
        pytest.param(None, share_condition("UnitTooFine"), [{CLOSED: "1"}], id="the other unit is refused"),
    ],
)
def test_it_is_told_of_all_cards_where_another_unit_is_to_come(
    unit_change: str | None, told: Mapping[str, Any], expected: list[Mapping[str, str | None]]
) -> None:
    given = {"unitChange": unit_change} if unit_change else {}
    asking = policy(spec=spec(rule("gpu-1"), dialect="volcano.sh", memoryUnit="256Mi", **given))
    labels = {**marked("default"), MODE_LABEL: "Memory", DIALECT_LABEL: "volcano.sh"}
    there = {"closed_cards": (1,), "card_indices": (0, 1), "conditions": told, "dialect": "volcano.sh"}
    seen = snapshot(asking, node("gpu-1", labels=labels), share("gpu-1", asking, unit="1Gi", **there))
    assert annotations(seen) == expected


def test_what_it_was_told_goes_with_the_labels() -> None:
    labels = {**marked("default"), MODE_LABEL: "Memory", DIALECT_LABEL: "volcano.sh"}
    left = node("gpu-2", labels=labels, closed_cards={CLOSED: "1"})
    seen = snapshot(serving(policy(), "gpu-1"), left, plugin_pod("gpu-2"))
    (action,) = policy_actions(seen)
    assert isinstance(action, LabelNode)
    assert action.annotations == {CLOSED: None}


UNMOUNTED, MOUNTED = False, True
FILES = {"gpu-1": isolation_files(["default/a"])}


@pytest.mark.parametrize(
    ("was_mounted", "files", "is_mounted"),
    [
        pytest.param(MOUNTED, FILES, True, id="containers need them"),
        pytest.param(MOUNTED, {"gpu-1": isolation_files([])}, True, id="they are being removed"),
        pytest.param(MOUNTED, None, True, id="nobody knows yet"),
        pytest.param(MOUNTED, {}, False, id="none is there"),
        pytest.param(UNMOUNTED, None, False, id="nobody knows and none was ever asked for"),
        pytest.param(UNMOUNTED, FILES, True, id="another policy had the node"),
        pytest.param(UNMOUNTED, {"gpu-9": isolation_files(["default/a"])}, False, id="another policy's node"),
    ],
)
def test_the_plugin_keeps_the_folder_of_isolation_for_as_long_as_anything_may_be_there(
    *, was_mounted: bool, files: Mapping[str, IsolationFiles] | None, is_mounted: bool
) -> None:
    """Although the policy asks for none any more."""
    owner = policy("default", rule("gpu-1"))
    assert owner.spec is not None
    before = PluginPlatform.of_spec(owner.spec, has_isolation_files=was_mounted)
    body = plugin_daemon_set(owner, INSTALLATION, before)
    daemon_set = DaemonSetObject(name="gpushare-plugin-default", policy="default", body=body)
    seen = replace(
        snapshot(owner, node("gpu-1", "default"), node("gpu-9", "other"), share("gpu-1", owner), daemon_set),
        isolation_files=files,
    )
    applied = [action for action in policy_actions(seen) if isinstance(action, ApplyDaemonSet)]
    after = PluginPlatform.of_daemon_set(applied[0].body if applied else body)
    assert after.keeps_isolation_files is is_mounted
    assert bool(applied) is (was_mounted is not is_mounted), "no plugin is replaced without need"
