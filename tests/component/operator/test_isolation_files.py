"""Files that containers were given to keep them to their units: from what plugins say in their Leases to what
the operator leaves running for them."""

from collections.abc import Callable, Sequence

import pytest
from tests.fakes.operator_cluster import DAEMON_SETS, NAMESPACE, Cluster, Operator, converge

from gpushare_core.api.plugin_heartbeat import heartbeat_lease, isolation_files
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_operator.reconcile import HEARTBEATS

EVENTS = paths.events("default")
HOOK: Json = {
    "names": ["gpu-1"],
    "mode": "Memory",
    "devices": {"source": "NVML"},
    "isolation": {"memory": "Hook"},
}
NONE: Json = {**HOOK, "isolation": {"memory": "None"}}


async def isolating() -> tuple[Cluster, Operator]:
    cluster = Cluster()
    cluster.add_node("cp", control_plane=True)
    cluster.add_node("gpu-1")
    cluster.add_policy("default", HOOK)
    return cluster, await converge(cluster)


async def say(cluster: Cluster, operator: Operator, pods: Sequence[str] | None) -> None:
    """The plugin of gpu-1 says which pods need files there; None: no files are there. The operator works
    until it has nothing to do."""
    files = None if pods is None else isolation_files(pods)
    lease = heartbeat_lease("gpu-1", "uid", operator.now, files=files)
    cluster.api.put(paths.leases(NAMESPACE), lease)
    await operator.work(HEARTBEATS)
    await converge(cluster, operator)


def has_folder(cluster: Cluster, policy: str = "default") -> bool:
    daemon_set = cluster.api.of(DAEMON_SETS)[f"gpushare-plugin-{policy}"]
    (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
    return "--isolation-folder" in container["args"]


def ready(cluster: Cluster) -> str:
    conditions = cluster.api.of(paths.POLICIES)["default"]["status"]["conditions"]
    return next(str(each["message"]) for each in conditions if each["type"] == "Ready")


def asks_for_none(cluster: Cluster) -> None:
    cluster.api.change(paths.POLICIES, "default", {"spec": {"nodes": [NONE]}})


def is_deleted(cluster: Cluster) -> None:
    cluster.delete_policy("default")


async def test_a_policy_that_asks_for_isolation_no_more_keeps_the_folder_until_it_is_empty() -> None:
    cluster, operator = await isolating()
    assert has_folder(cluster)
    await say(cluster, operator, ["default/a"])
    cluster.api.change(paths.POLICIES, "default", {"spec": {"nodes": [NONE]}})
    await converge(cluster, operator)
    assert has_folder(cluster)
    after_a_restart = await converge(cluster, Operator(cluster, now=operator.now))
    assert has_folder(cluster), "before it has read the Leases"
    await say(cluster, after_a_restart, None)
    assert not has_folder(cluster)


@pytest.mark.parametrize("change", [asks_for_none, is_deleted])
async def test_files_since_the_last_look_at_leases_count(change: Callable[[Cluster], None]) -> None:
    """The policy asked for them for some seconds only."""
    cluster, operator = await isolating()
    await operator.work(HEARTBEATS)
    needed = heartbeat_lease("gpu-1", "uid", operator.now, files=isolation_files(["default/a"]))
    cluster.api.put(paths.leases(NAMESPACE), needed)
    change(cluster)
    await converge(cluster, operator)
    assert has_folder(cluster)
    await say(cluster, operator, None)
    assert "gpushare-plugin-default" not in cluster.api.of(DAEMON_SETS) or not has_folder(cluster)


async def test_a_deleted_policy_waits_for_the_pods_that_need_files_and_names_them() -> None:
    cluster, operator = await isolating()
    await say(cluster, operator, ["default/a", "team/b"])
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert "need until they end" in ready(cluster)
    assert "default/a, team/b" in ready(cluster)
    assert cluster.edited == set(), "the scheduler is as before"
    assert has_folder(cluster)
    await say(cluster, operator, None)
    assert cluster.api.of(paths.POLICIES) == {}
    assert cluster.api.of(DAEMON_SETS) == {}


def is_labelled(cluster: Cluster) -> bool:
    return "gpushare.io/policy" in cluster.api.of(paths.NODES)["gpu-1"]["metadata"]["labels"]


async def test_a_node_that_shares_no_longer_keeps_its_plugin_while_pods_need_files() -> None:
    cluster, operator = await isolating()
    await say(cluster, operator, ["default/a"])
    cluster.api.change(paths.POLICIES, "default", {"spec": {"nodes": [{**HOOK, "mode": "Off"}]}})
    await converge(cluster, operator)
    assert cluster.api.of(paths.SHARE_NODES) == {}
    assert (is_labelled(cluster), has_folder(cluster)) == (True, True)
    await say(cluster, operator, None)
    assert not is_labelled(cluster)


async def test_a_node_that_goes_to_another_policy_gets_that_ones_plugin_at_once() -> None:
    cluster, operator = await isolating()
    await say(cluster, operator, ["default/a"])
    cluster.api.change(paths.POLICIES, "default", {"spec": {"nodes": [{**HOOK, "mode": "Off"}]}})
    cluster.add_policy("other", NONE)
    await converge(cluster, operator)
    assert cluster.api.of(paths.NODES)["gpu-1"]["metadata"]["labels"]["gpushare.io/policy"] == "other"
    assert has_folder(cluster, "other"), "files of the former policy are there"


async def test_people_may_leave_the_files_and_are_told_where_they_are() -> None:
    cluster, operator = await isolating()
    await say(cluster, operator, ["default/a"])
    cluster.delete_policy("default")
    await converge(cluster, operator)
    leave = {"metadata": {"annotations": {"gpushare.io/leave-isolation-files": "true"}}}
    cluster.api.change(paths.POLICIES, "default", leave)
    await converge(cluster, operator)
    assert cluster.api.of(paths.POLICIES) == {}
    (note,) = [
        event["note"] for event in cluster.api.of(EVENTS).values() if event["reason"] == "IsolationFilesLeft"
    ]
    assert note.startswith("files of isolation stay on gpu-1, which pods default/a need")


async def test_a_policy_without_isolation_waits_for_no_lease() -> None:
    cluster = Cluster()
    cluster.add_node("gpu-1")
    cluster.add_policy("default", NONE)
    operator = await converge(cluster)
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert cluster.api.of(paths.POLICIES) == {}
