"""``kubectl gpushare why`` against an API server on a real socket."""

import io
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.component.cli.commands import printed, run_command
from tests.fakes.system_tls import system_tls
from tests.samples.why import MEMORY, full_node, memory_pod, pod_json, share_node_json

from gpushare_cli.decide.why.explanation import PodExplanation, WhyState
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import bound_to
from gpushare_cli.report import ExitStatus
from gpushare_core.api.names import COMPONENT_LABEL
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.paths import DAEMON_SETS, PODS, POLICIES, SHARE_NODES, deployments, events, pods
from gpushare_core.text.json_object import Json

READ = {
    "spec.nodeName": lambda item: item["spec"].get("nodeName", ""),
    "status.phase": lambda item: item["status"].get("phase", ""),
    "metadata.name": lambda item: item["metadata"]["name"],
    "regarding.name": lambda item: item["regarding"]["name"],
    "reason": lambda item: item["reason"],
}
"""The field selectors that it knows; the others select everything."""


@dataclass
class Cluster:
    """``objects`` by collection; every other collection is empty."""

    objects: dict[str, list[Json]] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    """Path -> status of the answer."""
    asked: list[str] = field(default_factory=list)
    """Paths, with field selectors."""

    def put(self, collection: str, *items: Json) -> None:
        self.objects.setdefault(collection, []).extend(items)

    def put_pods(self, *items: Json) -> None:
        self.put(PODS, *items)
        for item in items:
            self.put(pods(item["metadata"]["namespace"]), item)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        selector = request.query.get("fieldSelector", "")
        self.asked.append(f"{request.path} {selector}".strip())
        if status := self.refused.get(request.path):
            return web.json_response({"reason": "Forbidden", "message": "you may not"}, status=status)
        if request.method == "POST":
            return web.json_response(await request.json(), status=201)
        collection, _, name = request.path.rpartition("/")
        if request.path not in self.objects and collection in self.objects:
            found = [item for item in self.objects[collection] if item["metadata"]["name"] == name]
            missing = {"reason": "NotFound", "message": f'"{name}" not found'}
            return web.json_response(found[0]) if found else web.json_response(missing, status=404)
        items = [item for item in self.objects.get(request.path, []) if _selects(selector, item)]
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})


def _selects(selector: str, item: Json) -> bool:
    for term in filter(None, selector.split(",")):
        name, _, value = term.replace("!=", "=").partition("=")
        known = name.removesuffix("!")
        if known in READ and (READ[known](item) == value) is ("!=" in term):
            return False
    return True


@pytest.fixture
def cluster() -> Cluster:
    """With a policy that is Ready, and an extender that runs."""
    policy = {
        "metadata": {"name": "default", "generation": 1},
        "spec": {"memoryUnit": "1Gi"},
        "status": {
            "observedGeneration": 1,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Serving"}],
        },
    }
    extender = {
        "metadata": {"name": "gpushare-extender", "labels": {COMPONENT_LABEL: "extender"}},
        "status": {"desiredNumberScheduled": 1, "numberReady": 1},
    }
    return Cluster({POLICIES: [policy], DAEMON_SETS: [extender]})


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[KubeClient]:
    application = web.Application()
    application.router.add_route("*", "/{rest:.*}", cluster.answer)
    server = TestServer(application)
    await server.start_server(shutdown_timeout=0.1)
    url = str(server.make_url("")).rstrip("/")
    async with KubeClient(Credentials(url, system_tls, lambda: "token")) as client:
        yield client
    await server.close()


def bound(name: str, node: str, *, units: int = 4, phase: str = "Running", **spec: Any) -> Json:
    pod = memory_pod(units, name, nodeName=node, **spec)
    return {**pod, "status": {"phase": phase, "startTime": "2026-01-02T03:00:05Z"}}


async def why(client: KubeClient, *arguments: str) -> PodExplanation:
    report = await run_command(client, "why", *arguments)
    assert isinstance(report, PodExplanation)
    return report


