"""Each thing that can be wrong: how grave it is, what it is about, and what to type next."""

from datetime import timedelta

import pytest
from tests.fakes.status_facts import (
    NOW,
    WELL,
    condition,
    deployment_object,
    deployment_of,
    facts,
    lease_object,
    lease_of,
    node_object,
    nodes_of,
    pods_of,
    policies_of,
    policy_object,
    program_object,
    unplaced_object,
    unplaced_of,
)

from gpushare_cli.decide.objects.policy import ObservedPolicy
from gpushare_cli.decide.problems.facts import OPERATOR_DEPLOYMENT, OPERATOR_LEASE, StatusFacts, UnreadPart
from gpushare_cli.decide.problems.nodes import NOT_IN_SYNC, NOT_REGISTERED
from gpushare_cli.decide.problems.policies import ROWS
from gpushare_cli.decide.problems.problem import Severity, StatusProblem
from gpushare_cli.decide.problems.table import all_problems
from gpushare_cli.decide.version import program_versions
from gpushare_core.text.json_object import Json


def only(found: StatusFacts) -> StatusProblem:
    problems = all_problems(found)
    assert len(problems) == 1, problems
    return problems[0]


def told(found: StatusFacts) -> tuple[str, str, str, tuple[str, ...]]:
    problem = only(found)
    return problem.severity, problem.reason, problem.kind, problem.names


def test_where_all_is_well_there_is_no_problem() -> None:
    assert all_problems(WELL) == []


# The installation


def test_nothing_is_installed() -> None:
    problem = only(facts(policies=None, nodes=None, deployment=None, lease=None, pods=()))
    assert (problem.severity, problem.reason) == ("error", "NotInstalled")
    assert problem.command == "kubectl apply -k manifests/"


def test_a_kind_is_missing() -> None:
    assert told(facts(nodes=None))[:2] == ("error", "KindMissing")


def test_the_operator_is_missing() -> None:
    assert told(facts(deployment=None))[:2] == ("error", "OperatorMissing")


def test_the_operator_is_scaled_down() -> None:
    problem = only(facts(deployment=deployment_of(deployment_object(replicas=0, ready=0)), lease=None))
    assert problem.reason == "OperatorScaledDown"
    assert problem.command == ("kubectl -n gpushare-system scale deployment/gpushare-operator --replicas=2")


def test_an_operator_that_is_not_ready_says_why() -> None:
    broken = program_object("operator", ready=False, waiting="ImagePullBackOff", name="operator-1")
    problem = only(
        facts(
            deployment=deployment_of(deployment_object(ready=0)),
            lease=None,
            pods=pods_of(broken, program_object("extender")),
        )
    )
    assert problem.reason == "OperatorNotReady"
    assert problem.detail == "pod operator-1: ImagePullBackOff"


def test_no_operator_holds_the_lease() -> None:
    old = lease_of(lease_object(renewed="2026-05-01T11:50:00Z"))
    assert only(facts(lease=old)).sentence.startswith(
        "no operator is at work: its Lease was renewed last 10m ago"
    )
    assert only(facts(lease=lease_of(lease_object(holder="")))).reason == "NoOperatorAtWork"
    assert only(facts(lease=None)).reason == "NoOperatorAtWork"


def test_a_clock_that_is_a_little_wrong_is_no_problem() -> None:
    assert all_problems(facts(now=NOW + timedelta(seconds=50))) == []
    assert all_problems(facts(now=NOW - timedelta(hours=1))) == []


def test_what_could_not_be_read_is_no_problem_of_the_cluster() -> None:
    unread = tuple(
        UnreadPart(part=part, reason="forbidden") for part in (OPERATOR_DEPLOYMENT, OPERATOR_LEASE)
    )
    assert all_problems(facts(deployment=None, lease=None, unread=unread)) == []


def test_an_extender_that_is_not_ready() -> None:
    pods = pods_of(program_object("operator"), program_object("extender", ready=False))
    assert told(facts(pods=pods)) == (
        "error",
        "ExtenderNotReady",
        "pod",
        ("gpushare-system/gpushare-extender",),
    )


