"""What is installed: who may do what, and what the admission policies keep from happening."""

import asyncio
import dataclasses
import json
import uuid
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.e2e.observe import CALL_SECONDS, PODS, POLICIES, SHARE_NODES, get, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import MANIFESTS, SYSTEM
from tests.e2e.rights import await_right, may
from tests.e2e.workloads import create, pod

from gpushare_core.allocation_annotation import (
    Allocation,
    MalformedAllocationError,
    decode_allocation,
    encode_allocation,
)
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.paths import lease_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("product")]

ROOT = Path(__file__).resolve().parents[2]
ANNOTATION = "gpushare.io/allocation"
SENT_EACH_TIME = "poddisruptionbudget.policy/gpushare-operator configured"
"""kubectl replaces the selector of a PodDisruptionBudget, whatever it is (``patchStrategy: replace``)."""


def allocation(node: str, uid: str = "UID") -> str:
    containers = {"main": {"GPU-1": 4}}
    return encode_allocation(Allocation(node=node, uid=uid, at="", unit="1Gi", containers=containers))


def uid_of(cluster: LocalCluster, namespace: str, name: str) -> str:
    return str(get(cluster, f"{PODS.format(namespace=namespace)}/{name}")["metadata"]["uid"])


def account(name: str) -> str:
    return f"system:serviceaccount:{SYSTEM}:gpushare-{name}"


def has_right(
    cluster: LocalCluster, who: str, verb: str, what: str, *, namespace: str = "kube-system"
) -> bool:
    """Ask the API server; ``what`` may name a subresource as ``pods/binding``."""
    resource, _, subresource = what.partition("/")
    group = f"--subresource={subresource}" if subresource else "-v=0"
    return may(cluster, verb, resource, group, f"--as={account(who)}", "-n", namespace)


@pytest.mark.parametrize(
    ("who", "verb", "what"),
    [
        pytest.param("extender", "create", "pods/binding", id="extender binds"),
        pytest.param("extender", "create", "pods/eviction", id="extender evicts"),
        pytest.param("plugin", "patch", "gpusharenodes/status", id="plugin reports"),
        pytest.param("plugin", "patch", "pods", id="plugin corrects annotations"),
        pytest.param("operator", "patch", "nodes", id="operator labels"),
        pytest.param("operator", "patch", "nodes/status", id="operator clears capacity"),
    ],
)
def test_everyone_may_do_its_own_work(cluster: LocalCluster, who: str, verb: str, what: str) -> None:
    assert has_right(cluster, who, verb, what)


@pytest.mark.parametrize(
    ("who", "verb", "what"),
    [
        pytest.param("extender", "patch", "pods", id="extender does not write pods"),
        pytest.param("extender", "delete", "pods", id="extender deletes no pods past their budgets"),
        pytest.param("extender", "patch", "gpusharenodes/status", id="extender does not report"),
        pytest.param("plugin", "create", "pods/binding", id="plugin does not bind"),
        pytest.param("plugin", "patch", "nodes", id="plugin does not touch nodes"),
        pytest.param("plugin", "delete", "pods", id="plugin does not delete pods"),
        pytest.param("plugin", "get", "secrets", id="plugin reads no secrets"),
        pytest.param("operator", "get", "pods", id="operator reads only its own pods"),
        pytest.param("operator", "get", "configmaps", id="operator reads no others' configuration"),
        pytest.param("extender", "patch", "leases.coordination.k8s.io", id="extender writes only its Leases"),
        pytest.param("operator", "create", "daemonsets.apps", id="operator makes only its own"),
        pytest.param("operator", "get", "secrets", id="operator reads no secrets"),
        pytest.param("operator", "update", "gpusharenodes/status", id="operator does not report"),
        pytest.param("operator", "delete", "nodes", id="operator deletes no nodes"),
        pytest.param("hostctl", "get", "pods", id="hostctl may do nothing"),
    ],
)
def test_nobody_may_do_more(cluster: LocalCluster, who: str, verb: str, what: str) -> None:
    assert not has_right(cluster, who, verb, what)


@pytest.mark.parametrize("kind", ["ClusterRole", "Role"])
def test_no_role_has_a_wildcard(cluster: LocalCluster, kind: str) -> None:
    rendered = yaml.safe_load_all(cluster.kubectl("kustomize", str(ROOT / "manifests")))
    rules = [rule for body in rendered if body["kind"] == kind for rule in body["rules"]]
    assert rules
    assert not any("*" in values for rule in rules for values in rule.values())