async def test_the_pod_before_it_was_evicted(cluster: Cluster, client: KubeClient) -> None:
    evicted = failed_scheduling("db-0", count=1) | {"reason": "EvictedForMemory", "note": "9Gi of 4Gi"}
    cluster.put(SHARE_NODES, full_node())
    cluster.put(events("ml"), evicted)
    made = memory_pod(4, "db-0")
    made["metadata"] |= {"ownerReferences": [{"kind": "StatefulSet", "name": "db"}], "generateName": "db-"}
    cluster.put_pods(made, memory_pod(4, "bare"))
    report = await why(client, "-n", "ml", "db-0")
    (found,) = [finding for finding in report.findings if finding.code == "EvictedBefore"]
    assert found.sentence == "Pod ml/db-0, which came before it, was evicted 5s ago: 9Gi of 4Gi"
    asked = f"{events('ml')} regarding.kind=Pod,reason=EvictedForMemory"
    assert cluster.asked.count(asked) == 1
    await why(client, "-n", "ml", "bare")
    assert cluster.asked.count(asked) == 1


def failed_scheduling(name: str, *, count: int) -> Json:
    return {
        "metadata": {"name": f"{name}.1", "namespace": "ml"},
        "regarding": {"kind": "Pod", "name": name, "namespace": "ml"},
        "reason": "FailedScheduling",
        "note": "0/1 nodes are available",
        "type": "Warning",
        "eventTime": "2026-01-02T03:00:00.000000Z",
        "series": {"count": count, "lastObservedTime": "2026-01-02T03:04:00.000000Z"},
        "reportingController": "default-scheduler",
    }


async def test_a_pod_that_waits(cluster: Cluster, client: KubeClient) -> None:
    cluster.put(SHARE_NODES, full_node("gpu-1", 5))
    cluster.put_pods(memory_pod(12), bound("gpu-1-last", "gpu-1"), bound("other", "gpu-7"))
    cluster.put(events("ml"), failed_scheduling("train", count=3))
    report = await why(client, "-n", "ml", "train")
    assert report.state is WhyState.WAITING
    assert report.exit_status is ExitStatus.NO
    assert report.attempts is not None
    assert (report.attempts.tried, report.attempts.last_tried) == (3, "2026-01-02T03:04:00Z")
    gone = next(remedy for remedy in report.remedies if remedy.code == "PodsGone")
    assert gone.commands == ["kubectl delete pod -n ml gpu-1-last"]


async def test_only_the_pods_that_are_needed_are_read(cluster: Cluster, client: KubeClient) -> None:
    cluster.put(SHARE_NODES, full_node("gpu-1", 5), *(full_node(f"full-{n}", 1) for n in range(20)))
    cluster.put_pods(memory_pod(12))
    await why(client, "-n", "ml", "train")
    listed = [asked for asked in cluster.asked if asked.startswith(f"{PODS} ")]
    assert f"{PODS} status.phase=Pending" in listed
    assert f"{PODS} spec.nodeName=gpu-1,status.phase!=Succeeded,status.phase!=Failed" in listed
    assert len(listed) == 6
    assert PODS not in cluster.asked


async def test_a_running_pod_takes_its_own_node_alone(cluster: Cluster, client: KubeClient) -> None:
    cluster.put(SHARE_NODES, full_node("gpu-1", 5), full_node("gpu-2", 5))
    cluster.put_pods(bound("gpu-1-last", "gpu-1", units=11))
    report = await why(client, "-n", "ml", "pod/gpu-1-last")
    assert report.answer == "Pod ml/gpu-1-last runs for 4m on gpu-1, card 1."
    assert f"{SHARE_NODES} metadata.name=gpu-1" in cluster.asked
    asked = [asked for asked in cluster.asked if asked.startswith(PODS + " ")]
    assert asked == [f"{PODS} {bound_to('gpu-1')}"]


def early(phase: str) -> Json:
    """A pod whose GPUShareNode does not show it yet."""
    allocation = {
        "node": "gpu-1",
        "uid": "uid-early",
        "at": "",
        "unit": "1Gi",
        "containers": {"main": {"GPU-gpu-1-1": 5}},
    }
    pod = bound("early", "gpu-1", units=5, phase=phase)
    text = json.dumps(allocation, separators=(",", ":"))
    pod["metadata"]["annotations"] = {"gpushare.io/allocation": text}
    return pod


@pytest.mark.parametrize("phase", ["Pending", "Running"])
async def test_pods_count_before_their_plugin_reports_them(
    cluster: Cluster, client: KubeClient, phase: str
) -> None:
    cluster.put(SHARE_NODES, full_node("gpu-1", 5))
    cluster.put_pods(memory_pod(4), early(phase))
    report = await why(client, "-n", "ml", "train")
    assert report.state is WhyState.WAITING
    assert report.findings[0].nearest.startswith("gpu-1 card ")
    assert "0 of the 4 units free" in report.findings[0].nearest


