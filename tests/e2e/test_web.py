"""``kubectl gpushare web`` in a real browser: the page shows what the cluster has, and follows it."""

import asyncio
from collections.abc import Callable, Iterator

import pytest
from tests.e2e.command_line import served_page
from tests.e2e.fixtures import WORKERS
from tests.e2e.observe import PATIENCE, PODS, SHARE_NODES, Json, get, watch_until
from tests.e2e.outcomes import is_refused, is_running
from tests.e2e.workloads import create, pod
from tests.fakes.chromium import Tab
from tests.fakes.web_page import READY, figures, table_rows

from gpushare_localcluster.cluster import LocalCluster

pytestmark = [pytest.mark.e2e, pytest.mark.connected, pytest.mark.usefixtures("shared_policy")]

SNAPSHOTS = (
    "performance.getEntriesByType('resource').filter((entry) => entry.name.endsWith('/snapshot')).length"
)
"""How often the page has read everything."""


@pytest.fixture(scope="module")
def address(cluster: LocalCluster) -> Iterator[str]:
    with served_page(cluster) as url:
        yield url


async def until(tab: Tab, condition: str, what: str) -> None:
    """Waits until a JavaScript expression is true of the page."""
    try:
        await tab.until(condition, within=PATIENCE)
    except AssertionError as error:
        raise AssertionError(f"{what}: {error}; the page says: {await tab.text('body')}") from None


async def open_page(tab: Tab, address: str) -> None:
    await tab.resize(1440, 1400)
    await tab.open(address)
    await until(tab, READY, "the page shows the cluster")


def real_cards(cluster: LocalCluster) -> dict[tuple[str, str], Json]:
    """Returns the cards of the cluster by node and index."""
    return {
        (node["metadata"]["name"], str(card["index"])): card
        for node in get(cluster, SHARE_NODES)["items"]
        for card in node["status"]["cards"]
    }


def await_pod(cluster: LocalCluster, namespace: str, holds: Callable[[Json], bool], what: str) -> Json:
    """Returns the only pod of a namespace once ``holds`` is true of it."""
    (found,) = watch_until(
        cluster,
        PODS.format(namespace=namespace),
        lambda pods: any(holds(found) for found in pods),
        what=what,
        describe=lambda pods: [found["status"] for found in pods],
    )
    return found


async def test_the_first_view_has_the_nodes_and_cards_of_the_cluster(
    cluster: LocalCluster, address: str, tab: Tab
) -> None:
    cards = await asyncio.to_thread(real_cards, cluster)
    nodes = {node for node, _ in cards}
    assert nodes >= set(WORKERS)
    await open_page(tab, address)
    assert (await figures(tab))[0] == f"{len(cards)} cards on {len(nodes)} nodes"
    label = await tab.evaluate("document.getElementById('canvas').getAttribute('aria-label')")
    assert label == f"Map of {len(nodes)} nodes, coloured by Held"
    server = cluster.kubectl("config", "view", "-o", "jsonpath={.clusters[0].cluster.server}")
    assert await tab.text("#where") == server

    await tab.click("#views [data-value=table]")
    await until(tab, f"document.querySelectorAll('.row').length === {len(cards)}", "the table has all cards")
    assert {(row[0], row[1]) for row in await table_rows(tab)} == set(cards)
    await tab.click(".row .c-node")
    await until(tab, "!document.getElementById('detail').hidden", "a card is shown")
    node, index, *_ = (await table_rows(tab))[0]
    assert cards[node, index]["uuid"] in await tab.text("#detail")
    assert tab.complaints() == []


async def test_units_of_a_pod_come_and_go_while_the_page_is_open(
    cluster: LocalCluster, address: str, tab: Tab, namespace: str
) -> None:
    await open_page(tab, f"{address}#view=table&namespace={namespace}")
    assert await table_rows(tab) == []
    await tab.evaluate("globalThis.isNotReloaded = true")

    await asyncio.to_thread(create, cluster, namespace, [pod("shared", {"main": 5})])
    running = await asyncio.to_thread(await_pod, cluster, namespace, is_running, "the pod runs")
    await until(
        tab, "document.querySelector('.row .c-held')?.innerText === '5/16'", "the pod's card is in the table"
    )
    (row,) = await table_rows(tab)
    assert (row[0], row[-1]) == (running["spec"]["nodeName"], f"{namespace}/shared")
    assert (await figures(tab))[:2] == ["1 card found on 1 node", "5/16 units of 1Gi held, 31%"]
    card = (await asyncio.to_thread(real_cards, cluster))[row[0], row[1]]
    assert card["uuid"] in running["metadata"]["annotations"]["gpushare.io/allocation"]

    await asyncio.to_thread(cluster.kubectl, "delete", "pod", "shared", "-n", namespace, "--wait=false")
    await until(tab, "document.querySelectorAll('.row').length === 0", "nothing of the pod is in the table")
    assert await tab.evaluate("globalThis.isNotReloaded")
    assert await tab.evaluate(SNAPSHOTS) == 1, "what changed came by itself"
    assert tab.complaints() == []


async def test_a_pod_that_fits_no_card_waits_and_a_click_says_why(
    cluster: LocalCluster, address: str, tab: Tab, namespace: str
) -> None:
    await open_page(tab, address)
    listed = f'#waiting [data-pod="{namespace}/large"]'
    assert namespace not in await tab.text("#waiting")

    await asyncio.to_thread(create, cluster, namespace, [pod("large", {"main": 17})])
    await asyncio.to_thread(await_pod, cluster, namespace, is_refused, "the pod is refused")
    await until(tab, f"document.querySelector('{listed}')", "the pod is in the list of those that wait")
    assert "17 memory" in await tab.text(listed)
    await tab.click(listed)
    await until(tab, "document.querySelector('#detail .answer')", "the page says why the pod waits")
    said = await tab.text("#detail")
    assert "no card has 17 units" in said
    assert "What would help" in said

    await asyncio.to_thread(cluster.kubectl, "delete", "pod", "large", "-n", namespace, "--wait=false")
    await until(tab, f"!document.querySelector('{listed}')", "the pod has left the list")
    assert await tab.evaluate(SNAPSHOTS) == 1
    assert tab.complaints() == []
