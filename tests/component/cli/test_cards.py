"""``inspect``, ``pods``, ``namespaces``, ``top``: what they read, and what they say where they cannot."""

import json
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests.component.cli.commands import printed, run_command
from tests.fakes.api_server import PODS, SHARE_NODES, Answer, FakeApi, fake_api, json_answer, status
from tests.samples.dialects import asking, left_by
from tests.samples.shared_cards import (
    EVICTING,
    HELD,
    MOMENT,
    card,
    pending_pod_object,
    share,
    share_node_object,
)

from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import MAX_NODES_WITH_PODS, bound_to
from gpushare_cli.report import ExitStatus
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import NODES, pods
from gpushare_core.text.json_object import Json

QUOTAS = "/api/v1/resourcequotas"


def listed(*items: Json, more: str = "") -> Answer:
    return json_answer({"metadata": {"resourceVersion": "1", "continue": more}, "items": [*items]})


def named(*names: str) -> Answer:
    return listed(*({"metadata": {"name": name}} for name in names))


def known(uid: str) -> Json:
    return {"metadata": {"uid": uid, "creationTimestamp": MOMENT}}


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        used = share("a/x", 4, used="1Gi")
        fake.put(SHARE_NODES, share_node_object("gpu-1", card(0, 16, used, usedMemory="1Gi", node="gpu-1")))
        fake.put(SHARE_NODES, share_node_object("gpu-2", card(0, 16, node="gpu-2")))
        yield fake


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[KubeClient]:
    async with KubeClient(api.credentials()) as client:
        yield client


def allow(api: FakeApi, *pending: Json, unschedulable: tuple[str, ...] = ()) -> None:
    """The next command may list pods and Nodes."""
    api.fail("GET", PODS, listed(*pending))
    api.fail("GET", NODES, named(*unschedulable))


async def test_inspect_counts_pods_that_have_not_started(api: FakeApi, client: KubeClient) -> None:
    allow(api, pending_pod_object("a/new", 6, node="gpu-2", card="GPU-gpu-2-0"), unschedulable=("gpu-1",))
    report = await run_command(client, "inspect")
    text = printed(report, "inspect")
    assert "a/new: 6, not started" in text
    assert "kubectl uncordon gpu-1" in text
    assert report.exit_status is ExitStatus.GOOD
    first, *others = [seen.query["fieldSelector"] for seen in api.requests("GET", PODS)]
    assert first == "status.phase=Pending"
    assert {*others} == {bound_to("gpu-1"), bound_to("gpu-2")}


@pytest.mark.parametrize(
    ("command", "line"),
    [
        pytest.param(("inspect",), "a/new: 6", id="inspect"),
        pytest.param(("pods", "-A"), "new Running gpu-2 0 6 memory", id="pods"),
    ],
)
async def test_a_pod_that_runs_counts_before_its_plugin_reports_it(
    api: FakeApi, client: KubeClient, command: tuple[str, ...], line: str
) -> None:
    new = pending_pod_object("a/new", 6, node="gpu-2", card="GPU-gpu-2-0")
    api.put(PODS, {**new, "status": {"phase": "Running"}})
    api.fail("GET", NODES, named())
    text = " ".join(printed(await run_command(client, *command), *command).split())
    assert line in text
    assert "not started" not in text


async def test_of_many_nodes_pods_are_not_read_node_by_node(api: FakeApi, client: KubeClient) -> None:
    for place in range(MAX_NODES_WITH_PODS):
        api.put(SHARE_NODES, share_node_object(f"many-{place}", card(0, 16, node=f"many-{place}")))
    allow(api)
    await run_command(client, "inspect")
    assert len(api.requests("GET", PODS)) == 1


async def test_of_many_nodes_the_pods_of_those_are_read_that_are_named(
    api: FakeApi, client: KubeClient
) -> None:
    for place in range(MAX_NODES_WITH_PODS):
        api.put(SHARE_NODES, share_node_object(f"many-{place}", card(0, 16, node=f"many-{place}")))
    new = pending_pod_object("a/new", 6, node="gpu-2", card="GPU-gpu-2-0")
    api.put(PODS, {**new, "status": {"phase": "Running"}})
    api.fail("GET", NODES, named())
    text = printed(await run_command(client, "inspect", "gpu-1", "gpu-2"), "inspect", "gpu-1", "gpu-2")
    assert "a/new: 6" in text
    asked = [seen.query["fieldSelector"] for seen in api.requests("GET", PODS)]
    assert {*asked} == {"status.phase=Pending", bound_to("gpu-1"), bound_to("gpu-2")}


