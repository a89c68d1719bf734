"""What a policy says of itself."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from tests.samples.operator import (
    INSTALLATION,
    NOW,
    SLICED,
    control_plane,
    extender,
    extender_pod,
    failed,
    installed,
    job,
    job_pod,
    marked,
    node,
    plugin_pod,
    plugins,
    policy,
    restored,
    rule,
    scheduler,
    serving,
    share,
    share_condition,
    sharing,
    snapshot,
    spec,
    spec_of_volcano,
    untouched,
    volcano_policy,
)

from gpushare_core.api.conditions import Condition
from gpushare_core.api.names import CONTROL_PLANE_LABEL, DIALECT_LABEL, MODE_LABEL
from gpushare_core.api.policy_status import PolicyStatus
from gpushare_core.api.share_node import MemoryTotals, UnitTotals
from gpushare_operator.backends.extender_workload.hosts import why_no_extender
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.status.events import events_for
from gpushare_operator.status.policy import policy_status

TAKEN = "cannot listen on 127.0.0.1:22766: Address already in use"
DAY = timedelta(days=1)
INSTALL, RESTORE = HostctlCommand.INSTALL, HostctlCommand.RESTORE


def conditions_of(seen: ClusterSnapshot, name: str = "default", **extra: Any) -> dict[str, Condition]:
    status = policy_status(seen, seen.policies[name], INSTALLATION, now=NOW, **extra)
    return {condition.type: condition for condition in status.conditions}


def line(condition: Condition) -> str:
    return f"{condition.status} {condition.reason}: {condition.message}"


def test_a_policy_in_force_is_ready() -> None:
    conditions = conditions_of(snapshot(serving(policy(), "gpu-1")))
    assert {kind: condition.status for kind, condition in conditions.items()} == {
        "Ready": "True",
        "NodesReady": "True",
        "SchedulerConfigured": "True",
        "Conflicted": "False",
        "UnitChangeBlocked": "False",
        "Degraded": "False",
        "BooksAgree": "True",
    }
    assert line(conditions["Ready"]) == "True Serving: 1 node ready"


def test_totals_are_sums_over_the_nodes() -> None:
    both = policy("default", rule("gpu-1", "gpu-2"))
    memory = MemoryTotals(total="32Gi", allocated="5Gi", used="1536Mi")
    busy = share(
        "gpu-2", both, units=UnitTotals(total=32, allocated=5), memory=memory, cards=2, unhealthy_cards=1
    )
    status = policy_status(snapshot(serving(both, "gpu-1", "gpu-2"), busy), both, INSTALLATION, now=NOW)
    assert status.nodes.to_json() == {"enabled": 2, "ready": 2, "summary": "2/2"}
    assert status.cards.to_json() == {"total": 4, "healthy": 3, "summary": "4/4"}
    assert status.units.to_json() == {"total": 64, "allocated": 5, "unit": "1Gi", "summary": "5/64"}
    assert status.memory.to_json() == {"total": "64Gi", "allocated": "5Gi", "used": "1536Mi"}


@pytest.mark.parametrize(
    ("before", "now", "written"),
    [
        pytest.param("0", "1Gi", "0", id="little comes"),
        pytest.param("0", "2Gi", "2Gi", id="a fiftieth of all comes"),
        pytest.param("8Gi", "7Gi", "8Gi", id="little goes"),
        pytest.param("8Gi", "4Gi", "4Gi", id="much goes"),
        pytest.param("1Gi", "0", "0", id="nothing is left"),
    ],
)
def test_what_is_in_use_is_written_when_it_has_moved_far(before: str, now: str, written: str) -> None:
    stored = PolicyStatus(memory=MemoryTotals(total="100Gi", used=before))
    memory = MemoryTotals(total="100Gi", allocated="70Gi", used=now)
    known = replace(policy(), status=stored)
    seen = snapshot(serving(known, "gpu-1"), share("gpu-1", known, memory=memory))
    status = policy_status(seen, known, INSTALLATION, now=NOW)
    assert status.memory == msgspec.structs.replace(memory, used=written)


def test_units_of_different_kinds_are_told_apart() -> None:
    both = policy("default", rule("gpu-1", "gpu-2", "gpu-3"))
    slices = share("gpu-2", both, unit="1/2 card", units=UnitTotals(total=8, allocated=3))
    silent = share("gpu-3", both, unit="", units=UnitTotals())
    seen = snapshot(serving(both, "gpu-1", "gpu-2", "gpu-3"), slices, silent)
    units = policy_status(seen, both, INSTALLATION, now=NOW).units
    assert (units.unit, units.summary) == ("1/2 card, 1Gi", "3/8, 0/32")
    of_classes = {
        "memory": UnitTotals(total=16, allocated=4),
        "slice": UnitTotals(total=4, allocated=1),
        "card": UnitTotals(total=2),
    }
    mixed = share("gpu-3", both, unit="1Gi, 1/2 card, 1 card", resources=of_classes)
    units = policy_status(
        snapshot(seen.policies.values(), seen.nodes.values(), seen.share_nodes.values(), mixed),
        both,
        INSTALLATION,
        now=NOW,
    ).units
    assert (units.unit, units.summary) == ("1 card, 1/2 card, 1Gi", "0/2, 4/12, 4/48")


def test_a_label_of_others_that_hides_a_node_from_the_dialects_tools_is_told() -> None:
    aliyun = policy(spec=spec(rule("gpu-1"), dialect="aliyun.com"))
    hidden = node("gpu-1", "default", {"gpushare": "false"})
    seen = snapshot(serving(aliyun, "gpu-1"), hidden)
    assert line(conditions_of(seen)["NodesReady"]) == (
        "True AllNodesReady: 1 node ready; another value of the label gpushare=true was set on gpu-1 by"
        " others and stays"
    )
    shown = node("gpu-1", "default", {"gpushare": "true"})
    assert line(
        conditions_of(snapshot(seen.policies.values(), serving(aliyun, "gpu-1"), shown))["NodesReady"]
    ) == ("True AllNodesReady: 1 node ready")


def test_an_unreadable_quantity_counts_as_nothing() -> None:
    seen = snapshot(serving(policy(), "gpu-1"), share("gpu-1", policy(), memory=MemoryTotals(total="lots")))
    assert policy_status(seen, policy(), INSTALLATION, now=NOW).memory.total == "0"


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
    assert message.startswith("gpu-1: its GPUShareNode is being created; gpu-2:")
    assert message.endswith("and 3 more")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param(
            [rule("gpu-9")],
            "there is no node named gpu-9: the policy waits for nodes that it names",
            id="name",
        ),
        pytest.param(
            [rule("gpu-1"), rule(selector={"matchLabels": {"a": "b"}})], "selected by nodes[1]", id="rule"
        ),
    ],
)
def test_a_rule_that_selects_nothing_is_mentioned(rules: list[Any], expected: str) -> None:
    seen = snapshot(policy("default", *rules), node("gpu-1"))
    assert expected in conditions_of(seen)["NodesReady"].message


def test_a_node_that_is_named_and_not_there_is_waited_for() -> None:
    """What is asked for is not in force."""
    asked = policy("default", rule("gpu-1"), rule("gpu-9"))
    found = conditions_of(snapshot(serving(asked, "gpu-1")))
    assert found["NodesReady"].reason == "NodesMissing"
    assert (found["Ready"].status, found["Ready"].reason) == ("False", "NodesMissing")
    off = policy("default", rule("gpu-1"), rule("gpu-9", mode="Off"))
    assert conditions_of(snapshot(serving(off, "gpu-1")))["Ready"].status == "True"


def test_plugins_that_run_with_former_settings_are_waited_for() -> None:
    asked = policy("default", rule("gpu-1"))
    found = conditions_of(snapshot(serving(asked, "gpu-1"), replace(plugins(asked), outdated=1)))
    assert line(found["NodesReady"]) == (
        "False PluginsOutdated: on 1 node of 1 the plugin has not started with the present settings yet"
    )
    assert (found["Ready"].status, found["Ready"].reason) == ("False", "PluginsOutdated")


@pytest.mark.parametrize(
    ("waiting", "said"),
    [
        pytest.param("", "", id="being made"),
        pytest.param("RunContainerError: no handler", ": RunContainerError: no handler", id="in vain"),
    ],
)
def test_a_plugin_that_was_made_anew_has_to_start(waiting: str, said: str) -> None:
    """The DaemonSet's status counts its pod as updated as soon as that is made."""
    anew = plugin_pod("gpu-1", ready=False, started=None, waiting=waiting)
    ready = conditions_of(snapshot(serving(policy(), "gpu-1"), anew))["Ready"]
    assert line(ready) == (
        f"False NodesNotReady: gpu-1: pod {anew.name} of its plugin has not started yet{said}"
    )