def test_an_annotation_that_a_new_pod_brings_is_no_allocation_of_it(
    cluster: LocalCluster, namespace: str
) -> None:
    chosen = str(uuid.uuid4())
    forged = pod("forged", {"main": 0})
    forged["metadata"] |= {"uid": chosen, "annotations": {ANNOTATION: allocation("gpu-1", chosen)}}
    create(cluster, namespace, [forged])
    made = get(cluster, f"{PODS.format(namespace=namespace)}/forged")["metadata"]
    with pytest.raises(MalformedAllocationError, match="the allocation of another pod"):
        decode_allocation(made["annotations"][ANNOTATION], uid=made["uid"])


@pytest.mark.parametrize("way", [[], ["--subresource=status"]], ids=["pod", "status"])
@pytest.mark.parametrize("before", ["", "a copy"])
def test_a_user_may_not_change_one_later_by_whatever_way(
    cluster: LocalCluster, namespace: str, before: str, way: list[str]
) -> None:
    plain = pod("plain", {"main": 0})
    plain["metadata"]["annotations"] = {ANNOTATION: before} if before else {}
    create(cluster, namespace, [plain])
    for value in (allocation("gpu-1", uid_of(cluster, namespace, "plain")), *([None] if before else [])):
        patch = json.dumps({"metadata": {"annotations": {ANNOTATION: value}}})
        with pytest.raises(LocalClusterError, match="only gpushare may change the annotation"):
            cluster.kubectl("patch", "pod", "plain", "-n", namespace, "--type=merge", "-p", patch, *way)


def test_an_ordinary_pod_may_be_changed(cluster: LocalCluster, namespace: str) -> None:
    create(cluster, namespace, [pod("plain", {"main": 0})])
    cluster.kubectl("annotate", "pod", "plain", "-n", namespace, "mine=yes")
    cluster.kubectl("label", "pod", "plain", "-n", namespace, "mine=yes")


def test_an_ordinary_pod_is_turned_away_by_the_conditions_of_two_policies(
    cluster: LocalCluster, namespace: str
) -> None:
    """More would cost every pod of the cluster: see tests/component/operator/test_admission_cost.py. While no
    node shares its cards it is one."""
    watch_until(
        cluster,
        POLICIES,
        lambda found: any(
            "gpushare.io/admission" in policy["metadata"].get("labels", {}) for policy in found
        ),
        what="a policy says what nodes serve",
    )
    pods = [pod(f"plain-{number}", {"main": 0}) for number in range(PODS_MADE)]
    for body in pods:
        body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1", "memory": "1Gi"}}
    before = turned_away(cluster)
    pods_list = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
    cluster.kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=pods_list)
    more = {name: count - before.get(name, 0) for name, count in turned_away(cluster).items()}
    looked = {name: count for name, count in more.items() if count >= PODS_MADE}
    assert looked.keys() == {"gpushare-requests", "gpushare-dialect-environments"}


PODS_MADE = 20
"""So many that what else is created meanwhile is told from them."""


def turned_away(cluster: LocalCluster) -> dict[str, float]:
    """By policy: how many created objects its conditions have let pass without a further look."""
    counted = "apiserver_admission_match_condition_evaluation_seconds"
    (family,) = [
        family
        for family in text_string_to_metric_families(cluster.kubectl("get", "--raw", "/metrics"))
        if family.name == counted
    ]
    return {
        sample.labels["name"]: sample.value
        for sample in family.samples
        if sample.name == f"{counted}_count"
        and sample.labels["kind"] == "policy"
        and sample.labels["operation"] == "CREATE"
    }


def test_nobody_but_the_extender_binds_with_an_allocation(cluster: LocalCluster, namespace: str) -> None:
    waiting = pod("waiting", {"main": 0})
    waiting["spec"]["schedulerName"] = "nobody"
    create(cluster, namespace, [waiting])
    binding: Json = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "waiting", "annotations": {ANNOTATION: allocation("gpu-1")}},
        "target": {"kind": "Node", "name": "gpu-1"},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/waiting/binding"
    with pytest.raises(LocalClusterError, match="only gpushare may create a Binding"):
        cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(binding))
    del binding["metadata"]["annotations"]
    cluster.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(binding))


def as_plugin_of(
    cluster: LocalCluster, node: str, path: str, patch: Json, *, namespace: str = SYSTEM
) -> None:
    """Patch with a token as the kubelet of ``node`` hands it to its plugin: bound to it, if one is named.

    Raises ``ApiError`` when it is refused.
    """
    bound = [f"--bound-object-name={node}", "--bound-object-kind=Node"] if node else []
    token = cluster.kubectl("create", "token", "gpushare-plugin", "-n", namespace, *bound)
    credentials = dataclasses.replace(from_kubeconfig(cluster.kubeconfig), token=lambda: token)

    async def send() -> None:
        async with KubeClient(credentials, timeout=CALL_SECONDS) as client:
            await client.merge(path, patch)

    asyncio.run(send())


