"""Nodes to which a pod may not go, and what they lack beside cards."""

import pytest
from tests.samples.surroundings import asked, claim, found, node, quota, said
from tests.samples.why import (
    MEMORY,
    bound_pods,
    card_json,
    full_node,
    memory_pod,
    owned_pod,
    pod_json,
    share_node_json,
)

from gpushare_cli.decide.why.causes.nodes import nodes_kept_from, not_computed
from gpushare_cli.decide.why.causes.quota import quotas_exceeded
from gpushare_cli.decide.why.causes.resources import missing_resources
from gpushare_cli.decide.why.causes.volumes import claims_not_bound
from gpushare_core.text.json_object import Json

TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}


def requiring(*terms: Json) -> Json:
    required = {"nodeSelectorTerms": [*terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def term(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": [*values]}]}


def two_nodes() -> list[Json]:
    return [share_node_json(name, card_json(0)) for name in ("gpu-1", "gpu-2")]


def test_a_taint_names_the_toleration_that_is_missing() -> None:
    finding = found(nodes_kept_from, asked(nodes=[node(taints=[TAINT])]))
    assert finding.sentence == (
        "Taint dedicated=ml:NoSchedule keeps the pod off the only node with cards (gpu-1)."
    )
    toleration = "{key: dedicated, operator: Exists, effect: NoSchedule}"
    assert finding.advice == [
        f"If the pod may go there, give it the toleration {toleration}.",
        "kubectl taint nodes gpu-1 dedicated=ml:NoSchedule-",
    ]
    assert finding.is_decisive


@pytest.mark.parametrize(
    "toleration",
    [
        {"operator": "Exists"},
        {"key": "dedicated", "operator": "Exists"},
        {"key": "dedicated", "value": "ml"},
        {"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"},
    ],
)
def test_a_taint_that_is_tolerated_keeps_nobody_off(toleration: Json) -> None:
    assert (
        said(nodes_kept_from, asked(memory_pod(4, tolerations=[toleration]), nodes=[node(taints=[TAINT])]))
        == []
    )


@pytest.mark.parametrize(
    "toleration", [{"key": "dedicated", "value": "web"}, {"operator": "Exists", "effect": "NoExecute"}]
)
def test_another_toleration_does_not_help(toleration: Json) -> None:
    situation = asked(memory_pod(4, tolerations=[toleration]), nodes=[node(taints=[TAINT])])
    assert found(nodes_kept_from, situation).code == "NodesByTaint"


def test_a_taint_that_only_advises_keeps_nobody_off() -> None:
    soft = {**TAINT, "effect": "PreferNoSchedule"}
    assert said(nodes_kept_from, asked(nodes=[node(taints=[soft])])) == []


def test_a_taint_of_kubernetes_says_what_is_wrong_with_the_node() -> None:
    sick = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    assert found(nodes_kept_from, asked(nodes=[node(taints=[sick])])).advice == [
        "kubectl describe node gpu-1"
    ]


def test_a_cordoned_node_takes_no_new_pod() -> None:
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    finding = found(nodes_kept_from, asked(nodes=[node(unschedulable=True, taints=[cordon])]))
    assert finding.sentence == "kubectl cordon keeps new pods off the only node with cards (gpu-1)."
    assert finding.advice == ["kubectl uncordon gpu-1"]


def test_a_selector_that_no_node_meets_says_what_nodes_have() -> None:
    situation = asked(memory_pod(4, nodeSelector={"disk": "ssd"}), nodes=[node(labels={"disk": "hdd"})])
    finding = found(nodes_kept_from, situation)
    assert finding.sentence == (
        "The pod's nodeSelector asks for disk=ssd, which leaves out the only node with cards (gpu-1)."
    )
    assert finding.advice == ["Nodes with cards have disk=hdd.", "kubectl get nodes -L disk"]


def test_each_rule_is_counted_where_several_leave_no_node() -> None:
    situation = asked(
        memory_pod(4, nodeSelector={"zone": "a"}),
        share_nodes=two_nodes(),
        nodes=[node("gpu-1", labels={"zone": "a"}, taints=[TAINT]), node("gpu-2", labels={"zone": "b"})],
    )
    assert said(nodes_kept_from, situation) == [
        "Taint dedicated=ml:NoSchedule keeps the pod off 1 of 2 nodes with cards (gpu-1).",
        "The pod's nodeSelector asks for zone=a, which leaves out 1 of 2 nodes with cards (gpu-2).",
    ]


def test_nothing_is_said_of_nodes_left_out_where_another_one_fits() -> None:
    situation = asked(share_nodes=two_nodes(), nodes=[node("gpu-1", taints=[TAINT]), node("gpu-2")])
    assert said(nodes_kept_from, situation) == []


def test_it_is_said_where_the_nodes_that_are_left_are_full() -> None:
    nodes = [node("gpu-1", taints=[TAINT]), node("gpu-2")]
    situation = asked(share_nodes=[two_nodes()[0], full_node("gpu-2")], nodes=nodes)
    assert not found(nodes_kept_from, situation).is_decisive


@pytest.mark.parametrize(
    ("affinity", "text"),
    [
        (requiring(term("zone", "In", "a", "b")), "zone in (a, b)"),
        (requiring(term("zone", "In", "a")), "zone=a"),
        (requiring(term("gpu", "Exists")), "label gpu"),
        (requiring(term("size", "Gt", "8")), "size Gt 8"),
        (requiring(term("zone", "In", "a"), term("gpu", "Exists")), "zone=a or label gpu"),
        (requiring({}), "a term that selects nothing"),
    ],
)
def test_a_required_affinity_says_what_no_node_meets(affinity: Json, text: str) -> None:
    finding = found(nodes_kept_from, asked(memory_pod(4, affinity=affinity)))
    assert finding.sentence.startswith(f"The pod's node affinity requires {text}, which leaves out")


@pytest.mark.parametrize(
    "affinity",
    [
        requiring(term("zone", "In", "a"), term("zone", "NotIn", "a")),
        requiring(term("zone", "DoesNotExist")),
        requiring(term("size", "Lt", "8")),
        requiring({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}),
    ],
)
def test_an_affinity_that_is_met_leaves_the_node(affinity: Json) -> None:
    assert (
        said(nodes_kept_from, asked(memory_pod(4, affinity=affinity), nodes=[node(labels={"size": "4"})]))
        == []
    )


def test_rules_among_pods_are_left_to_kube_scheduler() -> None:
    spread = [{"topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]
    anti: Json = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}
    finding = found(not_computed, asked(memory_pod(4, topologySpreadConstraints=spread, affinity=anti)))
    assert finding.sentence == (
        "The pod has a topologySpreadConstraint with DoNotSchedule, podAntiAffinity. This command does not"
        " check which nodes that leaves."
    )


def wanting(**amounts: str) -> Json:
    return pod_json(main={MEMORY: 4, **amounts})


def test_cpu_that_no_node_has_is_told_with_the_nearest_node() -> None:
    finding = found(missing_resources, asked(wanting(cpu="100")))
    assert finding.sentence == (
        "The pod asks for 100 CPU, and the only node whose cards have room has too little left."
    )
    assert finding.nearest == "gpu-1: 8 free"
    assert finding.advice == [
        "Ask for less CPU in the requests of the pod; waiting does not help: no empty node has that much.",
        "kubectl describe node gpu-1",
    ]
    assert finding.is_decisive


def test_cpu_that_others_have_is_counted_where_they_were_read() -> None:
    neighbour = owned_pod("web", node="gpu-1")
    neighbour["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "6"}
    situation = asked(wanting(cpu="4"), more={"neighbours": {"gpu-1": bound_pods(neighbour)}})
    finding = found(missing_resources, situation)
    assert finding.nearest == "gpu-1: 2 of 8 free"
    assert finding.advice[0] == "Ask for less CPU in the requests of the pod; or wait for others to end."


def test_memory_is_told_in_bytes() -> None:
    finding = found(missing_resources, asked(wanting(memory="64Gi")))
    assert finding.sentence.startswith("The pod asks for 64Gi memory, and")
    assert finding.nearest == "gpu-1: 32Gi free"


def test_it_decides_nothing_where_another_node_has_it() -> None:
    nodes = [node("gpu-1", offered={"cpu": "2"}), node("gpu-2")]
    finding = found(missing_resources, asked(wanting(cpu="4"), share_nodes=two_nodes(), nodes=nodes))
    assert finding.sentence == (
        "The pod asks for 4 CPU, and of the 2 nodes whose cards have room 1 has too little left."
    )
    assert not finding.is_decisive


def test_a_node_takes_a_limited_number_of_pods() -> None:
    neighbours = {"gpu-1": bound_pods(owned_pod("web"))}
    situation = asked(nodes=[node(offered={"pods": "1"})], more={"neighbours": neighbours})
    finding = found(missing_resources, situation)
    assert finding.code == "NoPodPlaces"
    assert finding.nearest == "gpu-1: 0 of 1 free"


def test_a_resource_that_no_node_offers_needs_its_plugin() -> None:
    finding = found(missing_resources, asked(wanting(**{"rdma/hca": "1"})))
    assert finding.advice[0] == ("Remove rdma/hca from the pod, or check that its device plugin runs there.")


def test_init_containers_lend_their_cpu() -> None:
    pod = pod_json(main={MEMORY: 4, "cpu": "5"}, init={"load": {"cpu": "6"}})
    assert said(missing_resources, asked(pod)) == []


def test_a_sidecar_keeps_its_cpu() -> None:
    pod = pod_json(main={MEMORY: 4, "cpu": "5"}, init={"proxy": {"cpu": "6"}})
    pod["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    assert found(missing_resources, asked(pod)).sentence.startswith("The pod asks for 11 CPU")


def mounting(name: str) -> Json:
    return memory_pod(4, volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}])


def test_a_claim_that_is_not_there_keeps_the_pod_waiting() -> None:
    finding = found(claims_not_bound, asked(mounting("data"), claims={}))
    assert (
        finding.sentence
        == "The pod mounts PersistentVolumeClaim data, and its namespace has none of that name."
    )
    assert finding.is_decisive


def test_a_claim_that_is_pending_may_wait_for_the_pod() -> None:
    finding = found(claims_not_bound, asked(mounting("data"), claims={"data": claim("data", "Pending")}))
    assert (
        finding.sentence
        == "The pod mounts PersistentVolumeClaim data, which is Pending and has no volume yet."
    )
    assert not finding.is_decisive


def test_a_claim_that_is_bound_is_well() -> None:
    assert said(claims_not_bound, asked(mounting("data"), claims={"data": claim("data", "Bound")})) == []


def test_a_quota_that_has_too_little_left_is_told_in_figures() -> None:
    finding = found(quotas_exceeded, asked(quotas=[quota("8", "6")]))
    assert finding.sentence == (
        "ResourceQuota cards lets namespace ml have 8 of gpushare.io/memory: 6 are used, and the pod asks"
        " for 4."
    )
    assert finding.advice[0] == "Ask for 2 at most, end pods of the namespace, or ask for a larger quota."


@pytest.mark.parametrize(("hard", "used"), [("10", "6"), ("4", "0")])
def test_a_quota_with_enough_left_is_well(hard: str, used: str) -> None:
    assert said(quotas_exceeded, asked(quotas=[quota(hard, used)])) == []


def test_a_pod_that_is_there_has_passed_its_quota() -> None:
    assert said(quotas_exceeded, asked(quotas=[quota("8", "6")], exists=True)) == []
