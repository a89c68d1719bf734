"""Backend KubeScheduler with engine Plugin, from the policy to its removal: rights, hosts, extender."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.fakes.operator_cluster import DAEMON_SETS, JOBS, NAMESPACE, Cluster, Operator, converge

from gpushare_core.kube import paths
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.kinds import SCHEDULER_PODS
from gpushare_operator.cluster.server import needed_rights
from gpushare_operator.reconcile import SCHEDULERS

RULE = {
    "names": ["gpu-1"],
    "mode": "Memory",
    "devices": {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]},
}


def cluster_with(version: str = "v1.36.3", **scheduler: str) -> Cluster:
    cluster = Cluster()
    cluster.serve(version)
    cluster.add_node("gpu-1")
    for name in ("cp-1", "cp-2"):
        cluster.add_node(name, control_plane=True)
    cluster.add_policy("default", RULE, scheduler=scheduler)
    return cluster


def status(cluster: Cluster) -> Any:
    return cluster.api.of(paths.POLICIES)["default"]["status"]


def said(cluster: Cluster) -> str:
    (found,) = [each for each in status(cluster)["conditions"] if each["type"] == "SchedulerConfigured"]
    return f"{found['status']} {found['reason']}: {found['message']}"


def last_engines(cluster: Cluster) -> set[str]:
    """Of the last run on each host, as hostctl is told."""
    jobs = cluster.api.of(JOBS).values()
    last = {
        job["metadata"]["annotations"]["gpushare.io/node"]: job["spec"]["template"]["spec"]["containers"][0][
            "args"
        ]
        for job in sorted(jobs, key=lambda job: int(job["metadata"]["name"].rpartition("-")[2]))
    }
    return {"Plugin" if "--scheduler-image" in arguments else "Extender" for arguments in last.values()}


async def looked_again(cluster: Cluster, operator: Operator) -> None:
    await operator.work(SCHEDULERS)
    await converge(cluster, operator)


async def test_from_the_policy_to_its_removal_no_extender_runs() -> None:
    cluster = cluster_with(engine="Plugin")
    await converge(cluster)
    assert cluster.edited == {"cp-1", "cp-2"}
    assert said(cluster).startswith("True Configured: kube-scheduler (gpushare-scheduler:")
    assert said(cluster).endswith("-1.36, engine Plugin) places pods by cards on cp-1, cp-2")
    assert (status(cluster)["backend"], status(cluster)["engine"]) == ("KubeScheduler", "Plugin")
    assert "gpushare-extender" not in cluster.api.of(DAEMON_SETS)

    cluster.delete_policy("default")
    await converge(cluster)
    assert not any(cluster.traces().values()), cluster.traces()


async def test_both_ways_the_extender_is_there_for_every_kube_scheduler_that_calls_it() -> None:
    cluster = cluster_with()
    operator = await converge(cluster)
    assert "gpushare-extender" in cluster.api.of(DAEMON_SETS)

    cluster.api.change(paths.POLICIES, "default", {"spec": {"scheduler": {"engine": "Plugin"}}})
    await converge(cluster, operator)
    assert (last_engines(cluster), status(cluster)["engine"]) == ({"Plugin"}, "Plugin")
    assert "gpushare-extender" not in cluster.api.of(DAEMON_SETS)
    deleted = cluster.api.writes.index(f"delete {DAEMON_SETS}/gpushare-extender")
    made = [index for index, write in enumerate(cluster.api.writes) if write == f"create {JOBS}"]
    assert max(made) < deleted, "no run follows: none was left to change"

    cluster.api.change(paths.POLICIES, "default", {"spec": {"scheduler": {"engine": "Extender"}}})
    await converge(cluster, operator)
    assert (last_engines(cluster), status(cluster)["engine"]) == ({"Extender"}, "Extender")
    assert "gpushare-extender" in cluster.api.of(DAEMON_SETS)


@pytest.mark.parametrize("missing", needed_rights(NAMESPACE), ids=str)
async def test_no_host_is_edited_while_a_right_is_missing(missing: Json) -> None:
    cluster = cluster_with(engine="Plugin")
    cluster.api.may = lambda spec: spec["resourceAttributes"] != missing
    operator = await converge(cluster)
    assert cluster.edited == set()
    assert said(cluster).startswith("False RightsMissing: the user system:kube-scheduler lacks rights that")

    cluster.api.may = _allows_the_scheduler
    await looked_again(cluster, operator)
    assert cluster.edited == {"cp-1", "cp-2"}


def _allows_the_scheduler(spec: Json) -> bool:
    return bool(spec["user"] == "system:kube-scheduler")


async def test_an_operator_that_may_not_ask_says_what_to_apply() -> None:
    cluster = cluster_with(engine="Plugin")
    cluster.api.forbidden.add(paths.SUBJECT_REVIEWS)
    await converge(cluster)
    assert cluster.edited == set()
    assert said(cluster).endswith("kubectl apply -f manifests/kube-scheduler/rights.yaml")


@pytest.mark.parametrize(
    ("upgrade", "engine", "part"),
    [
        pytest.param("v1.37.1", "Plugin", "-1.37, engine Plugin)", id="to one that is built"),
        pytest.param("v1.38.0", "Plugin", "-1.37, engine Plugin)", id="to one after that"),
        pytest.param("v1.39.0", "Extender", "none for API servers of 1.39", id="too new"),
    ],
)
async def test_an_upgrade_of_the_server_is_followed(upgrade: str, engine: str, part: str) -> None:
    cluster = cluster_with(engine="Plugin")
    operator = await converge(cluster)
    cluster.serve(upgrade)
    await looked_again(cluster, operator)
    await looked_again(cluster, operator)
    assert last_engines(cluster) == {engine}
    assert status(cluster)["engine"] == engine
    assert part in said(cluster)


async def test_an_operator_that_starts_during_an_upgrade_edits_no_host_before_all_replicas_had_time() -> None:
    cluster = cluster_with(engine="Plugin")
    await converge(cluster)
    runs = set(cluster.api.of(JOBS))
    for name in ("cp-1", "cp-2"):
        cluster.api.put(SCHEDULER_PODS, static_pod(name, image=f"gpushare-scheduler:{VERSION}-1.36"))
    cluster.serve("v1.37.0")
    operator = Operator(cluster, now=cluster.now)
    await operator.resync()
    for minutes, is_edited in ((0, False), (4, False), (6, True)):
        operator.now = cluster.now + timedelta(minutes=minutes)
        await operator.work(SCHEDULERS)
        await operator.work("*")
        assert (set(cluster.api.of(JOBS)) != runs) is is_edited


def static_pod(host: str, *, image: str) -> Json:
    metadata = {"name": f"kube-scheduler-{host}", "labels": {"component": "kube-scheduler"}}
    metadata["annotations"] = {"kubernetes.io/config.mirror": "x"}
    command = ["kube-scheduler", "--config=/etc/kubernetes/gpushare/scheduler-config-0.yaml"]
    return {
        "metadata": metadata,
        "spec": {"nodeName": host, "containers": [{"command": command, "image": image}]},
    }


@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(lambda cluster: cluster.api.remove("", "version"), id="the server's version"),
        pytest.param(
            lambda cluster: setattr(cluster.api, "may", lambda _: False), id="the rights of kube-scheduler"
        ),
    ],
)
async def test_what_is_not_known_any_more_changes_no_host(lose: Callable[[Cluster], None]) -> None:
    cluster = cluster_with(engine="Plugin")
    operator = await converge(cluster)
    runs = set(cluster.api.of(JOBS))
    lose(cluster)
    await looked_again(cluster, operator)
    await looked_again(cluster, operator)
    assert set(cluster.api.of(JOBS)) == runs
    assert said(cluster).startswith("False ")
    assert status(cluster)["engine"] == "Plugin"
