"""What nodes show of their policy's dialect on a real cluster, beside what is the administrator's."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.e2e.observe import NODES, Json, condition, get, watch_until
from tests.e2e.product import Product, named, policy
from tests.e2e.test_dialect_scenarios import inspect, run
from tests.e2e.workloads import pod
from tests.fakes.replaced_tools import CardUse, read_aliyun_inspect, read_gcu_inspect

from gpushare_core.dialects.table import DIALECTS
from gpushare_localcluster.cluster import LocalCluster

pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("two_dialects")]

SPEAKING = {"gpu-1": "aliyun.com", "gpu-2": "enflame.com"}
CARDS = 4
THEIRS = {"enflame.com/gcushare": "administrators"}
LABELS = {key for dialect in DIALECTS.values() for key in dialect.node_labels} | {"gpushare.io/dialect"}
COUNTS = {dialect.count_resource for dialect in DIALECTS.values()} - {""}


def speaking(node: str, dialect: str) -> Json:
    body = policy(f"speaks-on-{node}", nodes=[node], cards=CARDS)
    body["spec"]["dialect"] = dialect
    return body


def shown(node: Json) -> Any:
    """What of dialects a node shows: labels, numbers of cards in capacity and allocatable."""
    labels = {key: value for key, value in node["metadata"]["labels"].items() if key in LABELS}
    amounts = [
        {name: amount for name, amount in node["status"][part].items() if name in COUNTS}
        for part in ("capacity", "allocatable")
    ]
    return labels, *amounts


def all_shown(nodes: Sequence[Json]) -> dict[str, Any]:
    return {node["metadata"]["name"]: shown(node) for node in nodes}


def await_shown(cluster: LocalCluster, node: str, dialect: str, *, labels: dict[str, str]) -> None:
    counts = dict.fromkeys({DIALECTS[dialect].count_resource} - {""}, str(CARDS))
    expected = ({"gpushare.io/dialect": dialect, **labels}, counts, counts)
    watch_until(
        cluster,
        NODES,
        lambda nodes: all_shown(nodes).get(node) == expected,
        what=f"{node} shows {expected}",
        describe=lambda nodes: all_shown(nodes)[node],
    )


def heartbeat(node: Json) -> str:
    return str(condition(node, "Ready").get("lastHeartbeatTime", ""))


def shown_by_speakers(cluster: LocalCluster) -> dict[str, Any]:
    """Other nodes may show a zero for five minutes after the policy of an earlier test has gone."""
    return {node: of for node, of in all_shown(get(cluster, NODES)["items"]).items() if node in SPEAKING}


@pytest.fixture(scope="module")
def two_dialects(cluster: LocalCluster, product: Product) -> Iterator[None]:
    """Two policies; on the second one's node the administrator has set the label of its dialect before."""
    ((key, value),) = THEIRS.items()
    cluster.kubectl("label", "node", "gpu-2", f"{key}={value}")
    before = shown_by_speakers(cluster)
    for node, dialect in SPEAKING.items():
        product.apply(speaking(node, dialect))
    for node in SPEAKING:
        product.await_ready(f"speaks-on-{node}")
    yield
    # At once: one after the other the scheduler would be edited for those that are left, and then restored.
    cluster.kubectl("delete", "gpusharepolicy", *(f"speaks-on-{node}" for node in SPEAKING), "--timeout=240s")
    assert shown_by_speakers(cluster) == before
    cluster.kubectl("label", "node", "gpu-2", f"{key}-")


def test_labels_and_numbers_of_cards_are_shown_and_the_administrators_label_stays(
    cluster: LocalCluster,
) -> None:
    await_shown(cluster, "gpu-1", "aliyun.com", labels={"gpushare": "true"})
    await_shown(cluster, "gpu-2", "enflame.com", labels=THEIRS)
    print(cluster.kubectl("get", "gpushare", "-o", "wide"))


def test_the_scheduler_is_connected_for_the_names_of_both(cluster: LocalCluster) -> None:
    runs = get(cluster, "/apis/batch/v1/namespaces/gpushare-system/jobs")["items"]
    last = max(runs, key=lambda pod: int(pod["metadata"]["labels"]["gpushare.io/sequence"]))
    args = last["spec"]["template"]["spec"]["containers"][0]["args"]
    assert {"aliyun.com/gpu-mem", "enflame.com/gcu-memory"} <= set(args)
    assert "nvidia.com/gpu" not in args


def test_a_restart_of_the_kubelet_changes_nothing_of_it(cluster: LocalCluster) -> None:
    before = heartbeat(get(cluster, f"{NODES}/gpu-1"))
    cluster.restart_kubelet("gpu-1")
    watch_until(
        cluster,
        NODES,
        lambda nodes: any(named(node, "gpu-1") and heartbeat(node) != before for node in nodes),
        what="the new kubelet has written the node's status",
        describe=lambda nodes: [heartbeat(node) for node in nodes],
    )
    cluster.wait_ready()
    await_shown(cluster, "gpu-1", "aliyun.com", labels={"gpushare": "true"})


def test_numbers_of_cards_follow_the_cards(cluster: LocalCluster, product: Product) -> None:
    fewer = speaking("gpu-1", "aliyun.com")
    fewer["spec"]["nodes"][0]["devices"]["simulated"][0]["count"] = CARDS - 1
    product.apply(fewer)
    watch_until(
        cluster,
        NODES,
        lambda nodes: all_shown(nodes)["gpu-1"][1:] == ({"aliyun.com/gpu-count": str(CARDS - 1)},) * 2,
        what="a card less is shown",
        describe=lambda nodes: all_shown(nodes)["gpu-1"],
    )
    product.apply(speaking("gpu-1", "aliyun.com"))
    await_shown(cluster, "gpu-1", "aliyun.com", labels={"gpushare": "true"})


def test_one_extender_serves_both(cluster: LocalCluster, namespace: str) -> None:
    """Each system's tool sees the nodes of its dialect only."""
    for node, dialect in SPEAKING.items():
        name = f"pod-{node}"
        found = run(
            cluster, namespace, name, pod(name, {"main": 4}, resource=DIALECTS[dialect].memory_resource)
        )
        assert found["spec"]["nodeName"] == node
    idle = {index: CardUse(16, 0, {}) for index in range(1, CARDS)}
    aliyun = read_aliyun_inspect(inspect(cluster, "/gpushare-scheduler/inspect"))
    gcu = read_gcu_inspect(inspect(cluster, "/gcushare-scheduler/inspect"))
    assert aliyun == {"gpu-1": {0: CardUse(16, 4, {"pod-gpu-1": 4}), **idle}}
    assert gcu == {"gpu-2": {0: CardUse(16, 4, {"pod-gpu-2": 4}), **idle}}