async def test_nodes_come_closest_once_a_pod_that_runs_has_taken_the_one_that_seemed_free(
    cluster: Cluster, client: KubeClient
) -> None:
    """And whom the pod may evict there is known."""
    cluster.put(SHARE_NODES, full_node("gpu-1", 5), full_node("gpu-2", 3))
    taken = early("Running")
    taken["spec"]["priority"] = 9
    cluster.put_pods(memory_pod(4, priority=5), taken, bound("gpu-2-last", "gpu-2"))
    report = await why(client, "-n", "ml", "train")
    assert report.state is WhyState.WAITING
    assert "gpu-2 card 1: 3 of the 4 units free" in report.findings[0].nearest
    assert [remedy.pods for remedy in report.remedies if remedy.code == "Preemption"] == [["ml/gpu-2-last"]]


@pytest.mark.parametrize("phase", ["Pending", "Running"])
async def test_who_is_beside_a_pod_is_said_before_their_plugin_reports_them(
    cluster: Cluster, client: KubeClient, phase: str
) -> None:
    cluster.put(SHARE_NODES, full_node("gpu-1", 5))
    cluster.put_pods(bound("gpu-1-last", "gpu-1", units=11), early(phase))
    (card,) = (await why(client, "-n", "ml", "gpu-1-last")).cards
    assert [(other.name, other.units) for other in card.neighbours] == [("early", 5)]
    assert card.free_units == 0


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("trai", "there is no pod trai in namespace ml; did you mean train?"),
        ("trian", "there is no pod trian in namespace ml; did you mean train?"),
        ("zzz", "there is no pod zzz in namespace ml"),
    ],
)
async def test_a_pod_that_does_not_exist(cluster: Cluster, client: KubeClient, name: str, said: str) -> None:
    cluster.put_pods(memory_pod(4))
    with pytest.raises(CannotLookError) as raised:
        await why(client, "-n", "ml", name)
    assert str(raised.value) == said


async def test_a_pod_of_another_namespace(cluster: Cluster, client: KubeClient) -> None:
    cluster.put_pods(memory_pod(4))
    cluster.put(pods("default"), memory_pod(1, "other"))
    with pytest.raises(CannotLookError, match=r"namespace ml has one: kubectl gpushare why -n ml train"):
        await why(client, "train")


async def test_a_pod_of_any_namespace(cluster: Cluster, client: KubeClient) -> None:
    cluster.put_pods(memory_pod(4))
    cluster.put(SHARE_NODES, full_node("gpu-1", 9))
    assert (await why(client, "-A", "train")).namespace == "ml"


async def test_no_name_says_how_pods_are_found(client: KubeClient) -> None:
    with pytest.raises(CannotLookError, match=r"kubectl gpushare pods -A"):
        await why(client)


def deployment(units: int = 12) -> Json:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": memory_pod(units)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "ml"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    }


async def test_a_deployment_stands_for_its_newest_pod_that_waits(
    cluster: Cluster, client: KubeClient
) -> None:
    waiting = memory_pod(12, "web-2")
    cluster.put(deployments("ml"), deployment())
    cluster.put(SHARE_NODES, full_node("gpu-1", 5))
    cluster.put_pods(bound("web-1", "gpu-1"), waiting)
    assert (await why(client, "-n", "ml", "deploy/web")).name == "web-2"
    assert (await why(client, "-n", "ml", "deployment", "web")).name == "web-2"


async def test_a_deployment_without_pods_stands_for_one_that_it_would_make(
    cluster: Cluster, client: KubeClient
) -> None:
    cluster.put(deployments("ml"), deployment(4))
    cluster.put(SHARE_NODES, full_node("gpu-1", 5))
    report = await why(client, "-n", "ml", "deployment.apps/web")
    assert (report.exists, report.state) == (False, WhyState.FITS)


async def test_what_makes_no_pods(client: KubeClient) -> None:
    with pytest.raises(CannotLookError, match="service makes no pods"):
        await why(client, "service/web")


async def test_a_manifest_that_is_not_applied(cluster: Cluster, client: KubeClient, tmp_path: Path) -> None:
    cluster.put(SHARE_NODES, full_node("gpu-1", 5))
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(memory_pod(4)))
    report = await why(client, "-f", str(file))
    assert report.answer == "Pod ml/train would get its cards now, on gpu-1."
    assert report.exit_status is ExitStatus.GOOD


