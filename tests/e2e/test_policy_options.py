"""What a policy asks of logs and of nodes that are just starting, while everything goes on running."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.e2e.observe import NODES, Json, watch_until
from tests.e2e.product import SYSTEM, Product, named, policy

from gpushare_core.api.names import STARTUP_TAINT
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.connected]

FOLDER = "/var/log/our-gpus/share"
LOG = f"{FOLDER}/gpushare-plugin.log"
OTHER = "example.com/other"


def asking(**spec: Any) -> Json:
    body = policy("default", nodes=["gpu-1"])
    return {**body, "spec": {**body["spec"], **spec}}


@pytest.fixture(scope="module", autouse=True)
def in_force(product: Product) -> Iterator[None]:
    """The policy on a node that is still starting, and already closed to others for another reason."""
    taints = [f"{key}=:NoSchedule" for key in (STARTUP_TAINT, OTHER)]
    product.cluster.kubectl("taint", "node", "gpu-1", *taints)
    asked = asking(startupTaint="Remove", plugin={"logLevel": "debug", "logFolder": FOLDER})
    try:
        with product.in_force(asked):
            yield
    finally:
        product.cluster.kubectl("taint", "node", "gpu-1", f"{OTHER}:NoSchedule-")


def keys_of_taints(nodes: Any) -> list[str]:
    return [
        taint["key"] for node in nodes if named(node, "gpu-1") for taint in node["spec"].get("taints", ())
    ]


def test_the_startup_taint_goes_when_the_node_offers_its_cards_and_others_stay(cluster: LocalCluster) -> None:
    watch_until(
        cluster,
        NODES,
        lambda nodes: keys_of_taints(nodes) == [OTHER],
        what="the startup taint is gone, the other one stays",
        describe=keys_of_taints,
    )


def test_the_plugins_log_is_kept_on_its_host(cluster: LocalCluster) -> None:
    path = cluster.node_path("gpu-1", LOG)
    wait_until("the log has lines of level debug", lambda: '"debug"' in path.read_text())
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["node"] for line in lines} == {"gpu-1"}
    assert not cluster.node_path("gpu-1", "/var/log/our-gpus").joinpath("gpushare-plugin.log").exists()


def test_the_extenders_log_is_kept_on_its_host_and_outlives_its_pod(
    cluster: LocalCluster, product: Product
) -> None:
    plugin, extender = {"logLevel": "debug", "logFolder": FOLDER}, {"logFolder": FOLDER}
    product.apply(asking(startupTaint="Remove", plugin=plugin, extender=extender))
    path = cluster.node_path("control-plane-1", f"{FOLDER}/extender/gpushare-extender.log")
    wait_until("the extender writes there", lambda: path.exists() and path.read_text() != "")
    assert (path.stat().st_uid, path.parent.stat().st_gid) == (65532, 65532), "it is not root"
    before = path.read_text()
    first = json.loads(before.splitlines()[0])
    assert first["message"].startswith("gpushare-extender 0.1.0 starts")
    cluster.kubectl("delete", "pod", "-n", SYSTEM, "-l", "app.kubernetes.io/component=extender")
    wait_until(
        "the next one goes on there", lambda: path.read_text().count(" starts") > before.count(" starts")
    )
    assert path.read_text().startswith(before)
    product.await_ready("default")


def test_the_level_of_every_program_follows_the_policy_without_a_restart(
    cluster: LocalCluster, product: Product
) -> None:
    before = restarts(cluster)
    debug = {"logLevel": "debug"}
    plugin = {**debug, "logFolder": FOLDER}
    extender = {**debug, "logFolder": FOLDER}
    product.apply(asking(startupTaint="Remove", plugin=plugin, extender=extender, operator=debug))
    for program in ("operator", "extender"):
        await_debug(cluster, program)
    assert restarts(cluster) == before


def await_debug(cluster: LocalCluster, program: str) -> None:
    wait_until(
        f"the {program} writes from level debug upwards",
        lambda: "the log level is now debug" in log_of(cluster, program),
        explain=lambda: log_of(cluster, program)[-2000:],
    )


def log_of(cluster: LocalCluster, program: str) -> str:
    selector = f"app.kubernetes.io/component={program}"
    return cluster.kubectl("logs", "-n", SYSTEM, "-l", selector, "--tail=-1")


def restarts(cluster: LocalCluster) -> str:
    """Of all pods but those of Jobs, which are deleted some time after they have ended."""
    return cluster.kubectl(
        "get",
        "pods",
        "-n",
        SYSTEM,
        "-l",
        "!batch.kubernetes.io/job-name",
        "-o",
        "jsonpath={range .items[*]}{.metadata.uid}{.status.containerStatuses[*].restartCount}\n{end}",
    )


@pytest.mark.parametrize("folder", ["/etc", "/var/log", "/var/log/../lib", "relative", "/var/log/a b"])
def test_a_folder_elsewhere_is_refused(cluster: LocalCluster, folder: str) -> None:
    with pytest.raises(Exception, match="logFolder must be a folder below /var/log"):
        cluster.kubectl(
            "apply", "--dry-run=server", "-f", "-", stdin=json.dumps(asking(plugin={"logFolder": folder}))
        )
