"""Policies that share nothing, schedulers that do not ask, programs that are away."""

import pytest
from tests.samples.surroundings import PROGRAMS, asked, found, node, policy, program, said
from tests.samples.why import card_json, memory_pod, share_node_json

from gpushare_cli.decide.why.causes.policy import (
    missing_policy,
    nodes_off,
    policies_not_ready,
    scheduler_not_connected,
    unit_changes,
)
from gpushare_cli.decide.why.causes.scheduler import extender_away, operator_away, schedulers
from gpushare_core.text.json_object import Json

HOSTNAME = "kubernetes.io/hostname"


def test_a_cluster_without_gpushare_is_told_how_to_install_it() -> None:
    finding = found(missing_policy, asked(policies=None, is_installed=False))
    assert finding.sentence.startswith("Gpushare is not installed in this cluster")


def test_without_a_policy_no_node_shares_its_cards() -> None:
    finding = found(missing_policy, asked(policies=[]))
    assert finding.sentence == "There is no GPUSharePolicy, so no node shares its cards."
    assert finding.is_decisive


def test_policies_that_cannot_be_read_are_not_taken_for_none() -> None:
    assert said(missing_policy, asked(policies=None)) == []


def test_a_policy_that_is_not_ready_is_quoted() -> None:
    obstacle = {"Ready": ("False", "NodesMissing", "gpu-9: there is no such node")}
    finding = found(policies_not_ready, asked(policies=[policy(conditions=obstacle)]))
    assert finding.sentence == "Policy default is not Ready (NodesMissing): gpu-9: there is no such node."
    assert finding.advice == ["kubectl describe gpusharepolicy default"]
    assert not finding.is_decisive, "a node shares its cards"


def test_it_keeps_pods_from_running_where_nothing_is_shared() -> None:
    obstacle = {"Ready": ("False", "NodesMissing", "gpu-9: there is no such node")}
    situation = asked(policies=[policy(conditions=obstacle)], share_nodes=[])
    assert found(policies_not_ready, situation).is_decisive


def test_a_policy_that_no_operator_looks_at_is_said_to_be_so() -> None:
    situation = asked(policies=[policy(seen=False)], programs=[program("operator", ready=0)], share_nodes=[])
    finding = found(policies_not_ready, situation)
    assert finding.sentence == "The operator has not looked at policy default as it is now: no operator runs."
    assert finding.is_decisive


def test_a_policy_that_is_being_deleted_takes_no_pods() -> None:
    finding = found(policies_not_ready, asked(policies=[policy(deletionTimestamp="2026-11-21T10:00:00Z")]))
    assert finding.sentence.startswith("Policy default is being deleted")


def test_a_policy_that_is_off_shares_no_node() -> None:
    off = policy(rules=[{"names": ["gpu-1"], "mode": "Off"}])
    finding = found(nodes_off, asked(policies=[off], share_nodes=[]))
    assert finding.sentence == "Policy default shares no node: all entries of its spec.nodes have mode Off."
    assert finding.is_decisive


def on(name: str) -> Json:
    return memory_pod(4, nodeSelector={HOSTNAME: name})


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"names": ["gpu-2"], "mode": "Off"}, "it is Off in policy default"),
        ({"selector": {"matchLabels": {HOSTNAME: "gpu-2"}}, "mode": "Off"}, "it is Off in policy default"),
        ({"names": ["gpu-3"], "mode": "Off"}, "no policy selects it"),
    ],
)
def test_a_node_that_the_pod_names_and_that_shares_no_cards(rule: Json, why: str) -> None:
    rules = [{"names": ["gpu-1"], "mode": "Memory"}, rule]
    situation = asked(on("gpu-2"), nodes=[node(), node("gpu-2")], policies=[policy(rules=rules)])
    finding = found(nodes_off, situation)
    assert finding.sentence == f"Node gpu-2 shares no cards: {why}."
    assert finding.advice == ["Select another node, of those that share their cards: gpu-1."]


def test_a_node_that_is_not_there_is_guessed() -> None:
    finding = found(nodes_off, asked(on("gpu1")))
    assert finding.sentence == "The pod asks for node gpu1, and there is no node of that name."
    assert finding.advice[0] == "Do you mean gpu-1?"


def test_nothing_is_said_of_a_named_node_that_shares_its_cards() -> None:
    assert said(nodes_off, asked(on("gpu-1"))) == []


def test_a_unit_change_names_the_pods_in_its_way() -> None:
    blocked = {"type": "UnitChangeBlocked", "status": "True", "message": "ml/train holds 4 units of 1Gi"}
    waiting = share_node_json("gpu-1", card_json(0))
    waiting["status"]["conditions"].append(blocked)
    finding = found(unit_changes, asked(share_nodes=[waiting]))
    assert finding.sentence == "gpu-1 waits for another unit or mode. gpu-1: ml/train holds 4 units of 1Gi."