def test_a_plugin_changes_pods_of_its_own_node_only(cluster: LocalCluster, namespace: str) -> None:
    create(cluster, namespace, [pod("there", {"main": 0}, on="gpu-1")])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(is_running(pod) for pod in pods),
        what="the pod runs",
    )
    path = f"{PODS.format(namespace=namespace)}/there"
    text = allocation("gpu-1", uid_of(cluster, namespace, "there"))
    patch = {"metadata": {"annotations": {ANNOTATION: text}}}
    with pytest.raises(ApiError, match="plugin of node gpu-2 may change only pods on that node"):
        as_plugin_of(cluster, "gpu-2", path, patch)
    as_plugin_of(cluster, "gpu-1", path, patch)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(allocation("gpu-2"), id="another node"),
        pytest.param(allocation("gpu-10"), id="a node whose name begins alike"),
        pytest.param(allocation("gpu-1", "another"), id="another pod"),
        pytest.param('{"node":"gpu-1","at":"","uid":"UID"}', id="not as the codec writes it"),
        pytest.param("{}", id="no node"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_plugin_books_on_its_own_node_only(cluster: LocalCluster, namespace: str, text: str) -> None:
    create(cluster, namespace, [pod("there", {"main": 0}, node="gpu-1")])
    path, uid = f"{PODS.format(namespace=namespace)}/there", uid_of(cluster, namespace, "there")
    own = allocation("gpu-1", uid)
    as_plugin_of(cluster, "gpu-1", path, {"metadata": {"annotations": {ANNOTATION: own}}})
    with pytest.raises(ApiError, match="plugin of node gpu-1 may allocate only on that node"):
        as_plugin_of(
            cluster, "gpu-1", path, {"metadata": {"annotations": {ANNOTATION: text.replace("UID", uid)}}}
        )


def test_accounts_of_these_names_in_another_namespace_are_nobody_special(
    cluster: LocalCluster, namespace: str
) -> None:
    """Not even where an administrator of that namespace gives them the rights there."""
    for name, role in [("editor", "edit"), ("booker", "gpushare-plugin")]:
        subject = f"--serviceaccount={namespace}:gpushare-plugin"
        cluster.kubectl("create", "rolebinding", name, f"--clusterrole={role}", subject, "-n", namespace)
    cluster.kubectl("create", "serviceaccount", "gpushare-plugin", "-n", namespace)
    create(cluster, namespace, [pod("mine", {"main": 0}, node="gpu-1")])
    path = f"{PODS.format(namespace=namespace)}/mine"
    text = allocation("gpu-1", uid_of(cluster, namespace, "mine"))
    theirs = f"--as=system:serviceaccount:{namespace}:gpushare-plugin"
    await_right(cluster, "patch", "pods", "-n", namespace, theirs)
    with pytest.raises(ApiError, match="only gpushare may change the annotation"):
        as_plugin_of(
            cluster,
            "gpu-1",
            path,
            {"metadata": {"annotations": {ANNOTATION: text}}},
            namespace=namespace,
        )
    as_plugin_of(cluster, "gpu-1", path, {"metadata": {"labels": {"app": "bank"}}}, namespace=namespace)


def test_an_allocation_of_another_node_or_pod_than_the_binding_s_is_refused(
    cluster: LocalCluster, namespace: str
) -> None:
    waiting = pod("waiting", {"main": 0})
    waiting["spec"]["schedulerName"] = "nobody"
    waiting["metadata"]["annotations"] = {ANNOTATION: "a copy"}
    create(cluster, namespace, [waiting])
    uid = uid_of(cluster, namespace, "waiting")
    for node, named, of in [("gpu-2", uid, uid), ("gpu-1", "other", uid), ("gpu-1", "", "")]:
        with pytest.raises(ApiError, match=r'must begin with \{"node":"gpu-1","uid":'):
            bind(cluster, namespace, of, allocation(node, named))
    with pytest.raises(ApiError, match="409"):
        bind(cluster, namespace, "other", allocation("gpu-1", "other"))
    bind(cluster, namespace, uid, allocation("gpu-1", uid))
    bound = get(cluster, f"{PODS.format(namespace=namespace)}/waiting")
    assert bound["metadata"]["annotations"][ANNOTATION] == allocation("gpu-1", uid)


def bind(cluster: LocalCluster, namespace: str, uid: str, text: str) -> None:
    """Binds the pod ``waiting`` with that UID to gpu-1 as the extender, with ``text`` as its allocation."""
    metadata = {"name": "waiting", "annotations": {ANNOTATION: text}, **({"uid": uid} if uid else {})}
    target = {"kind": "Node", "name": "gpu-1"}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    as_extender(cluster, f"{PODS.format(namespace=namespace)}/waiting/binding", body)


def as_extender(cluster: LocalCluster, path: str, body: Json, *, method: str = "POST") -> Json:
    """Sends ``body`` as the extender. Raises ``ApiError`` when it is refused."""
    token = cluster.kubectl("create", "token", "gpushare-extender", "-n", SYSTEM)
    credentials = dataclasses.replace(from_kubeconfig(cluster.kubeconfig), token=lambda: token)

    async def send() -> Json:
        async with KubeClient(credentials, field_manager="gpushare-extender", timeout=CALL_SECONDS) as client:
            if method == "PATCH":
                return await client.apply(path, body)
            return await client.send(ApiRequest(method=method, path=path, body=body))

    return asyncio.run(send())


OWN_OBJECTS = [
    pytest.param(
        f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/gpushare-extender",
        {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"},
        "PUT",
        id="Lease",
    ),
    pytest.param(
        f"/apis/storage.k8s.io/v1/namespaces/{SYSTEM}/csistoragecapacities/gpushare-wake-up",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIStorageCapacity",
            "storageClassName": "gpushare-wake-up",
        },
        "PATCH",
        id="what wakes the scheduler",
    ),
]


@pytest.mark.parametrize(("path", "body", "method"), OWN_OBJECTS)
def test_the_extender_makes_a_deleted_object_of_its_own_anew(
    cluster: LocalCluster, path: str, body: Json, method: str
) -> None:
    collection, _, name = path.rpartition("/")
    cluster.kubectl("delete", "--raw", path)
    with pytest.raises(ApiError, match="403"):
        as_extender(cluster, collection, {**body, "metadata": {"name": "other"}})
    made = as_extender(cluster, path, {**body, "metadata": {"name": name}}, method=method)
    assert made["metadata"]["name"] == name


def test_the_extender_holds_its_own_lease_and_no_other(cluster: LocalCluster) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases"
    other = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "other"}}
    cluster.kubectl("create", "--raw", leases, "-f", "-", stdin=json.dumps(other))
    with pytest.raises(ApiError, match="403"):
        as_extender(cluster, f"{leases}/other", other, method="PUT")
    with pytest.raises(ApiError, match="403"):
        as_extender(cluster, "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", other)
    cluster.kubectl("delete", "lease", "other", "-n", SYSTEM)