def test_without_any_node_it_says_what_to_do() -> None:
    asked = policy("default", rule(selector={"matchLabels": {"a": "b"}}))
    condition = conditions_of(snapshot(asked, control_plane()))["NodesReady"]
    assert condition.reason == "NoNodesSelected"
    assert "label nodes" in condition.message


def test_a_conflict_names_nodes_and_winner() -> None:
    older, younger = policy("older"), policy("younger", created=1)
    condition = conditions_of(snapshot(older, younger, node("gpu-1")), "younger")["Conflicted"]
    assert line(condition).startswith(
        "True NodesClaimedByOlderPolicy: gpu-1: shared by the older policy older;"
    )


def test_a_policy_that_lost_some_of_its_nodes_is_not_ready() -> None:
    older, younger = policy("older"), policy("younger", rule("gpu-1", "gpu-2"), created=1)
    seen = snapshot(serving(younger, "gpu-2"), older, node("gpu-1"))
    ready = conditions_of(seen, "younger")["Ready"]
    assert (ready.status, ready.reason) == ("False", "NodesClaimedByOlderPolicy")


def test_a_younger_policy_says_that_the_older_one_decides_about_the_port() -> None:
    moved = policy("older", spec=spec(rule("gpu-2"), scheduler={"extenderPort": 12000}))
    conditions = conditions_of(sharing(moved, policy("younger", created=1), node("gpu-1")), "younger")
    assert line(conditions["Conflicted"]) == (
        "True SchedulerSettingsOfOlderPolicy: the older policy older decides about the scheduler:"
        " extenderPort 12000; write the same in this policy"
    )


