"""Which pods are on their way."""

from typing import Any

import pytest
from chaos.plan.known import CONTROL_PLANES, WORKERS
from chaos.policies import POLICIES
from chaos.quiet import abandoned, absent, is_settled, on_their_way, unmirrored

from gpushare_core.text.json_object import Json
from gpushare_localcluster.containers import ContainerRecord


def pod(phase: str, *, node: str = "gpu-1", deleted: bool = False, **more: Any) -> Json:
    metadata = {"name": "a", **({"deletionTimestamp": "2026"} if deleted else {})}
    spec = {"nodeName": node, "restartPolicy": more.pop("restart", "Always")}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, **more}}


REFUSED = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
UNSURE = [{"type": "PodScheduled", "status": "False", "reason": "SchedulerError"}]


@pytest.mark.parametrize(
    ("body", "doing"),
    [
        pytest.param(pod("Running"), "", id="runs"),
        pytest.param(pod("Running", deleted=True), "ends", id="ends"),
        pytest.param(pod("Running", restart="Never"), "is about to end", id="a Job's"),
        pytest.param(pod("Succeeded"), "", id="ended"),
        pytest.param(pod("Failed"), "", id="failed"),
        pytest.param(pod("Pending"), "starts on gpu-1", id="bound"),
        pytest.param(pod("Pending", node=""), "waits for the scheduler", id="new"),
        pytest.param(pod("Pending", node="", conditions=REFUSED), "", id="waits for room"),
        pytest.param(pod("Pending", node="", conditions=UNSURE), "is tried again", id="bound or not"),
    ],
)
def test_on_their_way(body: Json, doing: str) -> None:
    assert on_their_way([body]) == ([f"pod a {doing}"] if doing else [])


def mirror(version: str) -> Json:
    annotations = {"kubernetes.io/config.mirror": "hash", "chaos/version": version}
    return {"metadata": {"name": "s-gpu-1", "annotations": annotations}}


@pytest.mark.parametrize(
    ("written", "pods", "on_its_way"),
    [
        pytest.param({"s-gpu-1": "2"}, [mirror("2")], False, id="as written"),
        pytest.param({"s-gpu-1": "2"}, [mirror("1")], True, id="an earlier one"),
        pytest.param({"s-gpu-1": "2"}, [], True, id="not yet"),
        pytest.param({}, [mirror("2")], True, id="not gone yet"),
        pytest.param({}, [pod("Running")], False, id="no static pod"),
    ],
)
def test_static_pods_are_on_their_way_until_the_api_server_shows_them(
    written: dict[str, str],
    pods: list[Json],
    on_its_way: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    assert bool(unmirrored(written, pods, now=5)) is on_its_way


def test_a_static_pod_that_its_kubelet_rejects_is_never_shown() -> None:
    assert unmirrored({"s-gpu-1": "2"}, [], now=11 * 10**9) == []


def named(*names: str) -> list[Json]:
    return [{"metadata": {"name": name}} for name in names]


def test_what_is_not_there_keeps_it_from_being_quiet() -> None:
    nodes = named(*CONTROL_PLANES, *WORKERS, "sink")
    schedulers = named(*(f"kube-scheduler-{control_plane}" for control_plane in CONTROL_PLANES))
    assert absent(nodes=nodes, system_pods=schedulers, policies=POLICIES) == []
    assert absent(nodes=nodes[1:], system_pods=schedulers[:1], policies=POLICIES[1:]) == [
        "node control-plane-1 is not there",
        "pod kube-scheduler-control-plane-2 is not there",
        "policy default is not there",
    ]


def judged(status: str, reason: str, *, generation: int = 2) -> Json:
    ready = {"type": "Ready", "status": status, "reason": reason}
    return {
        "metadata": {"generation": generation},
        "status": {"observedGeneration": 2, "conditions": [ready]},
    }


@pytest.mark.parametrize(
    ("policy", "settled"),
    [
        pytest.param(judged("True", "Ready"), True, id="in force"),
        pytest.param(judged("False", "PluginsNotReady"), False, id="on its way"),
        pytest.param(judged("False", "NoNodesSelected"), True, id="the mode of its only node is Off"),
        pytest.param(judged("True", "Ready", generation=3), False, id="edited since"),
    ],
)
def test_a_policy_is_settled_by_what_it_says(policy: Json, settled: bool) -> None:  # noqa: FBT001
    assert is_settled(policy) is settled


@pytest.mark.parametrize(
    ("uid", "state", "namespace", "ends"),
    [
        pytest.param("there", "running", "chaos", False, id="of a pod"),
        pytest.param("gone", "running", "chaos", True, id="its pod is gone"),
        pytest.param("gone", "exited", "chaos", False, id="ended"),
        pytest.param("gone", "running", "kube-system", False, id="none of ours"),
    ],
)
def test_containers_of_pods_that_are_gone_are_ending(
    uid: str,
    state: str,
    namespace: str,
    ends: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    there = pod("Running")
    there["metadata"].update(uid="there", namespace="chaos")
    there["spec"]["containers"] = []
    record = ContainerRecord(
        id="1",
        node="gpu-1",
        namespace=namespace,
        pod="a",
        pod_uid=uid,
        container="c0",
        attempt=0,
        pid=7,
        env={},
        state=state,
        exit_code=0,
        started_at="",
    )
    assert bool(abandoned([record], [there])) is ends


def test_of_a_static_pod_whose_replacement_is_rejected_the_earlier_one_stays_shown() -> None:
    assert unmirrored({"s-gpu-1": "2"}, [mirror("1")], now=11 * 10**9)
    assert unmirrored({"s-gpu-1": "2"}, [mirror("1")], now=26 * 10**9) == []