def test_an_extender_that_is_being_replaced_is_no_problem() -> None:
    ending = program_object("extender", ready=False)
    ending["metadata"]["deletionTimestamp"] = "2026-05-01T11:59:59Z"
    pods = pods_of(program_object("operator"), ending, program_object("extender", name="next"))
    assert all_problems(facts(pods=pods)) == []


def test_an_extender_that_is_not_ready_is_said_once() -> None:
    said = condition("SchedulerConfigured", "False", "ExtenderNotReady", "control-plane-1: no pod")
    policies = policies_of(policy_object(said, condition("Ready", "False", "ExtenderNotReady")))
    pods = pods_of(program_object("operator"), program_object("extender", ready=False))
    assert told(facts(policies=policies, pods=pods))[2] == "policy"


def test_without_an_operator_silent_plugins_are_found_by_their_leases() -> None:
    heartbeats = {"gpu-1": lease_of(lease_object("plugin.gpu-1", renewed="2026-05-01T11:30:00Z"))}
    reasons = [found.reason for found in all_problems(facts(lease=None, heartbeats=heartbeats))]
    assert sorted(reasons) == ["NoOperatorAtWork", "PluginSilent"]


# Policies


def test_no_policy_comes_with_one_to_apply() -> None:
    problem = only(facts(policies=[], nodes=[]))
    assert (problem.severity, problem.reason) == ("warning", "NoPolicy")
    assert problem.command.startswith("kubectl apply -f - <<EOF\napiVersion: gpushare.io/v1alpha1\n")
    assert problem.command.endswith("\nEOF")


POLICY_ROWS = [
    (type_, status, reason or "Whatever") for (type_, status), rows in ROWS.items() for reason in rows
]


@pytest.mark.parametrize(("type_", "status", "reason"), POLICY_ROWS)
def test_each_condition_of_a_policy(type_: str, status: str, reason: str) -> None:
    said = condition(type_, status, reason, "it is so")
    problem = only(facts(policies=policies_of(policy_object(said, condition("Ready", "False", reason)))))
    assert (problem.kind, problem.names, problem.reason, problem.detail) == (
        "policy",
        ("default",),
        reason,
        "it is so",
    )
    assert problem.command.startswith("kubectl ")
    assert "{" not in problem.command


def test_a_policy_without_nodes_is_one_problem() -> None:
    policy = policy_object(
        condition("NodesReady", "False", "NoNodesSelected", "no node is shared"),
        condition("SchedulerConfigured", "False", "NoNodeShares", "no scheduler is connected"),
        condition("Ready", "False", "NoNodesSelected", "no node is shared"),
        condition("BooksAgree", "Unknown", "BooksNotSeen"),
    )
    assert told(facts(policies=policies_of(policy), nodes=[]))[:2] == ("error", "NoNodesSelected")


def test_a_policy_that_is_being_deleted_is_a_note() -> None:
    message = "everything is being undone: kube-scheduler is as it was; still there: Job x"
    policy = policy_object(condition("Ready", "False", "Deleting", message), deleting=True)
    found = facts(policies=policies_of(policy))
    assert told(found)[:2] == ("note", "Deleting")
    assert [problem.detail for problem in all_problems(found)] == ["still there: Job x"]


def test_a_policy_that_no_operator_has_seen() -> None:
    assert told(facts(policies=policies_of(policy_object(observedGeneration=0))))[1] == "NotSeen"


def test_a_policy_that_no_operator_has_reported_on() -> None:
    policy = policy_object()
    policy["status"] = {"observedGeneration": 1}
    assert told(facts(policies=policies_of(policy)))[1] == "NotReported"


def test_a_policy_of_a_newer_version_that_is_not_ready_for_a_reason_unknown_here() -> None:
    policy = policy_object(
        condition("Ready", "False", "MoonIsFull"), condition("Moon", "False", "MoonIsFull")
    )
    assert told(facts(policies=policies_of(policy)))[:2] == ("error", "MoonIsFull")


# Nodes and cards


@pytest.mark.parametrize("reason", [*NOT_REGISTERED, "MoonIsFull"])
@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_each_reason_why_a_node_offers_nothing(reason: str, status: str) -> None:
    others = [
        condition(type_, "Unknown", reason) for type_ in ("CardsHealthy", "LedgerInSync", "UnitTooFine")
    ]
    node = node_object(condition("Registered", status, reason, "it is so"), *others)
    problem = only(facts(nodes=nodes_of(node)))
    assert (problem.kind, problem.names, problem.reason, problem.detail) == (
        "node",
        ("gpu-1",),
        reason,
        "it is so",
    )
    assert "{" not in problem.command