async def test_a_pod_of_a_replaced_system_counts_by_its_own_annotations(
    api: FakeApi, client: KubeClient
) -> None:
    api.put(SHARE_NODES, share_node_object("gpu-2", card(0, 16, node="gpu-2"), dialect="aliyun.com"))
    api.put(PODS, asking({"aliyun.com": 4}, "old", node="gpu-2", annotations=left_by("aliyun.com")))
    api.fail("GET", NODES, named())
    text = printed(await run_command(client, "inspect"), "inspect")
    assert "default/old: 4" in text


async def test_pods_without_a_uid_are_known_by_their_names(api: FakeApi, client: KubeClient) -> None:
    shares = [{**share(pod, units, orphaned=True), "uid": ""} for pod, units in (("a/x", 4), ("b/y", 2))]
    api.put(SHARE_NODES, share_node_object("gpu-1", card(0, 16, *shares, node="gpu-1")))
    allow(api)
    text = printed(await run_command(client, "inspect"), "inspect")
    assert "a/x: 4, gone and not released" in text
    assert "b/y: 2, gone and not released" in text
    allow(api)
    lines = [
        " ".join(line.split())
        for line in printed(await run_command(client, "pods", "-A"), "pods", "-A").splitlines()
    ]
    assert any(line.startswith("a x Orphaned gpu-1 0 4 memory") for line in lines)
    assert any(line.startswith("b y Orphaned gpu-1 0 2 memory") for line in lines)


async def test_inspect_of_one_node_reads_no_more(api: FakeApi, client: KubeClient) -> None:
    api.fail("GET", SHARE_NODES, listed(share_node_object("gpu-1", card(0, 16, node="gpu-1"))))
    allow(api)
    await run_command(client, "inspect", "gpu-1")
    assert api.requests("GET", SHARE_NODES)[0].query["fieldSelector"] == "metadata.name=gpu-1"
    asked = [seen.query["fieldSelector"] for seen in api.requests("GET", PODS)]
    assert asked == ["spec.nodeName=gpu-1,status.phase=Pending", bound_to("gpu-1")]


async def test_inspect_says_which_named_nodes_are_not_there(api: FakeApi, client: KubeClient) -> None:
    allow(api)
    api.fail("GET", f"{NODES}/cpu-1", json_answer({"metadata": {"name": "cpu-1"}}))
    report = await run_command(client, "inspect", "gpu-1", "cpu-1", "gpu-9")
    text = printed(report, "inspect", "gpu-1")
    assert "cpu-1: no policy shares its cards" in text
    assert "gpu-9: there is no node of this name" in text
    assert report.exit_status is ExitStatus.NO


async def test_inspect_by_labels_of_nodes(api: FakeApi, client: KubeClient) -> None:
    allow(api)
    api.fail("GET", NODES, named("gpu-2"))
    report = await run_command(client, "inspect", "-l", "zone=b", "-o", "name")
    assert printed(report, "inspect", "-o", "name") == "gpusharenode.gpushare.io/gpu-2\n"
    assert {seen.query.get("labelSelector") for seen in api.requests("GET", NODES)} == {None, "zone=b"}


async def test_what_may_not_be_read_is_said(api: FakeApi, client: KubeClient) -> None:
    api.fail("GET", PODS, status(403, "pods is forbidden"))
    api.fail("GET", NODES, status(403, "nodes is forbidden"))
    report = await run_command(client, "inspect")
    text = printed(report, "inspect")
    assert (
        "Pods that no GPUShareNode shows yet are not counted, and pods that wait are not shown: the API"
        in text
    )
    assert "It is not known which nodes are closed by kubectl cordon" in text
    assert "a/x: 4, uses 1Gi of 4Gi" in text
    assert report.exit_status is ExitStatus.GOOD


@pytest.mark.parametrize("command", [("inspect",), ("pods",), ("namespaces",), ("top", "--once")])
async def test_without_crds_nobody_can_look(
    api: FakeApi, client: KubeClient, command: tuple[str, ...]
) -> None:
    api.fail("GET", SHARE_NODES, status(404, "the server could not find the requested resource"))
    with pytest.raises(CannotLookError, match="see that gpushare is installed"):
        await run_command(client, *command)


