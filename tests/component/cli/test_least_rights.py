"""Commands for members of a team: they may read GPUShareNodes, and pods of one namespace alone."""

import json
from collections.abc import AsyncIterator

import pytest
from tests.component.cli.commands import printed, run_command
from tests.fakes.web_cluster import WebCluster, web_cluster
from tests.samples.shared_cards import card, pending_pod_object, share, share_node_object

from gpushare_cli.errors import CannotLookError
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import DEPLOYMENTS, NODES, PODS, POLICIES, pods

QUOTAS = "/api/v1/resourcequotas"


@pytest.fixture
async def cluster() -> AsyncIterator[WebCluster]:
    """A pod of ``team`` runs and two wait; two pods of others wait, one of them before those of the team."""
    async with web_cluster() as cluster:
        held = share("team/mine", 4, used="1Gi")
        cluster.put_node(share_node_object("gpu-1", card(0, 16, held, node="gpu-1", usedMemory="1Gi")))
        for pod in ("team/big", "team/bigger", "others/first", "others/second"):
            cluster.put(PODS, pending_pod_object(pod, 20))
        cluster.forbidden = frozenset({PODS, NODES, QUOTAS, POLICIES, DEPLOYMENTS, pods("others")})
        yield cluster


@pytest.fixture
async def client(cluster: WebCluster) -> AsyncIterator[KubeClient]:
    async with KubeClient(cluster.credentials()) as client:
        yield client


async def said(client: KubeClient, *arguments: str, own: str = "team") -> str:
    return " ".join(printed(await run_command(client, *arguments, own=own), *arguments).split())


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        pytest.param(
            ("pods", "-n", "team"), ("big Waiting - - 20 memory", "mine Running gpu-1 0 4 memory 1Gi/4Gi")
        ),
        pytest.param(("namespaces", "-n", "team"), ("team 1 1 4 memory 1Gi/4Gi 2 pods: 40 memory",)),
        pytest.param(("top", "pods", "-n", "team", "--once"), ("1Gi 4Gi 25%",)),
    ],
)
async def test_of_the_namespace_that_is_asked_for_all_is_shown(
    cluster: WebCluster, client: KubeClient, command: tuple[str, ...], lines: tuple[str, ...]
) -> None:
    text = await said(client, *command, own="default")
    for line in lines:
        assert line in text
    assert "pods that wait are not shown" not in text
    assert PODS not in cluster.asked, "those of others do not matter"


@pytest.mark.parametrize(
    ("command", "line"),
    [
        pytest.param(("pods", "-A"), "team big Waiting - - 20 memory", id="pods"),
        pytest.param(("namespaces",), "team 1 1 4 memory 1Gi/4Gi 2 pods: 40 memory", id="namespaces"),
        pytest.param(("inspect",), "team/mine: 4, uses 1Gi of 4Gi", id="inspect"),
        pytest.param(("top", "--once"), "1Gi 4Gi 25%", id="top"),
    ],
)
async def test_of_all_namespaces_the_own_one_is_shown_and_the_rest_is_said_to_be_unknown(
    client: KubeClient, command: tuple[str, ...], line: str
) -> None:
    text = await said(client, *command)
    assert line in text
    assert "pods that wait are not shown, but for those of namespace team: 403" in text
    assert "others" not in text


async def test_ages_of_pods_of_the_own_namespace_are_known(client: KubeClient) -> None:
    text = await said(client, "pods", "-A")
    assert "are not known, but for those of namespace team: 403" in text


async def test_a_pod_of_the_own_namespace_counts_before_its_plugin_reports_it(
    cluster: WebCluster, client: KubeClient
) -> None:
    new = pending_pod_object("team/new", 6, node="gpu-1", card="GPU-gpu-1-0")
    cluster.put(PODS, {**new, "status": {"phase": "Running"}})
    assert "team/new: 6" in await said(client, "inspect")


async def test_status_has_the_pods_of_the_own_namespace(client: KubeClient) -> None:
    text = await said(client, "status")
    assert "2 pods (team/big, team/bigger): no node yet for the units that they ask for" in text
    assert "pods of other namespaces that wait" in text


async def test_why_knows_who_of_the_own_namespace_comes_first(
    cluster: WebCluster, client: KubeClient
) -> None:
    earlier = pending_pod_object("team/big", 20, creationTimestamp="2026-01-02T02:00:00Z")
    cluster.put(PODS, earlier)
    document = json.loads(
        printed(await run_command(client, "why", "bigger", "-n", "team"), "why", "bigger", "-o", "json")
    )
    (ahead,) = [remedy for remedy in document["remedies"] if remedy["code"] == "QueueAhead"]
    assert ahead["pods"] == ["team/big"]
    assert "403" in document["unread"]["Pending pods of other namespaces"]


async def test_why_knows_names_of_the_own_namespace(client: KubeClient) -> None:
    with pytest.raises(CannotLookError, match="did you mean bigger"):
        await run_command(client, "why", "bigge", "-n", "team")


async def test_where_no_pods_may_be_listed_the_first_refusal_is_said(client: KubeClient) -> None:
    text = await said(client, "pods", "-A", own="others")
    assert "pods that wait are not shown: the API server does not list /api/v1/pods: 403" in text