@pytest.mark.parametrize("reason", [*NOT_IN_SYNC, "MoonIsFull"])
def test_each_difference_of_a_node(reason: str) -> None:
    node = node_object(condition("LedgerInSync", "False", reason, "it is so"))
    assert told(facts(nodes=nodes_of(node)))[1:] == (reason, "node", ("gpu-1",))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (condition("CardsHealthy", "False", "NvmlFailed"), "NvmlFailed"),
        (condition("CardsHealthy", "Unknown", "NvmlSilent"), "NvmlSilent"),
        (condition("CardsHealthy", "True", "CardsLeftOut", "card 3 is left out"), "CardsLeftOut"),
        (condition("CardsCordoned", "True", "UnknownCards", "'nix' is no card"), "UnknownCards"),
        (condition("LedgerInSync", "Unknown", "PodResourcesUnreachable"), "PodResourcesUnreachable"),
        (condition("LedgerInSync", "True", "InSync", "no checkpoint"), "CheckpointUnread"),
        (condition("UnitTooFine", "True", "TooManyUnits"), "TooManyUnits"),
        (condition("UnitChangeBlocked", "True", "PodsHoldUnits", "ml/a"), "PodsHoldUnits"),
        (condition("MemoryExceeded", "True", "RequestExceeded"), "RequestExceeded"),
        (condition("Registered", "True", "Registered", "pods may set X"), "CardsUnprotected"),
    ],
)
def test_each_other_condition_of_a_node(said: dict[str, str], reason: str) -> None:
    assert told(facts(nodes=nodes_of(node_object(said))))[1:] == (reason, "node", ("gpu-1",))


def test_a_node_whose_plugin_has_not_answered() -> None:
    assert told(facts(nodes=nodes_of(node_object(observedGeneration=0))))[1] == "NotAnswered"
    silent = node_object()
    silent["status"] = {}
    assert told(facts(nodes=nodes_of(silent)))[1] == "NotAnswered"


@pytest.mark.parametrize(
    ("card", "severity", "reason", "command"),
    [
        ({"health": "Unhealthy"}, "warning", "CardSick", "kubectl gpushare drain-card gpu-1 5 --dry-run"),
        ({"cordoned": True}, "note", "CardCordoned", "kubectl gpushare uncordon gpu-1 5"),
        ({"lock": "Slices"}, "warning", "CardLocked", "kubectl gpushare audit --node gpu-1"),
    ],
)
def test_each_state_of_a_card(card: dict[str, object], severity: str, reason: str, command: str) -> None:
    problem = only(facts(nodes=nodes_of(node_object(cards=[{"index": 5, "units": 16, **card}]))))
    assert (problem.severity, problem.reason, problem.names) == (severity, reason, ("gpu-1/5",))
    assert problem.command == command


def test_a_lock_with_holders_is_as_it_should_be() -> None:
    card = {"index": 0, "units": 2, "lock": "Slices", "allocatedUnits": 1}
    assert all_problems(facts(nodes=nodes_of(node_object(cards=[card])))) == []


def test_nodes_with_the_same_problem_are_one_line_with_examples() -> None:
    silent = condition("Registered", "Unknown", "PluginSilent", "since 11:00")
    nodes = nodes_of(*(node_object(silent, name=f"gpu-{number}") for number in range(2000)))
    problem = only(facts(nodes=nodes))
    assert len(problem.names) == 2000
    assert problem.command.endswith("spec.nodeName=gpu-0")


def test_a_policy_does_not_repeat_what_its_nodes_say() -> None:
    node = node_object(
        condition("Registered", "Unknown", "PluginSilent"),
        condition("UnitChangeBlocked", "True", "PodsHoldUnits"),
        cards=[{"index": 0, "units": 16, "health": "Unhealthy"}],
    )
    policy = policy_object(
        condition("NodesReady", "False", "NodesNotReady"),
        condition("UnitChangeBlocked", "True", "PodsHoldUnits"),
        condition("Degraded", "True", "CardsUnhealthy"),
        nodes={"enabled": 1, "ready": 0},
    )
    problems = all_problems(facts(policies=policies_of(policy), nodes=nodes_of(node)))
    assert {problem.kind for problem in problems} == {"node", "card"}


