"""Isolation by the hook in real containers, on cards whose driver keeps the truth.

Each container asks for units of 1 GiB or for slices of 8 GiB; a context takes 512 MiB of that.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from tests.e2e.cuda_node import (
    CARDS,
    CONTEXT,
    MUSL,
    CudaNode,
    Images,
    Users,
    user_container,
    user_pod,
)
from tests.e2e.fixtures import own_namespace
from tests.e2e.image_build import build_image
from tests.e2e.observe import PODS, POLICIES, Json, condition, get, watch_until
from tests.e2e.product import SYSTEM, Product, policy
from tests.e2e.real_containers import kill_container, real_cluster
from tests.e2e.workloads import SLICE
from tests.fakes.cuda_driver import GIB, MIB

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.errors import LocalClusterError
from gpushare_localcluster.waiting import wait_until

pytestmark = pytest.mark.e2e

NODE = "gpu-1"
FILES = "/var/lib/gpushare/isolation"
LEAVE = "gpushare.io/leave-isolation-files=true"
PRELOAD = {"name": "LD_PRELOAD", "value": "/opt/gpushare/lib/libgpushare-cuda.so"}
REFUSED = "refused 2"
"""CUDA_ERROR_OUT_OF_MEMORY."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("images")
    build_image(folder / "gpushare.tar")
    images = [folder / "gpushare.tar", *Images(folder).write()]
    with real_cluster(tmp_path_factory.mktemp("real"), images) as running:
        yield running


@pytest.fixture(scope="module")
def product(node: CudaNode) -> Product:
    """With a policy for a node whose cards are listed."""
    installed = Product(node.cluster)
    installed.install()
    installed.apply(isolating("Hook"))
    installed.await_ready("default")
    return installed


@pytest.fixture(scope="module")
def node(cluster: LocalCluster) -> CudaNode:
    prepared = CudaNode(cluster, NODE)
    prepared.install()
    prepared.write_inventory()
    return prepared


def isolating(kind: str) -> Json:
    """Two cards of 16 GiB, each in slices or by memory."""
    rule: dict[str, Any] = {"mode": "Mixed", "slicesPerCard": 2, "devices": {"source": "Inventory"}}
    isolation = {"memory": kind, "contextMemory": f"{CONTEXT // MIB}Mi"}
    return policy("default", nodes=[NODE], **rule, isolation=isolation)


@pytest.fixture
def users(product: Product, node: CudaNode) -> Iterator[Users]:
    """Nobody has had anything of any card."""
    node.forget()
    with own_namespace(product.cluster) as name:
        yield Users(product.cluster, name)


def test_a_process_is_refused_at_the_share_of_its_container(users: Users, node: CudaNode) -> None:
    said = users.run(user_pod("user", user_container("0=3000", "0=1000", "0=500", units=4)))
    assert said.splitlines() == ["0=3000 taken", f"0=1000 {REFUSED}", "0=500 taken", "0: total 4096, free 84"]
    assert node.driver.highest() == 3500 * MIB + CONTEXT


@pytest.mark.parametrize(
    "security",
    [
        pytest.param({"runAsUser": 1000, "readOnlyRootFilesystem": True}, id="any user"),
        pytest.param({"capabilities": {"drop": ["ALL"]}}, id="root without rights"),
    ],
)
def test_rights_of_a_container_change_nothing(users: Users, security: Json) -> None:
    restricted = {**security, "allowPrivilegeEscalation": False}
    said = users.run(user_pod("user", user_container("0=4000", units=4, securityContext=restricted)))
    assert said.splitlines() == [f"0=4000 {REFUSED}", "0: total 4096, free 3584"]


def test_two_pods_on_one_card_are_each_held(users: Users, node: CudaNode) -> None:
    users.run(user_pod("one", user_container("0=3000", "0=3000", units=4, group=1)))
    users.run(user_pod("other", user_container("0=6000", "0=6000", units=8, group=2)))
    (card,) = [card for card in range(len(CARDS)) if node.driver.used(card=card, group=1)]
    assert node.driver.highest(card=card, group=1) == 3000 * MIB + CONTEXT
    assert node.driver.highest(card=card, group=2) == 6000 * MIB + CONTEXT


def test_slices_on_two_cards_are_each_held(users: Users, node: CudaNode) -> None:
    requests = ("0=7000", "0=1000", "1=5000", "1=3000")
    said = users.run(user_pod("user", user_container(*requests, units=2, resource=SLICE)))
    assert said.splitlines() == [
        *("0=7000 taken", f"0=1000 {REFUSED}", "1=5000 taken", f"1=3000 {REFUSED}"),
        *("0: total 8192, free 680", "1: total 8192, free 2680"),
    ]
    assert sorted(node.driver.highest(card=card) for card in range(2)) == [
        5000 * MIB + CONTEXT,
        7000 * MIB + CONTEXT,
    ]


def test_a_process_of_kubectl_exec_is_counted_with_the_others(users: Users, node: CudaNode) -> None:
    users.run(user_pod("user", user_container("0=2000", units=4)))
    said = users.exec("user", "0=2000", "0=1000").splitlines()
    assert said == [f"0=2000 {REFUSED}", "0=1000 taken", "0: total 4096, free 72"]
    assert users.exec("user", "0=1000").startswith("0=1000 taken"), "what it had is given back when it ends"
    assert node.driver.highest() == 3000 * MIB + 2 * CONTEXT


