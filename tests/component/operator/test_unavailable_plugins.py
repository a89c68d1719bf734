"""An unavailable plugin, from its Lease to what policy and GPUShareNode report."""

from datetime import UTC, datetime, timedelta
from functools import partial

from tests.component.operator.test_app import CARDS
from tests.fakes.operator_cluster import NAMESPACE, NOON, Cluster, Operator, converge

from gpushare_core.api.plugin_heartbeat import SILENT_SECONDS, heartbeat_lease
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_operator.reconcile import HEARTBEATS, HEARTBEATS_SECONDS

LEASES = paths.leases(NAMESPACE)
PODS = paths.pods(NAMESPACE)


async def sharing() -> tuple[Cluster, Operator]:
    cluster = Cluster()
    cluster.add_node("cp", control_plane=True)
    for name in ("gpu-1", "gpu-2"):
        cluster.add_node(name)
    cluster.add_policy("default", {"names": ["gpu-1", "gpu-2"], "mode": "Memory", "devices": CARDS})
    return cluster, await converge(cluster)


async def hear(cluster: Cluster, operator: Operator, **ages: float) -> None:
    """The operator looks; ``ages``: seconds since the renewals."""
    for name, seconds in ages.items():
        node = name.replace("_", "-")
        renewed = operator.now - timedelta(seconds=seconds)
        cluster.api.put(LEASES, heartbeat_lease(node, "uid", renewed))
    assert await operator.reconciler.work(HEARTBEATS) == HEARTBEATS_SECONDS
    await operator.work("default")


def registered(cluster: Cluster, node: str) -> tuple[str, str]:
    conditions = cluster.api.of(paths.SHARE_NODES)[node]["status"]["conditions"]
    (found,) = [condition for condition in conditions if condition["type"] == "Registered"]
    return found["status"], found["reason"]


def ready(cluster: Cluster) -> Json:
    policy = cluster.api.of(paths.POLICIES)["default"]
    found: Json = next(
        condition for condition in policy["status"]["conditions"] if condition["type"] == "Ready"
    )
    return found


async def test_an_unavailable_plugin_is_reported_on_node_and_policy_until_it_is_back() -> None:
    cluster, operator = await sharing()
    await hear(cluster, operator, gpu_1=1, gpu_2=1)
    assert ready(cluster)["status"] == "True"
    for seconds in range(0, SILENT_SECONDS + 16, 15):
        operator.now += timedelta(seconds=15)
        operator.reconciler.heartbeats.clock = partial(float, 10**9 + seconds)
        await hear(cluster, operator, gpu_2=1)
    assert registered(cluster, "gpu-1") == ("Unknown", "PluginSilent")
    assert registered(cluster, "gpu-2") == ("True", "Registered")
    assert ready(cluster)["status"] == "False"
    assert "gpu-1: its plugin last reported" in ready(cluster)["message"]
    status = cluster.api.of(paths.POLICIES)["default"]["status"]
    assert status["nodes"]["summary"] == "1/2"

    cluster._register("gpu-1")
    await hear(cluster, operator, gpu_1=0)
    await converge(cluster, operator)
    assert registered(cluster, "gpu-1") == ("True", "Registered")
    assert ready(cluster)["status"] == "True"


async def test_a_plugin_without_a_lease_is_believed() -> None:
    """It is of an earlier version."""
    cluster, operator = await sharing()
    await hear(cluster, operator, gpu_2=SILENT_SECONDS - 1)
    assert registered(cluster, "gpu-1") == ("True", "Registered")
    assert ready(cluster)["status"] == "True"


async def test_a_plugin_of_an_earlier_version_is_believed_though_a_later_one_left_its_lease() -> None:
    """Somebody went back: the Lease stays with the GPUShareNode, and nobody renews it."""
    cluster, operator = await sharing()
    await hear(cluster, operator, gpu_1=SILENT_SECONDS)
    pod = next(
        pod for pod in cluster.api.of(PODS).values() if pod["metadata"]["name"] == "plugin-default-gpu-1"
    )
    running = {"startedAt": rfc3339(operator.now)}
    statuses = [{"name": "plugin", "state": {"running": running}}]
    cluster.api.put(PODS, {**pod, "status": {**pod["status"], "containerStatuses": statuses}})
    await operator.resync()
    for seconds in range(0, 3 * SILENT_SECONDS, 15):
        operator.reconciler.heartbeats.clock = partial(float, 10**9 + seconds)
        await hear(cluster, operator)
    assert registered(cluster, "gpu-1") == ("True", "Registered")


async def test_nothing_is_written_while_all_are_available() -> None:
    cluster, operator = await sharing()
    await hear(cluster, operator, gpu_1=1, gpu_2=1)
    cluster.api.writes.clear()
    operator.now += timedelta(seconds=15)
    await hear(cluster, operator, gpu_1=1, gpu_2=1)
    assert cluster.api.writes == []
    assert operator.now > NOON.astimezone(UTC) > datetime.min.replace(tzinfo=UTC)
