"""Pods of ours that are not made, and pods that somebody adds a container to."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from tests.component.operator.test_app import CARDS
from tests.fakes.operator_cluster import DAEMON_SETS, JOBS, NAMESPACE, PODS, Cluster, Operator, converge

from gpushare_core.api.names import COMPONENT_LABEL
from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json
from gpushare_operator.reconcile import CLUSTER, HEARTBEATS

EVENTS = paths.events(NAMESPACE)
PLUGIN = "gpushare-plugin-default"
POD_SECURITY = (
    'pods "gpushare-plugin-default-x" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes'
    ' (volumes "device-plugins", "pod-resources")'
)
LIMIT_RANGE = (
    'pods "gpushare-plugin-default-x" is forbidden: [memory max limit to request ratio per Container is 2,'
    " but provided ratio is 3.200000]"
)


async def sharing() -> tuple[Cluster, Operator]:
    cluster = Cluster()
    cluster.add_node("cp", control_plane=True)
    cluster.add_node("gpu-1")
    cluster.add_policy("default", {"names": ["gpu-1"], "mode": "Memory", "devices": CARDS})
    return cluster, await converge(cluster)


def say(cluster: Cluster, name: str, uid: str, *, note: str, at: str = "2026-11-21T12:00:00Z") -> None:
    event = {
        "metadata": {"name": f"{name}.{at}"},
        "reason": "FailedCreate",
        "note": f"Error creating: {note}",
    }
    regarding = {"kind": "DaemonSet", "name": name, "uid": uid}
    cluster.api.put(EVENTS, {**event, "regarding": regarding, "deprecatedLastTimestamp": at})


def refuse_plugins(cluster: Cluster, note: str) -> None:
    status = {"desiredNumberScheduled": 1, "currentNumberScheduled": 0}
    body = cluster.api.change(DAEMON_SETS, PLUGIN, {"status": status})
    say(cluster, PLUGIN, body["metadata"]["uid"], note="something of before", at="2026-11-21T11:00:00Z")
    say(cluster, PLUGIN, body["metadata"]["uid"], note=note)
    say(
        cluster,
        PLUGIN,
        "another",
        note="of a DaemonSet of the same name that is gone",
        at="2026-11-21T13:00:00Z",
    )


def condition(cluster: Cluster, type_: str) -> Json:
    conditions = cluster.api.of(paths.POLICIES)["default"]["status"]["conditions"]
    found: Json = next(condition for condition in conditions if condition["type"] == type_)
    return found


@pytest.mark.parametrize(
    ("note", "advice"),
    [
        pytest.param(POD_SECURITY, "pod-security.kubernetes.io/enforce=privileged", id="PodSecurity"),
        pytest.param(LIMIT_RANGE, "choose resources within the LimitRange", id="LimitRange"),
        pytest.param(
            'admission webhook "policies.example" denied the request: no',
            "have what refuses them leave namespace gpushare-system alone",
            id="a webhook",
        ),
    ],
)
async def test_who_refuses_plugins_is_said_with_what_to_do(note: str, advice: str) -> None:
    cluster, operator = await sharing()
    refuse_plugins(cluster, note)
    await operator.work(HEARTBEATS)
    await operator.work("default")
    degraded = condition(cluster, "Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "PodsRefused")
    refusal = note.removeprefix('pods "gpushare-plugin-default-x" is ')
    assert f"the API server refuses pods of {PLUGIN}: {refusal}" in degraded["message"]
    assert advice in degraded["message"]
    assert "before" not in degraded["message"]
    assert "gone" not in degraded["message"]


async def test_it_is_over_when_the_pods_are_there() -> None:
    cluster, operator = await sharing()
    refuse_plugins(cluster, POD_SECURITY)
    await operator.work(HEARTBEATS)
    await operator.work("default")
    cluster.api.change(DAEMON_SETS, PLUGIN, {"status": {"currentNumberScheduled": 1}})
    await operator.work(HEARTBEATS)
    await operator.work("default")
    assert condition(cluster, "Degraded")["status"] == "False"


async def test_what_is_said_is_bounded() -> None:
    cluster, operator = await sharing()
    refuse_plugins(cluster, "no" * 10_000)
    await operator.work(HEARTBEATS)
    await operator.work("default")
    assert len(condition(cluster, "Degraded")["message"]) < 1000


async def test_without_the_right_to_read_events_nothing_is_made_of_it() -> None:
    """The manifests may be of an earlier version."""
    cluster, operator = await sharing()
    refuse_plugins(cluster, POD_SECURITY)
    cluster.api.forbidden.add(EVENTS)
    await operator.work(HEARTBEATS)
    await operator.work("default")
    assert condition(cluster, "Degraded")["status"] == "False"


def hold_open(cluster: Cluster, job: str, *, exit_code: int) -> None:
    """hostctl has ended, and a container that somebody added goes on."""
    labels = {COMPONENT_LABEL: "hostctl", "app.kubernetes.io/managed-by": "gpushare-operator"}
    ended = {"exitCode": exit_code, "finishedAt": "2026-11-21T12:00:00Z", "message": ""}
    statuses = [
        {"name": "istio-proxy", "state": {"running": {"startedAt": "2026-11-21T11:59:00Z"}}},
        {"name": "hostctl", "state": {"terminated": ended}},
    ]
    metadata = {"name": f"{job}-x", "labels": {**labels, "batch.kubernetes.io/job-name": job}}
    body = {"metadata": metadata, "spec": {"nodeName": "cp"}, "status": {"containerStatuses": statuses}}
    cluster.api.put(PODS, body)


def job_of(cluster: Cluster, command: str) -> str:
    return next(name for name in cluster.api.of(JOBS) if f"-{command}-" in name)


@pytest.mark.parametrize(("exit_code", "is_connected"), [(0, True), (1, False)])
async def test_hostctls_own_result_counts_whatever_runs_on_in_its_pod(
    exit_code: int, *, is_connected: bool
) -> None:
    cluster, operator = await sharing()
    job = job_of(cluster, "install")
    cluster.api.change(JOBS, job, {"status": None})
    hold_open(cluster, job, exit_code=exit_code)
    await operator.resync()
    await operator.work(CLUSTER)
    await operator.work("default")
    assert (condition(cluster, "SchedulerConfigured")["status"] == "True") == is_connected
    assert cluster.api.of(JOBS)[job]["metadata"]["annotations"]["gpushare.io/result"] == str(exit_code)


async def test_a_job_that_fails_at_its_deadline_after_hostctl_succeeded_counts_as_done() -> None:
    cluster, operator = await sharing()
    job = job_of(cluster, "install")
    cluster.api.change(JOBS, job, {"status": None})
    hold_open(cluster, job, exit_code=0)
    await operator.resync()
    await operator.work(CLUSTER)
    cluster.api.remove(PODS, f"{job}-x")
    failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": ""}
    moment = {"lastTransitionTime": "2026-11-21T12:06:00Z"}
    cluster.api.change(JOBS, job, {"status": {"conditions": [{**failed, **moment}]}})
    before = len(cluster.api.of(JOBS))
    await operator.resync()
    await operator.work(CLUSTER)
    await operator.work("default")
    assert condition(cluster, "SchedulerConfigured")["status"] == "True"
    assert len(cluster.api.of(JOBS)) == before, "nothing is repeated"


class Meshed(Cluster):
    """Where every pod of hostctl gets another container, which never ends."""

    def _running(self) -> Iterator[Callable[[], None]]:
        for job in self.api.of(JOBS):
            if f"{job}-x" not in self.api.of(PODS):
                yield partial(hold_open, self, job, exit_code=0)

    def _wanted_pods(self) -> list[Json]:
        held = [
            pod for name, pod in self.api.of(PODS).items() if name.removesuffix("-x") in self.api.of(JOBS)
        ]
        return [*super()._wanted_pods(), *held]


async def test_a_policy_comes_and_goes_where_no_job_ever_ends() -> None:
    """The deletion waited for ever."""
    cluster = Meshed()
    cluster.add_node("cp", control_plane=True)
    cluster.add_node("gpu-1")
    cluster.add_policy("default", {"names": ["gpu-1"], "mode": "Memory", "devices": CARDS})
    operator = await converge(cluster)
    assert condition(cluster, "SchedulerConfigured")["status"] == "True"
    cluster.delete_policy("default")
    await converge(cluster, operator)
    assert cluster.api.of(paths.POLICIES) == {}
    assert cluster.api.of(JOBS) == {}