def test_a_policy_says_what_no_node_does() -> None:
    policy = policy_object(
        condition("NodesReady", "False", "NodesNotReady", "gpu-2: its GPUShareNode is being created"),
        nodes={"enabled": 3, "ready": 1},
    )
    silent = node_object(condition("Registered", "Unknown", "PluginSilent"))
    problems = all_problems(facts(policies=policies_of(policy), nodes=nodes_of(silent)))
    assert {problem.kind for problem in problems} == {"node", "policy"}


# Pods


def test_pods_that_wait_are_counted_and_the_oldest_is_named() -> None:
    waiting = unplaced_of(
        unplaced_object("young"),
        unplaced_object("old", created="2026-05-01T09:00:00Z", resource="aliyun.com/gpu-mem"),
        unplaced_object("placed", node="gpu-1"),
        unplaced_object("cpu", resource="cpu"),
    )
    problem = only(facts(waiting=waiting))
    assert (problem.severity, problem.names) == ("note", ("ml/old", "ml/young"))
    assert problem.detail == "ml/old waits for 3h"
    assert problem.command == "kubectl gpushare why old -n ml"


def test_pods_that_ask_for_what_no_node_serves_are_not_well() -> None:
    policy = policy_object()
    policy["spec"]["dialect"] = "gpushare.io"
    waiting = unplaced_of(
        unplaced_object("misspelt", resource="gpushare.io/gpu-mem"),
        unplaced_object("dialect", resource="aliyun.com/gpu-mem"),
        unplaced_object("another-plugins", resource="nvidia.com/gpu"),
        unplaced_object("full"),
    )
    problems = all_problems(facts(policies=policies_of(policy), waiting=waiting))
    assert [(problem.severity, problem.reason, problem.names) for problem in problems] == [
        ("warning", "ResourceNotServed", ("ml/dialect", "ml/misspelt")),
        ("note", "PodsWaiting", ("ml/another-plugins", "ml/full")),
    ]
    assert problems[0].sentence == (
        "they ask for what no node serves (aliyun.com/gpu-mem, gpushare.io/gpu-mem)"
    )
    assert problems[0].command == "kubectl gpushare why dialect -n ml"


def test_a_card_is_named_by_its_index() -> None:
    message = "container main of pod ml/a uses 9Gi of card GPU-gpu-1-0 and asked for 8Gi"
    node = node_object(condition("MemoryExceeded", "True", "Exceeded", message))
    assert only(facts(nodes=nodes_of(node))).detail == (
        "container main of pod ml/a uses 9Gi of card 0 and asked for 8Gi"
    )


def test_pods_that_another_scheduler_places() -> None:
    calls = lease_object(
        "gpushare-extender-calls", annotations={"gpushare.io/other-schedulers": "12 ml/a ml/b"}
    )
    problem = only(facts(calls=lease_of(calls)))
    assert (problem.reason, problem.names, problem.detail) == (
        "OtherSchedulers",
        ("ml/a", "ml/b"),
        "12 pods in all",
    )


def test_what_an_extender_said_of_them_that_is_gone_is_not_repeated() -> None:
    calls = lease_object("gpushare-extender-calls", annotations={"gpushare.io/other-schedulers": "12 ml/a"})
    with_plugin = policies_of(policy_object(backend="Dedicated", engine="Plugin"))
    assert all_problems(facts(calls=lease_of(calls), policies=with_plugin)) == []


def asking_for_plugin(*changed: Json, engine: str) -> list[ObservedPolicy]:
    found = policy_object(*changed, engine=engine)
    return policies_of({**found, "spec": {**found["spec"], "scheduler": {"engine": "Plugin"}}})


def test_another_engine_than_the_one_that_is_asked_for_is_a_note() -> None:
    why = condition("SchedulerConfigured", "True", "Configured", "all is well; Extender is used: because")
    problem = only(facts(policies=asking_for_plugin(why, engine="Extender")))
    assert (problem.severity, problem.reason) == ("note", "EngineFallback")
    assert problem.detail == "all is well; Extender is used: because"


