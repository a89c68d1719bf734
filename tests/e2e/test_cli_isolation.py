"""What ``kubectl gpushare`` says of isolation: who is evicted for having more, which node cannot have it."""

import json
from collections.abc import Iterator

import pytest
from tests.e2e.command_line import gpushare
from tests.e2e.observe import PODS, Json, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, policy
from tests.e2e.workloads import create, pod

from gpushare_core.api.names import SIMULATED_LOAD_ANNOTATION
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("isolating_policy")]

MEASURED, HOOKED = "gpu-1", "gpu-2"
FOLDER = "/etc/gpushare"
LONG = 3600
"""Seconds: nobody is evicted in a test."""


def isolating(*, grace: int, memory: str = "None") -> Json:
    """A node whose containers are measured, and one for which ``memory`` says what is to hold them."""
    body = policy("default", nodes=[MEASURED], cards=2)
    body["spec"]["plugin"] = {"measurement": {"scope": "Containers", "intervalSeconds": 10}}
    (measured,) = body["spec"]["nodes"]
    measured["isolation"] = {"onExcess": "Evict", "graceSeconds": grace}
    body["spec"]["nodes"].append(
        {
            "names": [HOOKED],
            "mode": "Memory",
            "devices": {"source": "Inventory"},
            "isolation": {"memory": memory},
        }
    )
    return body


@pytest.fixture(scope="module")
def isolating_policy(cluster: LocalCluster, product: Product) -> Iterator[None]:
    cards = [{"uuid": f"GCU-{index}", "index": index, "memory": "16Gi"} for index in range(2)]
    script = f"mkdir -p {FOLDER} && cat > {FOLDER}/inventory.yaml"
    written = cluster.node_exec(HOOKED, ["sh", "-c", script], stdin=json.dumps({"cards": cards}))
    assert written.returncode == 0, written.stderr
    with product.in_force(isolating(grace=LONG)):
        yield
    cluster.node_exec(HOOKED, ["rm", "-r", FOLDER])


def until_told(cluster: LocalCluster, what: str, *words: str, command: list[str]) -> str:
    """Waits until the command says all of ``words``, and returns what it says."""
    told = [""]

    def is_told() -> bool:
        told[0] = gpushare(cluster, *command).stdout
        return all(word in " ".join(told[0].split()) for word in words)

    wait_until(what, is_told, interval=0.2, explain=lambda: told[0])
    return told[0]


def until_running(cluster: LocalCluster, namespace: str, names: set[str]) -> None:
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda seen: names <= {item["metadata"]["name"] for item in seen if is_running(item)},
        what=f"{names} run",
    )


def deployment(name: str, units: int) -> Json:
    template = pod(name, {"main": units}, on=MEASURED)
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": template["spec"]},
        },
    }


def test_who_has_more_is_evicted_and_said_to_be(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    create(cluster, namespace, [deployment("greedy", 2)])
    (first,) = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda seen: any(is_running(item) for item in seen),
        what="the pod runs",
    )
    name = first["metadata"]["name"]
    cluster.kubectl("annotate", "pod", name, "-n", namespace, f"{SIMULATED_LOAD_ANNOTATION}=4Gi")
    top = ["top", "pods", "-n", namespace]
    until_told(cluster, "its eviction is announced", "OVER for", "evicted in", command=top)
    until_told(
        cluster,
        "why says it",
        "by isolation.onExcess of policy default",
        command=["why", name, "-n", namespace],
    )
    product.apply(isolating(grace=0))
    until_told(
        cluster,
        "status says that it was evicted",
        f"pod {namespace}/{name}: evicted lately for having more memory",
        command=["status"],
    )
    until_told(
        cluster,
        "why says of the new pod that another came before it",
        f"Pod {namespace}/{name}, which came before it, was evicted",
        command=["why", "deployment/greedy", "-n", namespace],
    )


def test_a_node_that_cannot_have_the_hook_says_so_everywhere(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    """The plugin is a process here, without an image that has the hook's library."""
    create(cluster, namespace, [pod("before", {"main": 2}, on=HOOKED)])
    until_running(cluster, namespace, {"before"})
    product.apply(isolating(grace=LONG, memory="Hook"))
    words = (
        "isolation Hook, not to be had here",
        "IsolationReady is False",
        f"{namespace}/before: 2, no isolation",
    )
    until_told(cluster, "inspect says it", *words, command=["inspect", HOOKED])
    # A plugin that has just started offers nothing yet, and this is said first.
    problem = f"error: node {HOOKED}: it cannot have the isolation"
    until_told(cluster, "status says it", problem, command=["status"])
    assert gpushare(cluster, "status").returncode == 1
    create(cluster, namespace, [pod("after", {"main": 2}, on=HOOKED)])
    keeps = (f"{HOOKED} cannot have the isolation Hook that policy default asks for", "takes no new pods")
    until_told(cluster, "why says it", *keeps, command=["why", "after", "-n", namespace])
    assert "nothing. Policy default asks for isolation Hook" in " ".join(
        gpushare(cluster, "why", "before", "-n", namespace).stdout.split()
    )
    until_running(cluster, namespace, {"before"})
