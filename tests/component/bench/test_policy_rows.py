"""What the rows about the operator write and wait for, beside a stand-in for the API server."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from bench.cluster.cluster_objects import Layout, node_name
from bench.cluster.concurrency import for_each
from bench.fill_cluster import create_node, fill, fill_share_nodes
from bench.peers.programs import api_server
from bench.rows import policy

from gpushare_core.api.names import POLICY_LABEL
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.text.json_object import Json

COUNT = 4


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[KubeClient]:
    async with api_server(tmp_path) as kubeconfig, KubeClient(from_kubeconfig(kubeconfig)) as client:
        yield client


@pytest.fixture
async def bare(client: KubeClient) -> KubeClient:
    """Of an API server that has bare nodes."""
    await for_each(range(COUNT), lambda index: create_node(client, policy.bare_node(index)))
    return client


async def items(client: KubeClient, path: str) -> list[Json]:
    found: list[Json] = (await client.get(path))["items"]
    return found


async def test_bare_writes_leave_nothing_that_the_operator_would_take_for_its_own(bare: KubeClient) -> None:
    assert await policy.timed_bare_writes(bare, COUNT) > 0
    assert await items(bare, paths.SHARE_NODES) == []
    assert {node["metadata"]["labels"][policy.PROBE_LABEL] for node in await items(bare, paths.NODES)} == {
        "yes"
    }


async def test_a_policy_is_applied_when_status_share_nodes_and_labels_are_there(bare: KubeClient) -> None:
    await bare.create(paths.POLICIES, policy.policy())
    assert await policy.missing(bare, COUNT) == f"its status counts 0 of {COUNT} nodes"
    await bare.merge(f"{paths.POLICIES}/{policy.NAME}/status", {"status": {"nodes": {"enabled": COUNT}}})
    assert await policy.missing(bare, COUNT) == "the last of the nodes is not labelled"
    first, *between, last = [node["metadata"]["name"] for node in await items(bare, paths.NODES)]
    await take_into_the_policy(bare, [last])
    assert await policy.missing(bare, COUNT) == f"0 of {COUNT} GPUShareNodes are there"
    for name in (first, *between, last):
        await bare.create(paths.SHARE_NODES, {"metadata": {"name": name}})
    assert await policy.missing(bare, COUNT) == f"1 of {COUNT} nodes are labelled"
    await take_into_the_policy(bare, [first, *between])
    assert await policy.missing(bare, COUNT) == ""


async def take_into_the_policy(client: KubeClient, names: list[str]) -> None:
    for name in names:
        await client.merge(f"{paths.NODES}/{name}", {"metadata": {"labels": {POLICY_LABEL: policy.NAME}}})


async def test_changes_come_evenly_and_go_round(bare: KubeClient) -> None:
    for node in await items(bare, paths.NODES):
        await bare.create(paths.SHARE_NODES, {"metadata": {"name": node["metadata"]["name"]}})
    made = await policy.change(bare, COUNT, seconds=0.6)
    assert 1 <= made <= 0.6 * policy.CHANGES + 1, "a machine that stalls makes fewer, never more"
    reported = [item["status"] for item in await items(bare, paths.SHARE_NODES) if "status" in item]
    messages = {status["conditions"][0]["message"] for status in reported}
    assert len(messages) == min(made, COUNT)


async def test_share_nodes_that_the_operator_took_back_are_there_again(client: KubeClient) -> None:
    layout = Layout(nodes=3, pods_per_node=2)
    await fill(client, layout)
    before = await items(client, paths.SHARE_NODES)
    await client.delete(f"{paths.SHARE_NODES}/{node_name(1)}")
    await fill_share_nodes(client, layout)
    assert holders(await items(client, paths.SHARE_NODES)) == holders(before)
    assert len(await items(client, paths.PODS)) == 6


def holders(share_nodes: list[Json]) -> dict[str, list[str]]:
    """Returns the UIDs of the pods that each status counts."""
    return {
        item["metadata"]["name"]: [pod["uid"] for card in item["status"]["cards"] for pod in card["pods"]]
        for item in share_nodes
    }
