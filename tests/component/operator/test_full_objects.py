"""Others' objects that have no room for what the operator adds: people learn of it, and nobody else pays.

The server refuses what Kubernetes refuses: annotations of more than 256 KiB, a ConfigMap of more than 1 MiB,
and any object that etcd does not take.
"""

import json
from contextlib import suppress
from datetime import timedelta

import pytest
from tests.fakes.operator_cluster import Cluster, Operator, converge
from tests.samples.operator import VOLCANO_CONFIG

from gpushare_core.api.names import POLICY_LABEL, STARTUP_TAINT
from gpushare_core.dialects.annotation_room import MAX_BYTES, size_of
from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_core.text.json_object import Json
from gpushare_operator.backends.volcano.config_edit import enable
from gpushare_operator.reconcile import SCHEDULERS

CARDS = {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]}
UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"
CONFIG_MAPS = paths.config_maps("volcano-system")
CONFIG, KEY = "volcano-scheduler-configmap", "volcano-scheduler.conf"
NOTHING = "no fault is known"
MAX_CONFIG = 2**20
MAX_OBJECT = 3 * 2**19
"""Bytes that etcd takes."""


def refuse_what_is_too_large(collection: str, body: Json) -> None:
    size = size_of(body["metadata"].get("annotations") or {})
    if size > MAX_BYTES:
        message = f"metadata.annotations: Too long: may not be more than {MAX_BYTES} bytes"
        raise ApiError(422, "Invalid", message)
    data = size_of(body.get("data") or {}) if collection == CONFIG_MAPS else 0
    if data > MAX_CONFIG:
        raise ApiError(422, "Invalid", f"Too long: may not be more than {MAX_CONFIG} bytes")
    if len(json.dumps(body)) > MAX_OBJECT:
        raise ApiError(413, "RequestEntityTooLarge", "etcdserver: request is too large")


@pytest.fixture
def cluster() -> Cluster:
    """Two workers in one policy, of a dialect that writes on nodes, and a third in another policy."""
    made = Cluster()
    for name in ("gpu-1", "gpu-2", "gpu-3"):
        made.add_node(name)
    made.add_node("cp", control_plane=True)
    made.add_policy("default", {"names": ["gpu-1", "gpu-2"], "devices": CARDS}, dialect="volcano.sh")
    made.add_policy("other", {"names": ["gpu-3"], "devices": CARDS})
    made.api.rewrite = refuse_what_is_too_large
    return made


def node(cluster: Cluster, name: str) -> Json:
    return cluster.api.of(paths.NODES)[name]


def fill(cluster: Cluster, name: str, *, room: int = 10) -> None:
    """The annotations of a node."""
    filler = "x" * (MAX_BYTES - len("filler") - room)
    cluster.api.change(paths.NODES, name, {"metadata": {"annotations": {"filler": filler}}})


def fill_whole(held: Json) -> None:
    """An object, up to what etcd takes of it."""
    held["metadata"]["selfLink"] = ""
    held["metadata"]["selfLink"] = "x" * (MAX_OBJECT - len(json.dumps(held)))


def sicken(cluster: Cluster, name: str) -> None:
    """The plugin reports that one of the node's cards is sick."""
    cards = [{"uuid": f"GPU-{index}", "index": index, "health": "Unhealthy"} for index in range(2)]
    cluster.api.change(paths.SHARE_NODES, name, {"status": {"cards": cards}})


def degraded(cluster: Cluster, policy: str = "default") -> str:
    conditions = cluster.api.of(paths.POLICIES)[policy].get("status", {}).get("conditions", ())
    return next((condition["message"] for condition in conditions if condition["type"] == "Degraded"), "")


async def minutes(operator: Operator, count: int) -> None:
    """Lets so much time pass, in which the operator works every second, more often than its queue has it."""
    for _ in range(60 * count):
        operator.now += timedelta(seconds=1)
        for key in (*operator.work_keys(), *({SCHEDULERS} & operator.asked)):
            operator.asked.discard(key)
            with suppress(ApiError):  # of a status that could not be written, which the queue tries again
                await operator.work(key)


class Tries:
    """Counts writes to one path, whatever becomes of them."""

    def __init__(self, cluster: Cluster, path: str) -> None:
        self.count, self._path = 0, path
        cluster.api.refuse = self._note

    def _note(self, write: str) -> bool:
        self.count += write == f"merge {self._path}"
        return False