@pytest.mark.parametrize(
    "policies",
    [
        pytest.param(asking_for_plugin(engine="Plugin"), id="it serves"),
        pytest.param(policies_of(policy_object(engine="Extender")), id="none is asked for"),
        pytest.param(asking_for_plugin(engine=""), id="nothing is known of it"),
    ],
)
def test_nothing_is_said_of_an_engine_otherwise(policies: list[ObservedPolicy]) -> None:
    assert all_problems(facts(policies=policies)) == []


@pytest.mark.parametrize(
    "changed",
    [
        condition("SchedulerConfigured", "False", "SchedulerNotReady"),
        condition("Conflicted", "True", "SchedulerSettingsOfOlderPolicy"),
    ],
    ids=["during a change", "overruled"],
)
def test_what_is_said_already_is_not_said_twice(changed: Json) -> None:
    problem = only(facts(policies=asking_for_plugin(changed, engine="Extender")))
    assert problem.reason == changed["reason"]


@pytest.mark.parametrize("text", ["", "0", "many ml/a"])
def test_no_pods_that_another_scheduler_places(text: str) -> None:
    calls = lease_object("gpushare-extender-calls", annotations={"gpushare.io/other-schedulers": text})
    assert all_problems(facts(calls=lease_of(calls))) == []


# Versions


def test_kubernetes_that_is_too_old() -> None:
    assert only(facts(kubernetes="v1.31.9")).reason == "KubernetesTooOld"


def test_kubernetes_that_no_test_ran_is_a_note() -> None:
    assert told(facts(kubernetes="v1.99.0+k3s1"))[:2] == ("note", "KubernetesNotTested")


@pytest.mark.parametrize(
    ("plugin", "severity", "reason"),
    [
        ("0.3.9", "note", "VersionsDiffer"),
        ("0.5.0", "note", "VersionsDiffer"),
        ("0.2.0", "error", "VersionSkew"),
        ("1.4.0", "error", "VersionSkew"),
        ("main", "note", "VersionUnknown"),
    ],
)
def test_plugins_of_another_version(plugin: str, severity: str, reason: str) -> None:
    problem = only(facts(nodes=nodes_of(node_object(pluginVersion=plugin))))
    assert (problem.severity, problem.reason) == (severity, reason)
    assert "the plugins of 1 node" in problem.sentence


def test_a_client_that_is_too_old_says_how_to_get_the_right_one() -> None:
    problem = only(facts(client_version="0.1.0"))
    assert (problem.severity, problem.reason) == ("error", "VersionSkew")
    assert problem.command == "pipx install --force kubectl-gpushare==0.4.0"


def second_scheduler(name: str, version: str, *containers: str) -> Json:
    body = program_object("scheduler", version=version, name=name)
    return {**body, "spec": {**body["spec"], "containers": [{"name": each} for each in containers]}}


def test_of_a_second_kube_scheduler_the_program_is_that_of_its_engine() -> None:
    pods = pods_of(
        program_object("operator"),
        second_scheduler("a", "0.4.0", "kube-scheduler"),
        second_scheduler("b", "0.3.0", "kube-scheduler", "extender"),
    )
    found = {row.program: row.version for row in program_versions(facts(pods=pods))}
    assert (found["scheduler"], found["extender"]) == ("0.4.0", "0.3.0")


def test_an_operator_without_a_version_is_compared_with_nothing() -> None:
    programs = pods_of(program_object("operator", version=""), program_object("extender"))
    assert not [
        problem.reason for problem in all_problems(facts(pods=programs)) if "Version" in problem.reason
    ]


# All together


def test_the_worst_comes_first() -> None:
    node = node_object(
        condition("LedgerInSync", "False", "OverCommitted"),
        cards=[{"index": 0, "units": 1, "cordoned": True}],
    )
    policy = policy_object(condition("Conflicted", "True", "NodesClaimedByOlderPolicy"))
    problems = all_problems(facts(policies=policies_of(policy), nodes=nodes_of(node)))
    assert [problem.severity for problem in problems] == [Severity.ERROR, Severity.WARNING, Severity.NOTE]
