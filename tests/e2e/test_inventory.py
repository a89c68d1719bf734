"""A node whose cards a file lists, in their vendor's dialect: what containers get, what a change does."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.fixtures import await_agreement
from tests.e2e.observe import PODS, Json, condition, watch_until
from tests.e2e.outcomes import is_running
from tests.e2e.product import Product, policy
from tests.e2e.workloads import create, pod

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.containers import ContainerRecord, HostPath

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("inventory_policy")]

NODE = "gpu-1"
FOLDER = "/etc/gpushare"
MEMORY = "enflame.com/gcu-memory"
FIRST, SECOND, THIRD = (f"GCU-U5300009010{number}" for number in range(3))


def card(index: int) -> Json:
    """The node has no such card: any device stands for it."""
    node = {"hostPath": "/dev/null", "containerPath": f"/dev/gcu{index}"}
    return {"uuid": (FIRST, SECOND, THIRD)[index], "index": index, "memory": "16Gi", "deviceNodes": [node]}


def inventory(*cards: Json, **extra: Any) -> str:
    """JSON is YAML."""
    container = {
        "deviceNodes": [{"hostPath": "/dev/zero", "containerPath": "/dev/gcuctl"}],
        "mounts": [{"hostPath": FOLDER, "containerPath": "/opt/enflame"}],
        "environment": {"ENFLAME_LOG": "1"},
        "visibleCards": {"variable": "GCU_VISIBLE", "by": "Index"},
    }
    health = {"command": [f"{FOLDER}/healthy", "{uuid}"], "periodSeconds": 5}
    return json.dumps({"cards": cards, "container": container, "health": health, **extra}, indent=1)


HEALTHY = f"""#!/bin/sh
if grep -qs "$1" {FOLDER}/sick; then echo "too hot"; exit 1; fi
"""


def write(cluster: LocalCluster, name: str, text: str) -> None:
    """As a vendor's agent does: beside, and renamed."""
    path = f"{FOLDER}/{name}"
    script = f"mkdir -p {FOLDER} && cat > {path}.new && chmod 755 {path}.new && mv {path}.new {path}"
    written = cluster.node_exec(NODE, ["sh", "-c", script], stdin=text)
    assert written.returncode == 0, written.stderr


def inventory_policy_body(**devices: Any) -> Json:
    body = policy("default", nodes=[NODE], devices={"source": "Inventory", **devices})
    body["spec"]["dialect"] = "enflame.com"
    return body


@pytest.fixture(scope="module")
def inventory_policy(cluster: LocalCluster, product: Product) -> Iterator[None]:
    write(cluster, "healthy", HEALTHY)
    write(cluster, "inventory.yaml", inventory(card(0), card(1)))
    with product.in_force(inventory_policy_body()):
        yield
    cluster.node_exec(NODE, ["rm", "-r", FOLDER])


def run(cluster: LocalCluster, namespace: str, name: str, units: int) -> ContainerRecord:
    create(cluster, namespace, [pod(name, {"main": units}, resource=MEMORY)])
    watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(pod["metadata"]["name"] == name and is_running(pod) for pod in pods),
        what=f"pod {name} runs",
        describe=lambda pods: [pod.get("status") for pod in pods],
    )
    return cluster.container(namespace=namespace, pod=name, container="main")


def uuids(share_node: Json) -> list[str]:
    return [card["uuid"] for card in share_node["status"]["cards"]]


def names_in_dev(cluster: LocalCluster, namespace: str, name: str) -> str:
    return cluster.kubectl("exec", "-n", namespace, name, "--", "sh", "-c", "cd /dev; ls -d gcu*")


def test_a_container_gets_what_the_inventory_says_of_its_card(cluster: LocalCluster, namespace: str) -> None:
    for index, name in enumerate(("a", "b")):
        record = run(cluster, namespace, name, 12)
        assert record.env["GPUSHARE_CARD"] == (FIRST, SECOND)[index]
        assert (record.env["GCU_VISIBLE"], record.env["ENFLAME_LOG"]) == (str(index), "1")
        assert "NVIDIA_VISIBLE_DEVICES" not in record.env
        assert record.devices == (
            HostPath("/dev/zero", "/dev/gcuctl", read_only=False),
            HostPath("/dev/null", f"/dev/gcu{index}", read_only=False),
        )
        assert HostPath(FOLDER, "/opt/enflame", read_only=True) in record.mounts
        assert names_in_dev(cluster, namespace, name).split() == [f"gcu{index}", "gcuctl"]
    await_agreement(cluster, namespace)


def test_with_cdi_the_runtime_gets_a_qualified_name(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    product.apply(inventory_policy_body(injection="CDI", cdiKind="enflame.com/gcu"))
    product.await_ready("default")
    try:
        record = run(cluster, namespace, "a", 4)
        assert record.cdi_devices == (f"enflame.com/gcu={record.env['GPUSHARE_CARD']}",)
        assert record.devices == ()
        await_agreement(cluster, namespace)
    finally:
        product.apply(inventory_policy_body(injection="Environment"))
        product.await_ready("default")


def test_a_changed_file_is_followed_and_a_broken_one_harms_nobody(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    record = run(cluster, namespace, "a", 4)
    held = record.env["GPUSHARE_CARD"]
    write(cluster, "inventory.yaml", inventory(card(0), card(1), card(2)))
    product.share_node(NODE, lambda it: uuids(it) == [FIRST, SECOND, THIRD], what="three cards")

    write(cluster, "inventory.yaml", "cards:\n- uuid: [")
    told = product.share_node(
        NODE,
        lambda it: condition(it, "CardsHealthy").get("reason") == "InventoryInvalid",
        what="the condition names the line",
    )
    assert "inventory.yaml: line 2: not YAML" in condition(told, "CardsHealthy")["message"]
    assert run(cluster, namespace, "b", 4).env["GPUSHARE_CARD"] == held, "the last good one stays in force"

    others = [index for index, uuid in enumerate((FIRST, SECOND)) if uuid != held]
    write(cluster, "inventory.yaml", inventory(*map(card, others)))
    gone = product.share_node(
        NODE,
        lambda it: "the card is gone" in condition(it, "CardsHealthy").get("message", ""),
        what="the pods' card is gone",
    )
    (kept,) = (card for card in gone["status"]["cards"] if card["uuid"] == held)
    assert (kept["allocatedUnits"], kept["health"]) == (8, "Unhealthy")
    write(cluster, "inventory.yaml", inventory(card(0), card(1), card(2)))
    product.share_node(NODE, lambda it: condition(it, "CardsHealthy")["status"] == "True", what="it is back")
    await_agreement(cluster, namespace)


def test_a_card_that_is_sick_by_the_health_command_gets_nobody_until_it_is_well(
    cluster: LocalCluster, product: Product, namespace: str
) -> None:
    write(cluster, "sick", FIRST)
    sick = product.share_node(
        NODE, lambda it: it["status"]["cards"][0]["health"] == "Unhealthy", what="the sick card"
    )
    assert sick["status"]["cards"][0]["healthReason"].startswith("too hot")
    assert run(cluster, namespace, "a", 4).env["GPUSHARE_CARD"] == SECOND
    write(cluster, "sick", "")
    product.share_node(NODE, lambda it: condition(it, "CardsHealthy")["status"] == "True", what="all well")
