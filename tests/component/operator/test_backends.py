"""Scheduler backends when things go wrong: the operator dies, others write meanwhile, the server refuses."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest
from tests.fakes.operator_cluster import (
    DAEMON_SETS,
    DEPLOYMENTS,
    NAMESPACE,
    Cluster,
    KilledError,
    Operator,
    converge,
)
from tests.samples.operator import VOLCANO_CONFIG

from gpushare_core.api.names import SCHEDULER_LABEL
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_operator.backends.volcano.config_edit import enable
from gpushare_operator.reconcile import SCHEDULERS

CARDS = {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]}
RULE = {"names": ["gpu-1"], "mode": "Memory", "devices": CARDS}
CONFIG_MAPS = paths.config_maps("volcano-system")
NAME = "volcano-scheduler-configmap"
PATH = f"{CONFIG_MAPS}/{NAME}"
KEY = "volcano-scheduler.conf"
BACKUPS = paths.config_maps(NAMESPACE)
ENABLED = enable(VOLCANO_CONFIG).text
THEIRS = VOLCANO_CONFIG + "# new\n"
BACKENDS = ("KubeScheduler", "Dedicated", "External", "Volcano")


def asked(backend: str) -> Json:
    dialect = {"dialect": "volcano.sh"} if backend == "Volcano" else {}
    return {"nodes": [RULE], "scheduler": {"backend": backend}, **dialect}


def cluster_with(backend: str = "Volcano") -> Cluster:
    """A worker, a control plane, Volcano, and one policy."""
    cluster = Cluster()
    cluster.serve("v1.36.3", "v1")
    cluster.add_node("gpu-1")
    cluster.add_node("cp", control_plane=True)
    put_config(cluster, VOLCANO_CONFIG)
    cluster.api.put(paths.POLICIES, {"metadata": {"name": "default"}, "spec": asked(backend)})
    return cluster


def put_config(cluster: Cluster, text: str) -> None:
    """As ``kubectl replace`` does."""
    cluster.api.of(CONFIG_MAPS).pop(NAME, None)
    cluster.api.put(CONFIG_MAPS, {"metadata": {"name": NAME}, "data": {KEY: text, "other": "x"}})


def config(cluster: Cluster) -> str:
    data = cluster.api.of(CONFIG_MAPS)[NAME]["data"]
    assert data["other"] == "x"
    return str(data[KEY])


def said(cluster: Cluster, type_: str = "SchedulerConfigured") -> str:
    conditions = cluster.api.of(paths.POLICIES)["default"]["status"]["conditions"]
    return next(
        f"{condition['reason']}: {condition['message']}"
        for condition in conditions
        if condition["type"] == type_
    )


def state(cluster: Cluster) -> Any:
    """What a backend has left anywhere."""
    nodes = cluster.api.of(paths.NODES)
    extender = cluster.api.of(DAEMON_SETS).get("gpushare-extender", {}).get("metadata", {})
    return {
        "config": config(cluster),
        "backup": sorted(cluster.api.of(BACKUPS)),
        "mark": "external" if nodes["cp"]["metadata"]["labels"].get(SCHEDULER_LABEL) == "external" else "",
        "edited": sorted(cluster.edited),
        "scheduler": sorted(cluster.api.of(DEPLOYMENTS)),
        "extender": extender.get("annotations", {}).get("gpushare.io/scheduler-backend", bool(extender)),
    }


UNTOUCHED = {
    "config": VOLCANO_CONFIG,
    "backup": [],
    "mark": "",
    "edited": [],
    "extender": False,
    "scheduler": [],
}
IN_FORCE = {
    "KubeScheduler": {**UNTOUCHED, "edited": ["cp"], "extender": True},
    "Dedicated": {**UNTOUCHED, "scheduler": ["gpushare-scheduler"]},
    "External": {**UNTOUCHED, "mark": "external", "extender": "External"},
    "Volcano": {**UNTOUCHED, "config": ENABLED, "backup": ["gpushare-volcano-backup"]},
}


@pytest.mark.parametrize("backend", BACKENDS)
async def test_it_comes_and_goes_without_a_trace(backend: str) -> None:
    cluster = cluster_with(backend)
    await converge(cluster)
    assert state(cluster) == IN_FORCE[backend]
    cluster.delete_policy("default")
    await converge(cluster)
    assert state(cluster) == UNTOUCHED
    assert cluster.api.of(paths.POLICIES) == {}


@pytest.mark.parametrize("former", BACKENDS)
@pytest.mark.parametrize("new", BACKENDS)
async def test_a_live_policy_moves(former: str, new: str) -> None:
    cluster = cluster_with(former)
    await converge(cluster)
    cluster.api.of(paths.POLICIES)["default"]["spec"].pop("dialect", None)
    cluster.api.change(paths.POLICIES, "default", {"spec": asked(new)})
    await converge(cluster)
    assert state(cluster) == IN_FORCE[new]
    assert list(cluster.api.of(paths.SHARE_NODES)) == ["gpu-1"], "its nodes stay shared"
    cluster.delete_policy("default")
    await converge(cluster)
    assert state(cluster) == UNTOUCHED


@pytest.mark.parametrize("new", ["KubeScheduler", "Dedicated", "External"])
def test_two_backends_are_never_connected_at_once(new: str) -> None:
    cluster = cluster_with("Volcano")
    asyncio.run(converge(cluster))
    seen: list[tuple[bool, bool]] = []

    def look(*_: Any) -> None:
        extender = "gpushare-extender" in cluster.api.of(DAEMON_SETS)
        seen.append((config(cluster) == ENABLED, extender or bool(cluster.api.of(DEPLOYMENTS))))

    cluster.api.on_change = look
    cluster.api.change(paths.POLICIES, "default", {"spec": asked(new)})
    asyncio.run(converge(cluster))
    assert (True, False) in seen
    assert (False, True) in seen
    assert (True, True) not in seen


@pytest.mark.parametrize("fuse", range(12))
async def test_an_operator_that_dies_anywhere_leaves_nothing(fuse: int) -> None:
    cluster = cluster_with()
    for _ in range(2):  # while it connects, and while it takes it back
        cluster.api.fuse = fuse
        with suppress(KilledError):  # it may have less to write
            await converge(cluster)
        cluster.api.fuse = None
        if cluster.api.of(paths.POLICIES):
            cluster.delete_policy("default")
    await converge(cluster)
    assert state(cluster) == UNTOUCHED


async def test_what_is_overwritten_is_edited_again_and_their_text_comes_back() -> None:
    cluster = cluster_with()
    operator = await converge(cluster)
    put_config(cluster, THEIRS)
    await operator.work(SCHEDULERS)
    await converge(cluster, operator)
    assert config(cluster) == enable(THEIRS).text
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert config(cluster) == THEIRS


@pytest.mark.parametrize(("backend", "seconds"), [("Volcano", 10), ("KubeScheduler", 30)])
async def test_how_often_it_is_looked_at(backend: str, seconds: float) -> None:
    operator = await converge(cluster_with(backend))
    assert await operator.reconciler.work(SCHEDULERS) == seconds


async def test_what_people_change_beside_our_part_stays() -> None:
    cluster = cluster_with()
    operator = await converge(cluster)
    put_config(cluster, ENABLED + "# new\n")
    writes = len(cluster.api.writes)
    await operator.work(SCHEDULERS)
    await converge(cluster, operator)
    assert not [write for write in cluster.api.writes[writes:] if "configmaps" in write]
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert config(cluster) == THEIRS


async def test_a_text_that_changes_just_before_the_edit_is_not_overwritten() -> None:
    cluster = cluster_with()

    def change_first(write: str) -> bool:
        if write == f"merge {PATH}" and config(cluster) == VOLCANO_CONFIG:
            put_config(cluster, THEIRS)
        return False

    cluster.api.refuse = change_first
    operator = await converge(cluster)
    await operator.work(SCHEDULERS)
    await converge(cluster, operator)
    assert config(cluster) == enable(THEIRS).text
    assert json.dumps(THEIRS) in json.dumps(cluster.api.of(BACKUPS)["gpushare-volcano-backup"]["data"])


async def test_a_server_that_refuses_is_named_and_asked_again() -> None:
    cluster = cluster_with()
    cluster.api.refuse = lambda write: write == f"merge {PATH}"
    operator = Operator(cluster)
    for _ in range(4):
        await operator.resync()
        for key in (SCHEDULERS, *reversed(operator.work_keys())):
            await operator.work(key)
    assert "edit ConfigMap volcano-system/volcano-scheduler-configmap: " in said(cluster, "Degraded")
    cluster.api.refuse = lambda _: False
    await converge(cluster, operator)
    assert config(cluster) == ENABLED


async def test_without_the_right_to_read_it_people_are_told_and_later_it_goes_on() -> None:
    cluster = cluster_with()
    cluster.api.forbidden.add(PATH)
    operator = await converge(cluster)
    assert said(cluster).startswith(
        "ConfigMapForbidden: ConfigMap volcano-system/volcano-scheduler-configmap"
    )
    cluster.api.forbidden.clear()
    await operator.work(SCHEDULERS)
    await converge(cluster, operator)
    assert config(cluster) == ENABLED


async def test_a_policy_waits_for_a_config_map_that_cannot_be_restored_until_people_decide() -> None:
    cluster = cluster_with()
    operator = await converge(cluster)
    put_config(cluster, "tiers: [")
    await operator.work(SCHEDULERS)
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert "RestoreFailed: ConfigMap volcano-system/volcano-scheduler-configmap cannot be restored" in said(
        cluster
    )
    cluster.api.remove(BACKUPS, "gpushare-volcano-backup")
    await converge(cluster, operator)
    assert cluster.api.of(paths.POLICIES) == {}
    assert config(cluster) == "tiers: ["


async def test_a_config_map_that_is_deleted_holds_up_nobody() -> None:
    cluster = cluster_with()
    operator = await converge(cluster)
    cluster.api.remove(CONFIG_MAPS, NAME)
    await operator.work(SCHEDULERS)
    await converge(cluster, operator)
    assert said(cluster).startswith("ConfigMapMissing")
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert cluster.api.of(paths.POLICIES) == {}
    assert cluster.api.of(BACKUPS) == {}