async def test_pods_of_a_namespace(api: FakeApi, client: KubeClient) -> None:
    big = pending_pod_object("a/big", 20, message="0/2 nodes are available")

    async def answer(request: web.Request) -> web.StreamResponse | None:
        found = {"status.phase=Pending": [big], None: [known("a/x")]}
        return await listed(*found.get(request.query.get("fieldSelector"), []))(request)

    api.fail("GET", pods("a"), *[answer] * 4)
    report = await run_command(client, "pods", "-n", "a")
    text = printed(report, "pods", "-n", "a")
    lines = [line.split() for line in text.splitlines()]
    assert lines[:3] == [
        ["POD", "STATE", "NODE", "CARDS", "UNITS", "USED/ASKED", "AGE"],
        ["big", "Waiting", "-", "-", "20", "memory", "-", "4m5s"],
        ["x", "Running", "gpu-1", "0", "4", "memory", "1Gi/4Gi", "4m5s"],
    ]
    assert "kubectl gpushare why big -n a" in text
    known_pods = next(seen for seen in api.requests("GET", pods("a")) if "fieldSelector" not in seen.query)
    assert "PartialObjectMetadataList" in known_pods.accept


async def test_ages_are_unknown_where_there_are_too_many_pods(api: FakeApi, client: KubeClient) -> None:
    async def answer(request: web.Request) -> web.StreamResponse | None:
        return await (listed() if "fieldSelector" in request.query else listed(more="next"))(request)

    api.fail("GET", PODS, answer, answer)
    api.fail("GET", NODES, named())
    text = printed(await run_command(client, "pods", "-A"), "pods", "-A")
    assert "there are more than 3,000 pods" in text
    assert text.splitlines()[1].split()[-1] == "?"


async def test_namespaces_and_their_quotas(api: FakeApi, client: KubeClient) -> None:
    allow(api)
    key = "requests.gpushare.io/memory"
    quota = {
        "metadata": {"name": "gpu", "namespace": "a"},
        "spec": {"hard": {key: "32"}},
        "status": {"hard": {key: "32"}, "used": {key: "4"}},
    }
    api.fail("GET", QUOTAS, listed(quota))
    text = printed(await run_command(client, "namespaces"), "namespaces")
    assert text.splitlines()[1].split() == ["a", "1", "1", "4", "memory", "1Gi/4Gi", "-", "4/32", "memory"]
    assert f"kubectl create quota gpu -n NAMESPACE --hard={key}=32" in text


async def test_quotas_that_may_not_be_read_are_unknown(api: FakeApi, client: KubeClient) -> None:
    allow(api)
    report = await run_command(client, "namespaces", "-o", "json")
    (namespace,) = json.loads(printed(report, "namespaces", "-o", "json"))["namespaces"]
    assert namespace["quotas"] is None
    assert "ResourceQuotas are not known" in printed(report, "namespaces")


@pytest.mark.parametrize("of", ["nodes", "cards", "pods"])
async def test_top(api: FakeApi, client: KubeClient, of: str) -> None:
    allow(api)
    report = await run_command(client, "top", of, "-A", "--once")
    first = printed(report, "top", of, "--once").splitlines()[1].split()
    assert tuple(first[-3:]) == ("1Gi", "4Gi", "25%")


@pytest.mark.parametrize("command", [("inspect", "gpu-3"), ("top", "pods", "-A", "--once"), ("pods", "-A")])
async def test_how_long_a_container_has_had_more_and_when_it_is_evicted(
    api: FakeApi, client: KubeClient, command: tuple[str, ...]
) -> None:
    over = share("a/y", 4, used="5Gi", isolation="Hook", exceededSince=MOMENT)
    evicting = {**EVICTING, "graceSeconds": 300}
    held = card(0, 16, over, node="gpu-3")
    api.put(SHARE_NODES, share_node_object("gpu-3", held, isolation=evicting, given="Hook", conditions=HELD))
    api.fail("GET", PODS, listed(), listed())
    api.fail("GET", NODES, named())
    text = " ".join(printed(await run_command(client, *command), *command).split())
    assert "OVER for 4m5s, evicted in 55s" in text
    assert "Hook" in text


async def test_top_pods_of_a_namespace_without_any(api: FakeApi, client: KubeClient) -> None:
    allow(api)
    report = await run_command(client, "top", "pods")
    assert "No pod in namespace default holds units of a card." in printed(report, "top", "pods", "--once")