async def test_a_node_without_room_for_an_annotation_is_named_and_holds_up_no_other(cluster: Cluster) -> None:
    operator = await converge(cluster)
    fill(cluster, "gpu-1")
    for name in ("gpu-1", "gpu-2"):
        sicken(cluster, name)
    await operator.resync()
    tries = Tries(cluster, f"{paths.NODES}/gpu-1")
    await minutes(operator, 3)
    assert node(cluster, "gpu-2")["metadata"]["annotations"][UNHEALTHY] == "0,1"
    assert "node gpu-1" in degraded(cluster)
    assert f"not be more than {MAX_BYTES} bytes" in degraded(cluster)
    assert 0 < tries.count <= 12
    assert degraded(cluster, "other") == NOTHING
    cluster.api.change(paths.NODES, "gpu-1", {"metadata": {"annotations": {"filler": None}}})
    await converge(cluster, operator)
    assert node(cluster, "gpu-1")["metadata"]["annotations"][UNHEALTHY] == "0,1"
    assert str(MAX_BYTES) not in degraded(cluster)


async def test_a_full_node_is_given_back_whole(cluster: Cluster) -> None:
    """What is taken away always fits."""
    operator = await converge(cluster)
    sicken(cluster, "gpu-1")
    await converge(cluster, operator)
    fill(cluster, "gpu-1", room=len(UNHEALTHY) + len("0,1"))
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert node(cluster, "gpu-1")["metadata"]["annotations"].keys() == {"filler"}
    assert POLICY_LABEL not in node(cluster, "gpu-1")["metadata"]["labels"]
    assert "default" not in cluster.api.of(paths.POLICIES)


async def test_a_full_node_loses_its_startup_taint(cluster: Cluster) -> None:
    taint = {"key": STARTUP_TAINT, "effect": "NoSchedule"}
    cluster.api.change(paths.NODES, "gpu-3", {"spec": {"taints": [taint]}})
    fill(cluster, "gpu-3", room=0)
    cluster.api.change(paths.POLICIES, "other", {"spec": {"startupTaint": "Remove"}})
    await converge(cluster)
    assert node(cluster, "gpu-3")["spec"]["taints"] == []


@pytest.mark.parametrize(
    ("collection", "name"),
    [
        pytest.param(paths.NODES, "gpu-1", id="labels of a node"),
        pytest.param(paths.POLICIES, "default", id="finalizer of a policy"),
    ],
)
async def test_an_object_that_etcd_takes_no_more_of_holds_up_no_other(
    cluster: Cluster, collection: str, name: str
) -> None:
    fill_whole(cluster.api.of(collection)[name])
    operator = Operator(cluster)
    await operator.resync()
    tries = Tries(cluster, f"{collection}/{name}")
    await minutes(operator, 3)
    assert 0 < tries.count <= 12
    assert POLICY_LABEL in node(cluster, "gpu-3")["metadata"]["labels"], "another policy is in force"


async def test_the_status_of_a_node_that_etcd_takes_no_more_of_is_named(cluster: Cluster) -> None:
    """The number of cards, which its dialect shows there."""
    operator = await converge(cluster)
    status = f"{paths.NODES}/gpu-1/status"
    cluster.api.change(paths.NODES, "gpu-1", {"status": {"capacity": {"volcano.sh/gpu-number": None}}})
    fill_whole(node(cluster, "gpu-1"))
    await operator.resync()
    tries = Tries(cluster, status)
    await minutes(operator, 3)
    assert "node gpu-1" in degraded(cluster)
    assert "request is too large" in degraded(cluster)
    assert 0 < tries.count <= 12
    assert degraded(cluster, "other") == NOTHING


async def test_a_full_config_map_of_volcano_is_named_and_stays_as_it_is(cluster: Cluster) -> None:
    filler = "x" * (MAX_CONFIG - len(KEY) - len(VOLCANO_CONFIG) - len("other") - 10)
    data = {KEY: VOLCANO_CONFIG, "other": filler}
    cluster.api.put(CONFIG_MAPS, {"metadata": {"name": CONFIG}, "data": data})
    cluster.api.change(paths.POLICIES, "default", {"spec": {"scheduler": {"backend": "Volcano"}}})
    operator = Operator(cluster)
    await operator.resync()
    tries = Tries(cluster, f"{CONFIG_MAPS}/{CONFIG}")
    await minutes(operator, 3)
    assert f"ConfigMap volcano-system/{CONFIG}" in degraded(cluster)
    assert f"not be more than {MAX_CONFIG} bytes" in degraded(cluster)
    assert 0 < tries.count <= 12
    assert cluster.api.of(CONFIG_MAPS)[CONFIG]["data"] == data
    cluster.api.change(CONFIG_MAPS, CONFIG, {"data": {"other": "x"}})
    await converge(cluster, operator)
    assert cluster.api.of(CONFIG_MAPS)[CONFIG]["data"][KEY] == enable(VOLCANO_CONFIG).text