def test_what_another_backend_needs_besides_is_said_in_words() -> None:
    """It said ``volcano {}``."""
    with_volcano = volcano_policy("younger", created=1)
    conditions = conditions_of(sharing(policy("older"), with_volcano, node("gpu-1")), "younger")
    message = conditions["Conflicted"].message
    assert "the older policy older decides about the scheduler: backend KubeScheduler" in message
    assert "{" not in message


def test_of_a_dead_control_plane_it_is_not_said_that_its_extender_is_about_to_come() -> None:
    starting = extender_pod("cp", ready=False)
    assert why_no_extender(snapshot(starting), control_plane()).endswith("is not ready yet")
    dead = why_no_extender(snapshot(starting), control_plane(ready=False))
    assert dead == "the node is not Ready"


def test_a_node_that_another_policy_lets_go_is_waited_for() -> None:
    seen = snapshot(policy(), policy("old", deleting=True), node("gpu-1"), plugin_pod("gpu-1", "old"))
    assert conditions_of(seen)["NodesReady"].message == "gpu-1: policy old is releasing it"


@pytest.mark.parametrize(
    ("asked", "reason", "works"),
    [
        pytest.param(
            spec_of_volcano(rule("gpu-1", **SLICED)),
            "UnsupportedMode",
            "mode Memory, or scheduler.backend Dedicated or External or KubeScheduler",
            id="mode",
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


@pytest.mark.parametrize(
    ("edited", "reason"),
    [
        pytest.param(policy(spec=None, error="nodes: Field required"), "InvalidSpec", id="unreadable"),
        pytest.param(
            policy(spec=spec_of_volcano(rule("gpu-1", **SLICED))),
            "UnsupportedMode",
            id="unserved",
        ),
    ],
)
def test_an_edit_that_cannot_be_applied_says_what_stays(edited: PolicyObject, reason: str) -> None:
    conditions = conditions_of(snapshot(serving(policy(), "gpu-1"), edited))
    assert (conditions["Degraded"].status, conditions["Degraded"].reason) == ("True", reason)
    assert conditions["Degraded"].message.endswith("; the earlier settings stay in force: gpu-1")
    assert (conditions["Ready"].status, conditions["Ready"].reason) == ("False", reason)
    assert conditions["NodesReady"].status == "True"
    status = policy_status(snapshot(serving(policy(), "gpu-1"), edited), edited, INSTALLATION, now=NOW)
    assert (status.nodes.summary, status.units.total) == ("1/1", 32)


def test_unhealthy_cards_degrade_a_policy_that_stays_ready() -> None:
    seen = snapshot(serving(policy(), "gpu-1"), share("gpu-1", policy(), unhealthy_cards=2))
    conditions = conditions_of(seen)
    assert line(conditions["Degraded"]) == "True CardsUnhealthy: unhealthy: gpu-1: 2 cards"
    assert conditions["Ready"].status == "True"


def isolation_says(**statuses: str) -> ClusterSnapshot:
    """``gpu-1`` has these conditions besides those of a node on which all is well."""
    conditions = dict[str, Any](share("gpu-1", policy()).conditions)
    for type_, status in statuses.items():
        conditions |= share_condition(type_, "what is missing", status=status)
    return snapshot(serving(policy(), "gpu-1"), share("gpu-1", policy(), conditions=conditions))


def test_a_node_that_cannot_isolate_is_not_ready() -> None:
    conditions = conditions_of(isolation_says(IsolationReady="False"))
    assert line(conditions["NodesReady"]) == "False NodesNotReady: gpu-1: Because: what is missing"
    assert conditions["Ready"].status == "False"


@pytest.mark.parametrize("status", ["True", "Unknown"])
def test_isolation_that_is_there_or_not_known_yet_keeps_no_node_from_being_ready(status: str) -> None:
    seen = isolation_says(IsolationReady=status, IsolationInForce=status)
    assert conditions_of(seen)["Ready"].status == "True"
    assert conditions_of(seen)["Degraded"].status == "False"


def test_containers_that_are_not_kept_to_their_units_degrade_a_policy_that_stays_ready() -> None:
    conditions = conditions_of(isolation_says(IsolationReady="True", IsolationInForce="False"))
    assert line(conditions["Degraded"]) == (
        "True IsolationNotInForce: containers may take more memory than they asked for on gpu-1: the"
        " condition IsolationInForce of the GPUShareNode names them, and says what to do"
    )
    assert conditions["Ready"].status == "True"


def test_evictions_that_are_refused_degrade_a_policy_that_stays_ready() -> None:
    refused = [f"evict pod team/{name}: why" for name in "abcde"]
    conditions = conditions_of(snapshot(serving(policy(), "gpu-1")), unevicted=refused)
    assert line(conditions["Degraded"]) == (
        "True EvictionsRefused: evictions are refused, trying again: evict pod team/a: why; evict pod team/b:"
        " why; evict pod team/c: why; and 2 more; PodDisruptionBudgets apply: let them allow it, or delete"
        " such a pod"
    )
    assert conditions["Ready"].status == "True"


NVIDIA = {"source": "NVML", "simulated": []}
TUYA = {"dialect": "tuya.com"}


@pytest.mark.parametrize(
    ("extra", "mode", "offered", "zeros", "said"),
    [
        pytest.param({}, "Memory", ("nvidia.com/gpu",), (), True, id="offered by NVIDIA's own plugin"),
        pytest.param({}, "Memory", ("nvidia.com/gpu",), ("nvidia.com/gpu",), False, id="was offered once"),
        pytest.param({}, "Memory", ("gpushare.io/memory",), (), False, id="ours only"),
        pytest.param(
            {"dialect": "tuya.com"}, "Exclusive", ("nvidia.com/gpu",), (), False, id="ours by that name"
        ),
        pytest.param(
            {"dialect": "tuya.com"}, "Memory", ("nvidia.com/gpu",), (), True, id="not ours in this mode"
        ),
    ],
)
def test_cards_that_another_plugin_offers_as_well_are_told_of(
    extra: dict[str, str], mode: str, offered: tuple[str, ...], zeros: tuple[str, ...], *, said: bool
) -> None:
    asked = policy(spec=spec(rule("gpu-1", mode=mode, devices=NVIDIA), **extra))
    labels = {**marked("default"), MODE_LABEL: mode, DIALECT_LABEL: extra.get("dialect", "gpushare.io")}
    shown = node("gpu-1", labels=labels, offered=offered, zeros=frozenset(zeros))
    degraded = conditions_of(snapshot(asked, shown, share("gpu-1", asked)))["Degraded"]
    assert (degraded.reason == "CardsOfferedTwice") == said
    assert ("nvidia.com/gpu on gpu-1: the cards there are given away twice" in degraded.message) == said


def test_simulated_cards_are_nobody_elses() -> None:
    shown = node("gpu-1", "default", offered=("nvidia.com/gpu",))
    seen = snapshot(serving(policy(), "gpu-1"), shown, share("gpu-1", policy()))
    assert conditions_of(seen)["Degraded"].status == "False"


@pytest.mark.parametrize(
    ("kind", "shown", "reason"),
    [
        pytest.param("UnitTooFine", "Degraded", "UnitTooFine", id="unit too fine"),
        pytest.param("UnitChangeBlocked", "UnitChangeBlocked", "PodsHoldUnits", id="change blocked"),
        pytest.param(
            "UnitChangeBlocked", "UnitChangeBlocked", "LayoutNotRecorded", id="change blocked without any pod"
        ),
    ],
)
def test_what_a_node_says_is_passed_on_and_keeps_the_policy_from_being_ready(
    kind: str, shown: str, reason: str
) -> None:
    conditions = {**share_condition("Registered"), **share_condition(kind, "use 3M", reason=reason)}
    seen = snapshot(serving(policy(), "gpu-1"), share("gpu-1", policy(), conditions=conditions))
    assert line(conditions_of(seen)[shown]) == f"True {reason}: gpu-1: use 3M"
    assert line(conditions_of(seen)["Ready"]) == f"False {reason}: gpu-1: use 3M"


@pytest.mark.parametrize("kind", ["UnitTooFine", "UnitChangeBlocked"])
def test_what_a_node_said_of_an_earlier_spec_is_not_repeated(kind: str) -> None:
    """As of a unit that was refused before another one was asked for."""
    conditions = {**share_condition("Registered"), **share_condition(kind, "use 3M")}
    late = share("gpu-1", policy(), conditions=conditions, generation=2)
    found = conditions_of(snapshot(serving(policy(), "gpu-1"), late))
    assert (found["Degraded"].status, found["UnitChangeBlocked"].status) == ("False", "False")
    assert found["Ready"].message == "gpu-1: its plugin has not answered yet"


def test_of_several_reasons_that_is_said_which_people_can_do_something_about() -> None:
    both = policy("default", rule("gpu-1", "gpu-2"))
    reasons = {"gpu-1": "LayoutNotRecorded", "gpu-2": "PodsHoldUnits"}
    shares = [
        share(
            name,
            both,
            conditions={
                **share_condition("Registered"),
                **share_condition("UnitChangeBlocked", reason, reason=reason),
            },
        )
        for name, reason in reasons.items()
    ]
    blocked = conditions_of(snapshot(serving(both, *reasons), shares))["UnitChangeBlocked"]
    assert line(blocked) == "True PodsHoldUnits: gpu-1: LayoutNotRecorded; gpu-2: PodsHoldUnits"


def test_a_sick_or_cordoned_card_shows_in_the_sum() -> None:
    seen = share("gpu-1", policy(), cards=8, unhealthy_cards=1, closed_cards=(2, 5))
    status = policy_status(snapshot(serving(policy(), "gpu-1"), seen), policy(), INSTALLATION, now=NOW)
    assert (status.cards.healthy, status.cards.summary) == (7, "6/8")


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        pytest.param(
            [
                rule(selector={"matchLabels": {"a": "b"}}),
                rule(selector={"matchLabels": {"a": "b", "c": "d"}}),
            ],
            "nodes[1] has no effect",
            id="narrower than an earlier one",
        ),
        pytest.param(
            [
                rule(selector={"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
                rule(selector={"matchLabels": {"a": "b"}}),
            ],
            "nodes[1] has no effect",
            id="whatever the value is",
        ),
        pytest.param(
            [rule(selector={"matchLabels": {"gpu": "yes"}}), rule("gpu-1")],
            "nodes[1] has no effect",
            id="by the nodes that there are",
        ),
        pytest.param(
            [
                rule(selector={"matchLabels": {"a": "b"}}),
                rule(selector={"matchLabels": {"a": "b", "c": "d"}}),
                rule(selector={"matchLabels": {"a": "b", "e": "f"}}),
            ],
            "nodes[1], nodes[2] have no effect",
            id="two of them",
        ),
        pytest.param(
            [rule(selector={"matchLabels": {"a": "b"}}), rule(selector={"matchLabels": {"c": "d"}})],
            "",
            id="both may get nodes",
        ),
        pytest.param(
            [rule("gpu-1"), rule(selector={"matchLabels": {"a": "b"}})],
            "",
            id="its nodes may come",
        ),
    ],
)
def test_a_rule_that_is_shadowed_by_earlier_ones_is_said(rules: list[Any], said: str) -> None:
    seen = snapshot(policy("default", *rules), node("gpu-1", labels={"gpu": "yes"}))
    degraded = conditions_of(seen)["Degraded"]
    assert (degraded.reason == "RulesShadowed") == bool(said)
    assert said in degraded.message


def test_what_is_added_to_our_workloads_on_the_way_is_said_with_what_to_do() -> None:
    refusal = (
        "apply DaemonSet gpushare-extender: 403 Forbidden: ValidatingAdmissionPolicy"
        " 'gpushare-operator-workloads' denied request: only what is needed; here are also: initContainers"
    )
    degraded = conditions_of(snapshot(serving(policy(), "gpu-1")), failures=["other", refusal])["Degraded"]
    assert degraded.reason == "WorkloadsRefused"
    assert (
        "here are also: initContainers; another admission webhook or policy adds fields" in degraded.message
    )
    assert "exclude gpushare's namespace from it" in degraded.message


def test_an_operator_without_its_deployment_says_so() -> None:
    refusal = (
        "apply DaemonSet gpushare-extender: 422 Invalid: ValidatingAdmissionPolicy 'gpushare-operator-images'"
        " with binding 'gpushare-operator-images' denied request: failed to configure binding: no params"
        " found for policy binding with `Deny` parameterNotFoundAction"
    )
    degraded = conditions_of(snapshot(serving(policy(), "gpu-1")), failures=[refusal])["Degraded"]
    assert degraded.reason == "WorkloadsRefused"
    assert "the operator's Deployment, which names the image of all programs, is missing" in degraded.message


def test_refusals_of_the_api_server_are_shown() -> None:
    condition = conditions_of(snapshot(serving(policy(), "gpu-1")), failures=["label node gpu-1: 403"])[
        "Degraded"
    ]
    assert condition.reason == "ApiErrors"
    assert "label node gpu-1: 403" in condition.message


class TestScheduler:
    """The condition SchedulerConfigured."""

    def line(self, *seen: Any) -> str:
        return line(conditions_of(sharing(policy(), node("gpu-1"), *seen))["SchedulerConfigured"])

    def test_without_a_node_that_shares_it_says_that_none_is_touched(self) -> None:
        seen = snapshot(policy(), node("cp", labels={CONTROL_PLANE_LABEL: ""}))
        assert line(conditions_of(seen)["SchedulerConfigured"]) == (
            "False NoNodeShares: no node shares its cards, so no scheduler is connected to the extender;"
            " the first such node connects it"
        )

    def test_after_the_last_node_it_says_what_is_taken_back(self) -> None:
        seen = snapshot(policy(), control_plane(), extender(), extender_pod(), installed())
        assert "is being removed" in line(conditions_of(seen)["SchedulerConfigured"])

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
                [extender_pod(ready=False, waiting="CrashLoopBackOff", last_words=TAKEN)],
                "False ExtenderNotReady: cp: the extender (extender-cp) does not start: cannot listen on"
                " 127.0.0.1:22766: Address already in use; choose a free port as scheduler.extenderPort",
                id="port taken",
            ),
            pytest.param(
                [extender_pod(extender_ports=(1,))],
                "False ExtenderNotReady: cp: the extender (extender-cp) does not listen on the new port yet",
                id="moves",
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

    def test_an_extender_that_does_not_start_explains_a_failed_edit(self) -> None:
        crashing = extender_pod(ready=False, waiting="CrashLoopBackOff", last_words=TAKEN)
        message = self.line(control_plane(), crashing, failed(INSTALL, ago=1))
        assert message.startswith("False ExtenderNotReady: cp: the extender (extender-cp) does not start")

    def test_an_edit_that_was_undone_says_how_to_ask_for_another_try(self) -> None:
        last = failed(INSTALL, ago=1)
        report = '{"result": "RolledBack", "message": "it did not serve", "inputs": "abc"}'
        message = self.line(control_plane(), extender_pod(), last, job_pod(last, 3, report))
        assert message.startswith(
            "False NeedsAttention: cp: it did not serve; the earlier manifest is in force"
        )
        assert message.endswith(
            "kubectl annotate gpusharepolicy default gpushare.io/retry=$(date +%s) --overwrite"
        )

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
                [node("gpu-1", labels={"gpushare.io/mode": "Memory"}, offered=("gpushare.io/memory",))],
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
        before = policy_status(snapshot(serving(policy(), "gpu-1")), policy(), INSTALLATION, now=NOW)
        deleted = policy(deleting=True, status=before)
        after = policy_status(snapshot(deleted), deleted, INSTALLATION, now=NOW)
        assert [event["reason"] for event in events_for(deleted, after, NOW)] == []

    @pytest.mark.parametrize(
        ("seen", "told"),
        [
            pytest.param(
                [extender_pod("cp-2", ready=False)], "cp-2: the node is not Ready", id="its extender"
            ),
            pytest.param(
                [job(INSTALL, "cp-2")],
                "cp-2: the node is not Ready, and its turn comes when it is back",
                id="a Job that waits",
            ),
            pytest.param(
                [failed(INSTALL, ago=1, sequence=1, on="cp-2")],
                "cp-2: the node is not Ready; Job ",
                id="a Job",
            ),
        ],
    )
    def test_a_dead_control_plane_is_called_dead(self, seen: list[Any], told: str) -> None:
        """It was "the extender is not ready yet" or "kube-scheduler is being connected", for ever."""
        dead = control_plane("cp-2", ready=False)
        said = conditions_of(snapshot(serving(policy(), "gpu-1"), dead, seen))["SchedulerConfigured"]
        assert said.status == "False"
        assert told in said.message

    def test_a_deletion_that_waits_for_a_dead_host_says_how_to_let_it_go(self) -> None:
        dead = control_plane("cp-2", ready=False)
        message = self.deletion(policy(deleting=True), dead, installed("cp-2"))
        assert message.endswith("kubectl annotate gpusharepolicy default gpushare.io/let-go=cp-2 --overwrite")
        failing = failed(RESTORE, ago=1, sequence=2, on="cp-2")
        assert "gpushare.io/let-go=cp-2" in self.deletion(policy(deleting=True), dead, failing)

    @pytest.mark.parametrize(
        "seen",
        [
            pytest.param([policy(deleting=True), installed("cp-2")], id="its Node is gone"),
            pytest.param(
                [
                    policy(deleting=True, let_go=frozenset({"cp-2"})),
                    control_plane("cp-2", ready=False),
                    installed("cp-2"),
                ],
                id="a person let it go",
            ),
        ],
    )
    def test_a_host_that_is_let_go_is_named_in_an_event(self, seen: list[Any]) -> None:
        message = self.deletion(*seen)
        assert message.startswith(
            "False HostsLetGo: not restored, because its Node is gone or somebody gave it up"
        )
        assert "cp-2; when such a host comes back, the operator restores it if" in message
        assert "kubectl label node NAME gpushare.io.node-restriction.kubernetes.io/scheduler=0" in message
        status = policy_status(snapshot(seen), seen[0], INSTALLATION, now=NOW)
        events = [event for event in events_for(seen[0], status, NOW) if event["reason"] == "HostsLetGo"]
        assert [(event["type"], "cp-2" in event["note"]) for event in events] == [("Warning", True)]

    def deletion(self, *seen: Any) -> str:
        return line(conditions_of(snapshot(*seen))["SchedulerConfigured"])

    def test_an_edit_that_is_lost_is_said_and_warned_of_until_it_is_back(self) -> None:
        lost = [*serving(policy(), "gpu-1"), installed(finished=NOW - DAY), scheduler()]
        again = job(INSTALL, sequence=2, has_drifted=True)
        for seen in (lost, [*lost, again]):
            status = policy_status(snapshot(seen), policy(), INSTALLATION, now=NOW)
            (event,) = (event for event in events_for(policy(), status, NOW) if event["type"] == "Warning")
            assert event["reason"] == "ConnectionLost"
            assert "cp: its kube-scheduler runs without gpushare's configuration" in event["note"]

    def test_keys_that_are_renewed_are_no_lack(self) -> None:
        old = [*serving(policy(), "gpu-1"), installed(finished=NOW - 101 * DAY)]
        assert line(conditions_of(snapshot(old))["SchedulerConfigured"]).startswith("True Configured")

    def test_an_edited_host_without_labels_is_named(self) -> None:
        message = self.line(control_plane(), extender_pod(), installed(), node("cp-2"), installed("cp-2"))
        assert message.startswith("False HostsUnlabelled: edited, but no longer a control-plane node")
        assert "cp-2; it is being restored, and connected again once it is labelled" in message

    def test_a_deletion_leaves_the_scheduler_to_other_policies(self) -> None:
        other = policy("other", rule("gpu-2"))
        conditions = conditions_of(snapshot(serving(other, "gpu-2"), policy(deleting=True)))
        assert "other policies need it" in conditions["SchedulerConfigured"].message


def stored(status: PolicyStatus) -> PolicyObject:
    return policy(status=status)


def test_a_status_that_says_nothing_new_is_equal_to_the_stored_one() -> None:
    seen = snapshot(serving(policy(), "gpu-1"))
    first = policy_status(seen, policy(), INSTALLATION, now=NOW)
    assert policy_status(seen, stored(first), INSTALLATION, now=NOW + timedelta(hours=1)) == first


def test_only_a_change_of_status_moves_the_time_of_transition() -> None:
    seen = snapshot(serving(policy(), "gpu-1"))
    first = stored(policy_status(snapshot(policy(), node("gpu-1")), policy(), INSTALLATION, now=NOW))
    later = policy_status(seen, first, INSTALLATION, now=NOW + timedelta(hours=1))
    times = {condition.type: condition.last_transition_time for condition in later.conditions}
    assert times["Ready"] == "2026-11-21T13:00:00Z"
    assert times["Degraded"] == "2026-11-21T12:00:00Z"