def test_a_backend_that_is_not_connected_is_quoted() -> None:
    waiting = {"SchedulerConfigured": ("False", "WaitingForCalls", "no kube-scheduler has asked yet")}
    finding = found(scheduler_not_connected, asked(policies=[policy(conditions=waiting)]))
    assert finding.sentence == (
        "The scheduler of policy default is not connected (WaitingForCalls): no kube-scheduler has asked yet."
    )


def by(scheduler: str) -> Json:
    return memory_pod(4, schedulerName=scheduler)


@pytest.mark.parametrize("name", ["", "default-scheduler"])
def test_nothing_is_said_of_the_scheduler_that_asks(name: str) -> None:
    assert said(schedulers, asked(by(name))) == []


def test_a_scheduler_that_nobody_knows_is_named() -> None:
    finding = found(schedulers, asked(by("my-scheduler")))
    assert (
        "has schedulerName: my-scheduler, but no scheduler of that name places pods by cards"
        in finding.sentence
    )
    assert finding.advice == ["Write schedulerName: default-scheduler, or leave it out."]
    assert finding.is_decisive


def test_a_scheduler_that_has_asked_is_known() -> None:
    assert said(schedulers, asked(by("my-scheduler"), asking_schedulers=frozenset({"my-scheduler"}))) == []


def test_the_default_scheduler_does_not_ask_where_ours_places_pods() -> None:
    finding = found(schedulers, asked(policies=[policy(backend="Dedicated")]))
    assert finding.sentence == (
        "default-scheduler places the pod, and knows nothing of cards: with backend Dedicated"
        " gpushare-scheduler places pods that ask for cards."
    )
    assert not finding.is_decisive


def test_our_scheduler_does_not_run_with_another_backend() -> None:
    assert found(schedulers, asked(by("gpushare-scheduler"))).code == "UnknownScheduler"


def test_our_scheduler_that_has_asked_and_is_removed_is_not_advised() -> None:
    finding = found(
        schedulers, asked(by("gpushare-scheduler"), asking_schedulers=frozenset({"gpushare-scheduler"}))
    )
    assert finding.code == "UnknownScheduler"
    assert finding.advice == ["Write schedulerName: default-scheduler, or leave it out."]


def test_nor_where_another_one_is_connected_by_hand() -> None:
    asking = frozenset({"gpushare-scheduler", "own"})
    external = asked(by("other"), policies=[policy(backend="External")], asking_schedulers=asking)
    assert found(schedulers, external).advice == ["Write schedulerName: own, or leave it out."]


def test_nothing_is_said_of_schedulers_that_are_not_known() -> None:
    external = asked(by("my-scheduler"), policies=[policy(backend="External")], asking_schedulers=None)
    assert said(schedulers, external) == []


def test_a_pod_that_no_scheduler_tries_is_noticed() -> None:
    finding = found(schedulers, asked(exists=True))
    assert finding.sentence == "No scheduler has tried the pod yet: default-scheduler does not seem to run."


def test_an_extender_that_is_away_keeps_pods_waiting() -> None:
    finding = found(
        extender_away, asked(programs=[program("operator"), program("extender", ready=0, desired=3)])
    )
    assert finding.sentence == (
        "The extender, which chooses cards, does not run: 0 of its 3 pods are ready. Pods that ask for"
        " cards wait."
    )
    assert finding.is_decisive


@pytest.mark.parametrize("backend", ["Volcano", "Dedicated"])
def test_the_extender_is_not_missed_where_there_is_no_daemon_set_of_it(backend: str) -> None:
    situation = asked(programs=[program("operator")], policies=[policy(backend=backend)])
    assert said(extender_away, situation) == []


def test_with_engine_plugin_no_extender_is_missed() -> None:
    plugin = policy(engine="Plugin")
    assert said(extender_away, asked(programs=[program("operator")], policies=[plugin])) == []
    extender = policy(engine="Extender")
    assert said(extender_away, asked(programs=[program("operator")], policies=[extender])) != []


@pytest.mark.parametrize("engine", ["Plugin", "Extender"])
def test_where_our_own_scheduler_does_not_try_a_pod_its_pods_are_looked_at(engine: str) -> None:
    policies = [policy(backend="Dedicated", engine=engine)]
    finding = found(schedulers, asked(by("gpushare-scheduler"), exists=True, policies=policies))
    assert finding.code == "NobodyTries"
    assert finding.advice == ["kubectl get pods -A -l app.kubernetes.io/component=scheduler -o wide"]


def test_an_operator_that_is_away_keeps_no_pod_waiting() -> None:
    finding = found(operator_away, asked(programs=[program("extender")]))
    assert finding.sentence.startswith("The operator does not run: what is shared stays")
    assert not finding.is_decisive


def test_nothing_is_said_of_programs_that_run_or_cannot_be_read() -> None:
    for programs in (PROGRAMS, None):
        situation = asked(programs=programs)
        assert said(extender_away, situation) + said(operator_away, situation) == []