async def test_of_several_objects_one_is_chosen_by_name(
    cluster: Cluster, client: KubeClient, tmp_path: Path
) -> None:
    cluster.put(SHARE_NODES, full_node("gpu-1", 5))
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([memory_pod(4), deployment()]))
    with pytest.raises(CannotLookError, match="has pod/train, deployment/web: name one of them"):
        await why(client, "-f", str(file))
    assert (await why(client, "-f", str(file), "deployment/web")).name == "web"


async def test_a_manifest_from_standard_input(
    cluster: Cluster, client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(SHARE_NODES, full_node("gpu-1", 5))
    content = io.BytesIO(json.dumps(memory_pod(4)).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    assert (await why(client, "-f", "-")).state is WhyState.FITS


async def test_a_manifest_gets_the_priority_of_its_class(
    cluster: Cluster, client: KubeClient, tmp_path: Path
) -> None:
    cluster.put(
        "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "urgent"}, "value": 100, "preemptionPolicy": "PreemptLowerPriority"},
    )
    cluster.put(SHARE_NODES, full_node("gpu-1", 5))
    cluster.put_pods(bound("gpu-1-last", "gpu-1"))
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(memory_pod(12, priorityClassName="urgent")))
    assert "Preemption" in {remedy.code for remedy in (await why(client, "-f", str(file))).remedies}


async def test_share_nodes_that_may_not_be_read(cluster: Cluster, client: KubeClient) -> None:
    cluster.put_pods(memory_pod(12))
    cluster.put(events("ml"), failed_scheduling("train", count=1))
    cluster.refused[SHARE_NODES] = 403
    report = await why(client, "-n", "ml", "train")
    assert (report.state, report.exit_status) == (WhyState.UNKNOWN, ExitStatus.CANNOT_LOOK)
    assert report.words[0].message == "0/1 nodes are available"
    assert "403" in report.unread["GPUShareNodes"]


@pytest.mark.parametrize(
    "path", [PODS, events("ml"), "/apis/policy/v1/poddisruptionbudgets", "/api/v1/nodes"]
)
async def test_what_else_may_not_be_read_is_said_and_the_rest_is_known(
    cluster: Cluster, client: KubeClient, path: str
) -> None:
    cluster.put(SHARE_NODES, full_node("gpu-1", 5))
    cluster.put_pods(memory_pod(12), bound("gpu-1-last", "gpu-1"))
    cluster.put(events("ml"), failed_scheduling("train", count=1))
    cluster.refused[path] = 403
    report = await why(client, "-n", "ml", "train")
    assert "CardsFull" in {finding.code for finding in report.findings}
    assert report.unread


async def test_an_object_that_is_no_pod(cluster: Cluster, client: KubeClient) -> None:
    broken = {**memory_pod(4), "spec": {"containers": "none"}}
    cluster.put(pods("ml"), broken)
    with pytest.raises(CannotLookError, match="the pod cannot be read"):
        await why(client, "-n", "ml", "train")


async def test_everything_that_is_said_is_in_the_json(cluster: Cluster, client: KubeClient) -> None:
    cluster.put(SHARE_NODES, full_node("gpu-1", 5))
    cluster.put_pods(memory_pod(12))
    report = await why(client, "-n", "ml", "train")
    document = json.loads(printed(report, "why", "train", "-o", "json"))
    assert (document["apiVersion"], document["kind"]) == ("cli.gpushare.io/v1alpha1", "PodExplanation")
    assert document["state"] == "Waiting"
    assert document["asks"][0] | {"containers": []} == {
        "resource": MEMORY,
        "resourceClass": "memory",
        "units": 12,
        "unit": "1Gi",
        "memoryBytes": 12 * 2**30,
        "containers": [],
    }
    assert document["findings"][0]["isDecisive"]
    assert printed(report, "why", "train", "-o", "name") == "pod/train\n"


async def test_nodes_of_a_newer_version_are_no_reason_to_fail(cluster: Cluster, client: KubeClient) -> None:
    newer = {**share_node_json("gpu-9")}
    newer["spec"]["mode"] = "Quantum"
    cluster.put(SHARE_NODES, newer, full_node("gpu-1", 9))
    cluster.put_pods(pod_json(main={MEMORY: 4}))
    codes = {finding.code: finding.sentence for finding in (await why(client, "-n", "ml", "train")).findings}
    assert "Quantum" in codes["NodeClosed"]
