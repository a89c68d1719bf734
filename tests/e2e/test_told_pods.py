"""What people are told of pods that ask for what no node has, or for nothing and show themselves cards."""

import json

import pytest
from tests.e2e.observe import POLICIES, Json, watch_until
from tests.e2e.product import Product

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("product", "shared_policy")]

MEMORY = "gpushare.io/memory"


def pod(name: str, limits: Json | None = None, env: list[Json] | None = None, **spec: object) -> Json:
    container = {"name": "main", "image": "x", "env": env or [], "resources": {"limits": limits or {}}}
    container["command"] = ["sleep", "infinity"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def create(cluster: LocalCluster, namespace: str, body: Json, *options: str) -> None:
    cluster.kubectl("create", "-n", namespace, "-f", "-", *options, stdin=json.dumps(body))


def refusal(cluster: LocalCluster, namespace: str, body: Json) -> str:
    """Returns what whoever makes the pod is warned of, or told; empty where that is nothing."""
    try:
        create(cluster, namespace, body, "--dry-run=server", "--warnings-as-errors")
    except LocalClusterError as error:
        return str(error)
    return ""


def until_said(cluster: LocalCluster, namespace: str, body: Json, part: str) -> None:
    """Waits until ``part`` is in the warning or refusal: the API server's admission learns of a policy a
    moment after it was written."""
    wait_until(
        f"it is said: {part}",
        lambda: part in refusal(cluster, namespace, body),
        interval=0.5,
        explain=lambda: refusal(cluster, namespace, body),
    )


def await_mark(cluster: LocalCluster, value: str) -> None:
    watch_until(
        cluster,
        POLICIES,
        lambda found: any(
            policy["metadata"].get("labels", {}).get("gpushare.io/admission") == value for policy in found
        ),
        what=f"a policy has the mark {value}",
    )


@pytest.mark.parametrize(
    "name", ["aliyun.com/gpu-mem", "gpushare.io/mem", "gpushare.io/slice", "nvidia.com/gpu"]
)
def test_who_asks_for_what_no_node_serves_is_warned_what_they_serve(
    cluster: LocalCluster, namespace: str, name: str
) -> None:
    await_mark(cluster, "Allow")
    body = pod("a", {name: "1"})
    until_said(cluster, namespace, body, f"Nodes serve {MEMORY}; ask for one of these")
    assert f"asks for {name}, which no node serves now" in refusal(cluster, namespace, body)


@pytest.mark.parametrize("name", [MEMORY, "cpu", "example.com/gpu"])
def test_nobody_else_is_warned(cluster: LocalCluster, namespace: str, name: str) -> None:
    await_mark(cluster, "Allow")
    assert refusal(cluster, namespace, pod("a", {name: "1"})) == ""


@pytest.mark.parametrize("amount", ["0", "0Gi", "0e3", "-0", "0.000"])
def test_who_asks_for_none_of_it_is_not_warned(cluster: LocalCluster, namespace: str, amount: str) -> None:
    """Charts write a limit of 0 where cards are switched off: such a pod does not wait."""
    await_mark(cluster, "Allow")
    assert refusal(cluster, namespace, pod("a", {"nvidia.com/gpu": amount})) == ""


def test_pods_that_wait_for_what_no_node_has_are_told_so(cluster: LocalCluster, namespace: str) -> None:
    create(cluster, namespace, pod("big", {MEMORY: "4096"}))
    create(cluster, namespace, pod("typo", {"gpushare.io/mem": "2"}))
    create(cluster, namespace, pod("fits", {MEMORY: "2"}))

    def events() -> set[tuple[str, str, str]]:
        answer = cluster.kubectl("get", "events", "-n", namespace, "-o", "json")
        return {
            (item["involvedObject"]["name"], item["reason"], item["message"])
            for item in json.loads(answer)["items"]
            if item["reportingComponent"] == "gpushare-extender"
        }

    def names() -> set[str]:
        return {name for name, _, _ in events()}

    wait_until("both are told", lambda: names() >= {"big", "typo"}, interval=1.0)
    told = {name: (reason, note) for name, reason, note in events()}
    assert told.keys() == {"big", "typo"}
    assert told["big"][0] == "MoreThanAnyNodeHas"
    assert "asks for 4096 of gpushare.io/memory, and the biggest card has 16" in told["big"][1]
    assert told["typo"][0] == "ResourceNotServed"
    assert f"no node serves that; ask for one of these: {MEMORY}" in told["typo"][1]


ALL = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]


def ask(product: Product, visible_devices: str) -> None:
    body = json.dumps({"spec": {"admission": {"visibleDevices": visible_devices}}})
    product.cluster.kubectl("patch", "gsp", "default", "--type=merge", "-p", body)
    await_mark(product.cluster, visible_devices)


def until_told(cluster: LocalCluster, namespace: str, part: str) -> None:
    until_said(cluster, namespace, pod("a", env=ALL), part)


def until_let_pass(cluster: LocalCluster, namespace: str, what: str) -> None:
    wait_until(what, lambda: not refusal(cluster, namespace, pod("a", env=ALL)), interval=0.5)


def test_containers_that_show_themselves_cards_are_looked_after_as_the_policy_asks(
    cluster: LocalCluster, namespace: str, product: Product
) -> None:
    until_let_pass(cluster, namespace, "nobody is told while the policy allows it")
    ask(product, "Warn")
    until_told(cluster, namespace, "container main asks for no card and sets NVIDIA_VISIBLE_DEVICES")
    create(cluster, namespace, pod("warned", env=ALL), "--dry-run=server")
    ask(product, "Deny")
    until_told(cluster, namespace, "is forbidden")
    for body in (
        pod("a", env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]),
        pod("a", env=[{"name": "CUDA_VISIBLE_DEVICES", "value": "0"}]),
    ):
        assert refusal(cluster, namespace, body) == ""
    cluster.kubectl("label", "namespace", namespace, "gpushare.io/visible-devices=allowed")
    until_let_pass(cluster, namespace, "the namespace is left alone")
    cluster.kubectl("label", "namespace", namespace, "gpushare.io/visible-devices-")
    ask(product, "Allow")


def test_our_own_plugin_may_see_all_cards(cluster: LocalCluster, namespace: str, product: Product) -> None:
    ask(product, "Deny")
    body = pod("a", env=ALL, serviceAccountName="gpushare-plugin")
    cluster.kubectl("create", "serviceaccount", "gpushare-plugin", "-n", namespace)
    until_told(cluster, namespace, "is forbidden")
    assert "is forbidden" in refusal(cluster, namespace, body), "the name alone gives no right"
    assert refusal(cluster, "gpushare-system", body) == ""
    ask(product, "Allow")


def test_pods_of_another_scheduler_are_counted(cluster: LocalCluster, namespace: str) -> None:
    create(cluster, namespace, pod("other", {MEMORY: "2"}, schedulerName="mine"))

    def counted(found: list[Json]) -> bool:
        conditions = (
            condition for policy in found for condition in policy.get("status", {}).get("conditions", ())
        )
        return any(
            condition["type"] == "SchedulerConfigured"
            and condition["status"] == "True"
            and f"1 pod that asks for cards has another schedulerName ({namespace}/other)"
            in condition["message"]
            for condition in conditions
        )

    watch_until(cluster, POLICIES, lambda found: counted([*found]), what="it is counted")