@pytest.mark.parametrize(
    "patch",
    [
        pytest.param({"metadata": {"labels": {"app": "bank"}}}, id="labels"),
        pytest.param({"spec": {"activeDeadlineSeconds": 1}}, id="spec"),
        pytest.param({"metadata": {"finalizers": ["example.com/keep"]}}, id="finalizers"),
        pytest.param(
            {
                "metadata": {
                    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "not-there"}]
                }
            },
            id="owners",
        ),
    ],
)
def test_a_plugin_changes_nothing_but_annotations(cluster: LocalCluster, namespace: str, patch: Json) -> None:
    create(cluster, namespace, [pod("there", {"main": 0}, node="gpu-1")])
    with pytest.raises(ApiError, match="may change only annotations of pods"):
        as_plugin_of(cluster, "gpu-1", f"{PODS.format(namespace=namespace)}/there", patch)


@pytest.mark.parametrize("value", ["changed", None, "added"])
def test_a_plugin_changes_no_other_annotation(
    cluster: LocalCluster, namespace: str, value: str | None
) -> None:
    there = pod("there", {"main": 0}, node="gpu-1")
    there["metadata"]["annotations"] = {} if value == "added" else {"mine": "yes"}
    create(cluster, namespace, [there])
    with pytest.raises(ApiError, match="may change only the annotation gpushare"):
        as_plugin_of(
            cluster,
            "gpu-1",
            f"{PODS.format(namespace=namespace)}/there",
            {"metadata": {"annotations": {"mine": value}}},
        )


def test_a_plugin_without_a_node_changes_nothing(cluster: LocalCluster, namespace: str) -> None:
    waiting = pod("waiting", {"main": 0})
    waiting["spec"]["schedulerName"] = "nobody"
    create(cluster, namespace, [waiting])
    patch = {"metadata": {"annotations": {ANNOTATION: "{}"}}}
    with pytest.raises(ApiError, match="may change only pods on that node"):
        as_plugin_of(cluster, "", f"{PODS.format(namespace=namespace)}/waiting", patch)


