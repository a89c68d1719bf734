"""What a policy says of itself."""

from datetime import timedelta
from typing import Any

import pytest
from tests.samples.operator import (
    NOW,
    control_plane,
    extender,
    extender_pod,
    failed,
    installed,
    job,
    job_pod,
    node,
    plugin_pod,
    plugins,
    policy,
    restored,
    rule,
    serving,
    share,
    share_condition,
    snapshot,
    spec,
    untouched,
)

from gpushare_core.api.conditions import Condition
from gpushare_core.api.policy import MemoryTotals, PolicyStatus, UnitTotals
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.desired.hostctl_job import HostctlCommand
from gpushare_operator.status.events import events_for
from gpushare_operator.status.policy import policy_status

INSTALL, RESTORE = HostctlCommand.INSTALL, HostctlCommand.RESTORE


def conditions_of(seen: Snapshot, name: str = "default", **extra: Any) -> dict[str, Condition]:
    status = policy_status(seen, seen.policies[name], now=NOW, **extra)
    return {each.type: each for each in status.conditions}


def line(condition: Condition) -> str:
    return f"{condition.status} {condition.reason}: {condition.message}"


def test_a_policy_in_force_is_ready() -> None:
    conditions = conditions_of(snapshot(serving(policy(), "gpu-1")))
    assert {kind: each.status for kind, each in conditions.items()} == {
        "Ready": "True",
        "NodesReady": "True",
        "SchedulerConfigured": "True",
        "Conflicted": "False",
        "UnitChangeBlocked": "False",
        "Degraded": "False",
    }
    assert line(conditions["Ready"]) == "True Serving: 1 node ready"


def test_totals_are_sums_over_the_nodes() -> None:
    both = policy("default", rule("gpu-1", "gpu-2"))
    memory = MemoryTotals(total="32Gi", allocated="5Gi", used="1536Mi")
    busy = share(
        "gpu-2", both, units=UnitTotals(total=32, allocated=5), memory=memory, cards=2, unhealthy_cards=1
    )
    status = policy_status(snapshot(serving(both, "gpu-1", "gpu-2"), busy), both, now=NOW)
    assert status.nodes.to_json() == {"enabled": 2, "ready": 2, "summary": "2/2"}
    assert status.cards.to_json() == {"total": 4, "healthy": 3}
    assert status.units.to_json() == {"total": 64, "allocated": 5}
    assert status.memory.to_json() == {"total": "64Gi", "allocated": "5Gi", "used": "1536Mi"}


def test_an_unreadable_quantity_counts_as_nothing() -> None:
    seen = snapshot(serving(policy(), "gpu-1"), share("gpu-1", policy(), memory=MemoryTotals(total="lots")))
    assert policy_status(seen, policy(), now=NOW).memory.total == "0"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param(node("gpu-1", "default", ready=False), "gpu-1: the node itself is not Ready", id="node"),
        pytest.param(
            share("gpu-1", policy(), observed_generation=0),
            "gpu-1: its plugin has not answered yet",
            id="old generation",
        ),
        pytest.param(
            share("gpu-1", policy(), conditions={}), "gpu-1: its plugin has not answered yet", id="silent"
        ),
        pytest.param(
            share("gpu-1", policy(), conditions=share_condition("Registered", "no socket", status="False")),
            "gpu-1: Because: no socket",
            id="not registered",
        ),
    ],
)
def test_a_node_that_is_not_ready_is_named_with_the_reason(changed: Any, expected: str) -> None:
    conditions = conditions_of(snapshot(serving(policy(), "gpu-1"), changed))
    assert line(conditions["NodesReady"]) == f"False NodesNotReady: {expected}"
    assert line(conditions["Ready"]) == f"False NodesNotReady: {expected}"


def test_of_many_nodes_only_some_are_named() -> None:
    names = [f"gpu-{number}" for number in range(1, 9)]
    seen = snapshot(policy("default", rule(*names)), [node(name) for name in names])
    message = conditions_of(seen)["NodesReady"].message
    assert message.startswith("gpu-1: its GPUShareNode is being made; gpu-2:")
    assert message.endswith("and 3 more")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param([rule("gpu-9")], "there is no node named gpu-9", id="name"),
        pytest.param(
            [rule("gpu-1"), rule(selector={"matchLabels": {"a": "b"}})], "selected by nodes[1]", id="rule"
        ),
    ],
)
def test_a_rule_that_selects_nothing_is_mentioned(rules: list[Any], expected: str) -> None:
    seen = snapshot(policy("default", *rules), node("gpu-1"))
    assert expected in conditions_of(seen)["NodesReady"].message


def test_without_any_node_it_says_what_to_do() -> None:
    condition = conditions_of(snapshot(policy(), control_plane()))["NodesReady"]
    assert condition.reason == "NoNodesSelected"
    assert "label nodes" in condition.message


def test_a_conflict_names_nodes_and_winner() -> None:
    older, younger = policy("older"), policy("younger", created=1)
    condition = conditions_of(snapshot(older, younger, node("gpu-1")), "younger")["Conflicted"]
    assert line(condition).startswith(
        "True NodesClaimedByOlderPolicy: gpu-1: shared by the older policy older;"
    )