def test_a_killed_plugin_changes_nothing(users: Users, product: Product, node: CudaNode) -> None:
    users.run(user_pod("user", user_container("0=2000", units=4)))
    before = registered_since(product)
    kill_container(product.cluster, SYSTEM, plugin_pod(product.cluster)["metadata"]["name"])
    assert users.exec("user", "0=2000").startswith(f"0=2000 {REFUSED}")
    wait_until("the plugin is registered anew", lambda: registered_since(product) > before)
    assert users.exec("user", "0=2000").startswith(f"0=2000 {REFUSED}")
    users.run(user_pod("next", user_container("0=4000", units=4, group=1)))
    assert node.driver.highest() <= 4 * GIB
    assert node.driver.highest(group=1) == CONTEXT


def plugin_pod(cluster: LocalCluster) -> Json:
    chosen = "labelSelector=app.kubernetes.io/component%3Dplugin"
    (pod,) = get(cluster, f"{PODS.format(namespace=SYSTEM)}?{chosen}")["items"]
    return dict(pod)


def registered_since(product: Product) -> str:
    """Returns since when the node's plugin is registered, once it is: a pod that comes earlier is refused by
    the kubelet, although the policy may still be Ready."""
    shown = product.share_node(
        NODE,
        lambda node: condition(node, "Registered").get("status") == "True",
        what="the plugin is registered",
    )
    return str(condition(shown, "Registered")["lastTransitionTime"])


def test_a_container_that_restarts_is_held_as_before(users: Users, product: Product, node: CudaNode) -> None:
    said = users.run(user_pod("user", user_container("0=3000", "0=1000", units=4)))
    product.cluster.restart_kubelet(NODE)
    wait_until("the kubelet knows the pod", lambda: is_reached(users, "user"), interval=0.5)
    assert users.exec("user", "0=1000").startswith(f"0=1000 {REFUSED}")
    kill_container(product.cluster, users.namespace, "user")
    users.until_running("user", restarts=1)
    assert users.said("user") == said
    assert node.driver.highest() <= 4 * GIB


def is_reached(users: Users, name: str) -> bool:
    with suppress(LocalClusterError):
        users.exec(name)
        return True
    return False


def test_a_musl_image_runs_and_is_held_where_it_preloads_the_library_itself(users: Users) -> None:
    """Its loader reads no /etc/ld.so.preload: docs/isolation.md says that it gets through."""
    users.run(user_pod("free", user_container("0=6000", units=4, image=MUSL)))
    said = users.run(user_pod("held", preloading(user_container("0=6000", units=4, image=MUSL, group=1))))
    assert said.splitlines() == [f"0=6000 {REFUSED}", "0: total 4096, free 3584"]


def preloading(container: Json) -> Json:
    return {**container, "env": [*container["env"], PRELOAD]}


def test_a_changed_policy_holds_for_containers_from_then_on(users: Users, product: Product) -> None:
    def free(name: str) -> bool:
        return users.exec(name, "0=4000").startswith("0=4000 taken")

    change(product, "None")
    users.run(user_pod("before", user_container("0=1", units=4)))
    change(product, "Hook")
    users.run(user_pod("between", user_container("0=1", units=4)))
    change(product, "None")
    users.run(user_pod("after", user_container("0=1", units=4)))
    expected = {"before": True, "between": False, "after": True}
    assert {name: free(name) for name in expected} == expected
    for name in expected:
        kill_container(product.cluster, users.namespace, name)
        users.until_running(name, restarts=1)
    assert {name: free(name) for name in expected} == expected
    users.delete(*expected)
    until_no_files(product)


def change(product: Product, kind: str) -> None:
    product.apply(isolating(kind))
    product.await_ready("default")


def files(product: Product) -> str:
    """Returns what isolation has on the node; the folder itself is a mount point of the plugin's."""
    return product.cluster.node_exec(NODE, ["find", FILES, "-mindepth", "1"]).stdout


def until_no_files(product: Product) -> None:
    wait_until(
        "no files of isolation are on the node",
        lambda: not files(product),
        interval=0.5,
        explain=lambda: files(product),
    )


def test_an_uninstallation_waits_for_the_containers_that_need_its_files(
    users: Users, product: Product
) -> None:
    change(product, "Hook")
    users.run(user_pod("user", user_container("0=2000", units=4)))
    product.cluster.kubectl("delete", "gpusharepolicy", "default", "--wait=false")
    told = until_policy(product, lambda ready: f"{users.namespace}/user" in ready.get("message", ""))
    print(condition(told, "Ready")["message"])
    kill_container(product.cluster, users.namespace, "user")
    users.until_running("user", restarts=1)
    assert users.exec("user", "0=2000").startswith(f"0=2000 {REFUSED}")
    users.delete("user")
    product.delete("default")
    until_no_files(product)


def until_policy(product: Product, holds: Callable[[Json], bool]) -> Json:
    """Waits for what its condition Ready says, and returns the policy."""
    seen = watch_until(
        product.cluster,
        POLICIES,
        lambda policies: any(holds(condition(policy, "Ready")) for policy in policies),
        what="the policy says what it waits for",
        describe=lambda policies: [policy.get("status") for policy in policies],
    )
    return seen[0]


def test_an_uninstallation_that_may_leave_files_does_not_wait(users: Users, product: Product) -> None:
    change(product, "Hook")
    users.run(user_pod("user", user_container("0=2000", units=4)))
    product.cluster.kubectl("annotate", "gpusharepolicy", "default", LEAVE)
    product.delete("default")
    kill_container(product.cluster, users.namespace, "user")
    users.until_running("user", restarts=1)
    assert users.exec("user", "0=2000").startswith(f"0=2000 {REFUSED}")