def test_a_plugin_reports_on_its_own_node_only(cluster: LocalCluster) -> None:
    share = {
        "apiVersion": "gpushare.io/v1alpha1",
        "kind": "GPUShareNode",
        "metadata": {"name": "gpu-1"},
        "spec": {"policy": "", "mode": "Memory", "memoryUnit": "1Gi"},
    }
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(share))
    path, patch = f"{SHARE_NODES}/gpu-1/status", {"status": {"summary": "seen"}}
    with pytest.raises(
        ApiError, match="plugin of node gpu-2 may write only the status of GPUShareNode gpu-2"
    ):
        as_plugin_of(cluster, "gpu-2", path, patch)
    as_plugin_of(cluster, "gpu-1", path, patch)
    assert get(cluster, f"{SHARE_NODES}/gpu-1")["status"]["summary"] == "seen"
    cluster.kubectl("delete", "gsn", "gpu-1")


@pytest.mark.parametrize("kind", ["DaemonSet", "Job"])
def test_everybody_else_runs_workloads_as_before(cluster: LocalCluster, namespace: str, kind: str) -> None:
    labels = {"app": "ordinary"}
    containers = [{"name": "main", "image": "python", "command": ["true"]}]
    template: Json = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec: Json = {"template": template}
    if kind == "DaemonSet":
        spec["selector"] = {"matchLabels": labels}
    else:
        template["spec"]["restartPolicy"] = "Never"
    version = {"DaemonSet": "apps/v1", "Job": "batch/v1"}[kind]
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": "ordinary"}, "spec": spec}
    made = cluster.kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=json.dumps(body))
    assert "created" in made


def test_the_operator_runs_without_rights_on_its_node(cluster: LocalCluster) -> None:
    pods = get(cluster, PODS.format(namespace=SYSTEM))["items"]
    (operator,) = [pod for pod in pods if is_operator_that_stays(pod)]
    (container,) = operator["spec"]["containers"]
    assert operator["spec"]["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "volumes" not in operator["spec"] or not any(
        "hostPath" in volume for volume in operator["spec"]["volumes"]
    )


def is_operator_that_stays(pod: Json) -> bool:
    """An earlier module may have had it replaced: then the former one still ends."""
    metadata = pod["metadata"]
    return metadata["name"].startswith("gpushare-operator") and "deletionTimestamp" not in metadata


def test_the_image_is_named_in_one_place(cluster: LocalCluster) -> None:
    (operator,) = get(cluster, f"/apis/apps/v1/namespaces/{SYSTEM}/deployments")["items"]
    (container,) = operator["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "gpushare:0.1.0"
    assert str(operator["spec"]).count("gpushare:0.1.0") == 1


def test_applying_the_manifests_again_changes_nothing(cluster: LocalCluster) -> None:
    """kubectl says so itself, the operator goes on, and what it holds stays its own."""
    cluster.kubectl("apply", "-k", str(MANIFESTS))  # another test has had objects of them made anew
    before, at_work = versions(cluster), operator(cluster)
    said = cluster.kubectl("apply", "-k", str(MANIFESTS), "--warnings-as-errors")
    assert [line for line in said.splitlines() if not line.endswith(" unchanged")] == [SENT_EACH_TIME]
    assert versions(cluster) == before
    wait_until("the Lease is renewed", lambda: operator(cluster).renewed > at_work.renewed)
    assert operator(cluster)._replace(renewed=at_work.renewed) == at_work


class AtWork(NamedTuple):
    """The operator that is at work."""

    holder: str
    acquired: str
    restarts: list[int]
    renewed: str


def operator(cluster: LocalCluster) -> AtWork:
    lease = get(cluster, lease_path(SYSTEM, "gpushare-operator"))["spec"]
    pods = get(cluster, PODS.format(namespace=SYSTEM))["items"]
    return AtWork(
        lease["holderIdentity"],
        lease["acquireTime"],
        [
            container_status["restartCount"]
            for pod in filter(is_operator_that_stays, pods)
            for container_status in pod["status"]["containerStatuses"]
        ],
        lease["renewTime"],
    )


def versions(cluster: LocalCluster) -> dict[str, int]:
    """The generation of everything that the manifests make and that has one."""
    listed = cluster.kubectl("get", "-k", str(ROOT / "manifests"), "-o", "json")
    return {
        f"{item['kind']}/{item['metadata']['name']}": item["metadata"].get("generation", 0)
        for item in json.loads(listed)["items"]
    }