def test_a_node_that_another_policy_lets_go_is_waited_for() -> None:
    seen = snapshot(policy(), policy("old", deleting=True), node("gpu-1"), plugin_pod("gpu-1", "old"))
    assert conditions_of(seen)["NodesReady"].message == "gpu-1: policy old is letting it go"


@pytest.mark.parametrize(
    ("asked", "reason", "works"),
    [
        pytest.param(
            spec(rule("a", mode="Mixed", slicesPerCard=2)), "UnsupportedMode", "Memory or Off", id="mode"
        ),
        pytest.param(spec({"names": ["gpu-1"]}), "UnsupportedSource", "Simulated", id="source"),
        pytest.param(spec(rule("a"), dialect="tuya.com"), "UnsupportedDialect", "gpushare.io", id="dialect"),
        pytest.param(
            spec(rule("a"), scheduler={"backend": "Volcano"}),
            "UnsupportedBackend",
            "KubeScheduler",
            id="backend",
        ),
    ],
)
def test_what_is_not_served_says_what_is(asked: Any, reason: str, works: str) -> None:
    conditions = conditions_of(snapshot(policy(spec=asked), node("gpu-1")))
    assert (conditions["Degraded"].status, conditions["Degraded"].reason) == ("True", reason)
    assert f"use {works}" in conditions["Degraded"].message
    assert (conditions["Ready"].status, conditions["Ready"].reason) == ("False", reason)


def test_an_invalid_spec_is_said_and_nothing_crashes() -> None:
    broken = policy(spec=None, error="nodes: Field required")
    conditions = conditions_of(snapshot(broken, node("gpu-1")))
    assert line(conditions["Degraded"]) == "True InvalidSpec: nodes: Field required; correct the spec"
    assert conditions["Ready"].reason == "InvalidSpec"


def test_unhealthy_cards_degrade_a_policy_that_stays_ready() -> None:
    seen = snapshot(serving(policy(), "gpu-1"), share("gpu-1", policy(), unhealthy_cards=2))
    conditions = conditions_of(seen)
    assert line(conditions["Degraded"]) == "True CardsUnhealthy: unhealthy: gpu-1: 2 cards"
    assert conditions["Ready"].status == "True"


@pytest.mark.parametrize(
    ("kind", "shown", "reason"),
    [
        pytest.param("UnitTooFine", "Degraded", "UnitTooFine", id="unit too fine"),
        pytest.param("UnitChangeBlocked", "UnitChangeBlocked", "PodsHoldUnits", id="change blocked"),
    ],
)
def test_what_a_node_says_is_passed_on(kind: str, shown: str, reason: str) -> None:
    conditions = {**share_condition("Registered"), **share_condition(kind, "use 3M")}
    seen = snapshot(serving(policy(), "gpu-1"), share("gpu-1", policy(), conditions=conditions))
    assert line(conditions_of(seen)[shown]) == f"True {reason}: gpu-1: use 3M"


def test_a_blocked_change_keeps_the_policy_from_being_ready() -> None:
    conditions = {**share_condition("Registered"), **share_condition("UnitChangeBlocked", "1 pod")}
    seen = snapshot(serving(policy(), "gpu-1"), share("gpu-1", policy(), conditions=conditions))
    assert conditions_of(seen)["Ready"].reason == "PodsHoldUnits"


def test_refusals_of_the_api_server_are_shown() -> None:
    condition = conditions_of(snapshot(serving(policy(), "gpu-1")), failures=["label node gpu-1: 403"])[
        "Degraded"
    ]
    assert condition.reason == "ApiErrors"
    assert "label node gpu-1: 403" in condition.message


class TestScheduler:
    """The condition SchedulerConfigured."""

    def line(self, *seen: Any) -> str:
        return line(conditions_of(snapshot(policy(), node("gpu-1"), *seen))["SchedulerConfigured"])

    def test_without_a_control_plane_it_says_what_to_do(self) -> None:
        assert self.line().startswith("False NoControlPlane: no node has the label")

    @pytest.mark.parametrize(
        ("seen", "expected"),
        [
            pytest.param([], "False ExtenderNotReady: cp: the extender is being started", id="no extender"),
            pytest.param(
                [extender_pod(ready=False, waiting="ErrImagePull: no such image")],
                "False ExtenderNotReady: cp: ErrImagePull: no such image",
                id="no image",
            ),
            pytest.param(
                [extender_pod()], "False Installing: cp: kube-scheduler is about to be connected", id="due"
            ),
            pytest.param(
                [extender_pod(), job(INSTALL)],
                "False Installing: cp: kube-scheduler is being connected",
                id="running",
            ),
            pytest.param(
                [extender_pod(), installed()],
                "True Configured: kube-scheduler asks the extender on cp",
                id="done",
            ),
            pytest.param(
                [installed()], "False ExtenderNotReady: cp: the extender is being started", id="extender lost"
            ),
        ],
    )
    def test_it_says_where_it_stands(self, seen: list[Any], expected: str) -> None:
        assert self.line(control_plane(), extender(), seen) == expected

    @pytest.mark.parametrize(
        ("exit_code", "reason"),
        [pytest.param(1, "InstallFailed", id="retried"), pytest.param(2, "NeedsAttention", id="a person")],
    )
    def test_hostctl_explains_its_failure(self, exit_code: int, reason: str) -> None:
        last = failed(INSTALL, ago=1)
        report = '{"result": "failed", "message": "no kube-scheduler.yaml: is this a kubeadm node?"}'
        message = self.line(control_plane(), extender_pod(), last, job_pod(last, exit_code, report))
        assert message == f"False {reason}: cp: no kube-scheduler.yaml: is this a kubeadm node?"

    @pytest.mark.parametrize(
        ("pods", "expected"),
        [
            pytest.param([], "BackoffLimitExceeded", id="no pod"),
            pytest.param([job_pod(failed(INSTALL, ago=1), 137)], "see its pod's log", id="no report"),
            pytest.param([job_pod(failed(INSTALL, ago=1), 1, "plain")], "cp: plain", id="plain text"),
            pytest.param([job_pod(failed(INSTALL, ago=1), 1, "[1]")], "see its pod's log", id="odd"),
        ],
    )
    def test_without_a_report_kubernetes_is_quoted(self, pods: list[Any], expected: str) -> None:
        assert expected in self.line(control_plane(), extender_pod(), failed(INSTALL, ago=1), pods)

    @pytest.mark.parametrize(
        ("seen", "expected"),
        [
            pytest.param([installed()], "Restoring: kube-scheduler is being restored on cp", id="restoring"),
            pytest.param([], "Restored: every kube-scheduler is as it was before", id="restored"),
            pytest.param(
                [extender(), restored()],
                "Restoring: every kube-scheduler is as it was before; the extender is being removed",
                id="extender still there",
            ),
            pytest.param([failed(RESTORE, ago=1, sequence=2)], "RestoreFailed", id="failed"),
        ],
    )
    def test_a_deletion_says_how_far_it_is(self, seen: list[Any], expected: str) -> None:
        conditions = conditions_of(snapshot(policy(deleting=True), untouched(), seen))
        assert f"False {expected}" in line(conditions["SchedulerConfigured"])
        assert conditions["Ready"].reason == "Deleting"

    @pytest.mark.parametrize(
        ("seen", "still"),
        [
            pytest.param([], "nothing", id="done"),
            pytest.param([share("gpu-1", policy())], "GPUShareNodes gpu-1", id="GPUShareNode"),
            pytest.param([plugins(policy())], "DaemonSet gpushare-plugin-default", id="DaemonSet"),
            pytest.param([node("gpu-1"), plugin_pod("gpu-1")], "the plugin on gpu-1", id="plugin"),
            pytest.param([node("gpu-1", "default")], "labels on gpu-1", id="labels"),
            pytest.param(
                [node("gpu-1", offered=("gpushare.io/memory",))],
                "our resources in the status of gpu-1",
                id="capacity",
            ),
            pytest.param([installed()], "the scheduler's connection", id="scheduler"),
        ],
    )
    def test_a_deletion_says_what_is_still_there(self, seen: list[Any], still: str) -> None:
        message = conditions_of(snapshot(policy(deleting=True), untouched(), seen))["Ready"].message
        assert message.endswith(f"; still there: {still}")

    def test_a_deletion_is_no_reason_to_warn_of_missing_nodes(self) -> None:
        before = policy_status(snapshot(serving(policy(), "gpu-1")), policy(), now=NOW)
        deleted = policy(deleting=True, status=before)
        after = policy_status(snapshot(deleted), deleted, now=NOW)
        assert [event["reason"] for event in events_for(deleted, after, NOW)] == []

    def test_a_deletion_leaves_the_scheduler_to_other_policies(self) -> None:
        other = policy("other", rule("gpu-2"))
        conditions = conditions_of(snapshot(serving(other, "gpu-2"), policy(deleting=True)))
        assert "other policies need it" in conditions["SchedulerConfigured"].message


def stored(status: PolicyStatus) -> PolicyObject:
    return policy(status=status)


def test_a_status_that_says_nothing_new_is_equal_to_the_stored_one() -> None:
    seen = snapshot(serving(policy(), "gpu-1"))
    first = policy_status(seen, policy(), now=NOW)
    assert policy_status(seen, stored(first), now=NOW + timedelta(hours=1)) == first


def test_only_a_change_of_status_moves_the_time_of_transition() -> None:
    seen = snapshot(serving(policy(), "gpu-1"))
    first = stored(policy_status(snapshot(policy(), node("gpu-1")), policy(), now=NOW))
    later = policy_status(seen, first, now=NOW + timedelta(hours=1))
    times = {each.type: each.last_transition_time for each in later.conditions}
    assert times["Ready"] == "2026-11-21T13:00:00Z"
    assert times["Degraded"] == "2026-11-21T12:00:00Z"
