"""What is read for the page, and how old it is."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from tests.component.web.served import WITHIN, served
from tests.fakes.web_cluster import WebCluster
from tests.samples.shared_cards import card, share, share_node_object

from gpushare_cli.decide.objects.node_state import NodeState
from gpushare_cli.decide.web.node_rows import PageReading, PageRow, node_rows
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.shared_cards import read_shared_cards
from gpushare_cli.gather.web import followed_nodes
from gpushare_cli.gather.web.followed_nodes import FollowedNodes, NamedRaw
from gpushare_cli.gather.web.page_reading import PageReader
from gpushare_cli.web.gathering import Gathering, Publication
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import NoCredentialsError
from gpushare_core.kube.follow import Listed
from gpushare_core.kube.paths import PODS, SHARE_NODES
from gpushare_core.process.clock import utc_now


def put_share(cluster: WebCluster) -> None:
    """A pod of team-b gets units of a card of gpu-2."""
    cluster.put(SHARE_NODES, share_node_object("gpu-2", card(0, 16, share("team-b/new", 4), node="gpu-2")))


async def watched(cluster: WebCluster) -> None:
    """Waits until the probe, the list and the watch have been asked for."""
    async with asyncio.timeout(WITHIN):
        while cluster.asked.count(SHARE_NODES) < 3:  # noqa: ASYNC110  a number alone says it
            await asyncio.sleep(0.01)


@asynccontextmanager
async def following(cluster: WebCluster) -> AsyncIterator[FollowedNodes]:
    """With all that it asks for to begin with."""
    async with KubeClient(cluster.credentials()) as client:
        followed = FollowedNodes(client)
        await followed.refresh()
        await watched(cluster)
        yield followed
        await followed.forget()


async def test_without_rights_to_watch_nodes_are_listed_each_time(cluster: WebCluster) -> None:
    cluster.unwatched = True
    async with following(cluster) as followed:
        put_share(cluster)
        await followed.refresh()
        assert b"team-b" in bytes(followed.nodes["gpu-2"])


async def test_a_watch_that_says_nothing_is_not_trusted_for_long(
    cluster: WebCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.muted = True
    async with following(cluster) as followed:
        put_share(cluster)
        await asyncio.sleep(0.05)
        await followed.refresh()
        assert b"team-b" not in bytes(followed.nodes["gpu-2"])
        monkeypatch.setattr(followed_nodes, "SILENT_SECONDS", 0.0)
        await followed.refresh()
        assert b"team-b" in bytes(followed.nodes["gpu-2"])


async def test_a_list_that_does_not_come_is_no_knowledge(
    cluster: WebCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though one object can be listed: a proxy may refuse large answers."""
    async with following(cluster) as followed:
        monkeypatch.setattr(followed_nodes, "LIST_SECONDS", 0.5)
        monkeypatch.setattr(FollowedNodes, "_probe", lambda _nodes: asyncio.sleep(0))
        cluster.refused = 410
        await cluster.stop()
        await cluster.start()
        async with asyncio.timeout(WITHIN):
            while followed._missed is None:  # noqa: ASYNC110  nothing is set then
                await asyncio.sleep(0.01)
            with pytest.raises(CannotLookError, match=r"does not list .* within 0 s: 410"):
                await followed.refresh()


async def test_a_login_that_expires_between_rounds_is_not_said_in_the_terminal(
    cluster: WebCluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def expiring(*_arguments: object, **_more: object) -> AsyncIterator[Listed[NamedRaw]]:
        yield Listed([])
        await asyncio.sleep(0.05)
        raise NoCredentialsError("expired")

    async with KubeClient(cluster.credentials()) as client:
        followed = FollowedNodes(client)
        with monkeypatch.context() as patched:
            patched.setattr(followed_nodes, "follow", expiring)
            await followed.refresh()
            await asyncio.sleep(0.2)
        await followed.refresh()
        gc.collect()
        assert "never retrieved" not in caplog.text
        assert followed.nodes
        await followed.forget()


async def test_where_nobody_looks_nothing_is_followed(cluster: WebCluster) -> None:
    async with KubeClient(cluster.credentials()) as client:
        reader, publication = PageReader(client=client, now=utc_now), Publication()
        gathering = Gathering(
            reader=reader,
            publication=publication,
            server="",
            rack_label="",
            now=utc_now,
            pause=0.01,
            late=0.1,
        )
        await gathering.first()
        running = asyncio.create_task(gathering.run())
        async with asyncio.timeout(WITHIN):
            while reader._followed._task is not None:  # noqa: ASYNC110  nothing is set then
                await asyncio.sleep(0.01)
            assert publication.share_nodes is None
            cluster.put(SHARE_NODES, share_node_object("gpu-2", card(0, 16, share("a/new", 4), node="gpu-2")))
            with publication:
                while not publication.share_nodes:
                    await publication.changed(publication.state.version)
        assert b"a/new" not in bytes(publication.share_nodes["gpu-1"])
        assert b'"uid":"a/new"' in bytes(publication.share_nodes["gpu-2"]).replace(b" ", b"")
        running.cancel()
        await asyncio.wait({running})
        await reader.close()


async def test_facts_of_nodes_are_gone_when_rows_are_made(
    cluster: WebCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both together of 5,000 nodes would take memory for nothing."""
    samples, kept = _node_states(), []

    def noted(reading: PageReading, before: Mapping[str, PageRow]) -> dict[str, PageRow]:
        kept.append(_node_states() - samples)
        return node_rows(reading, before)

    monkeypatch.setattr("gpushare_cli.web.gathering.node_rows", noted)
    async with served(cluster):
        assert kept[0] == 0


async def test_a_round_lists_the_pods_that_wait_once(cluster: WebCluster) -> None:
    async with KubeClient(cluster.credentials()) as client:
        reader = PageReader(client=client, now=utc_now)
        found = await reader.read()
        await reader.close()
    assert [pod.name for pod in found.facts.waiting] == ["team-b/large"]
    assert [pod.metadata.name for pod in found.reading.cluster.pending] == ["large"]
    assert cluster.asked.count(PODS) == 3, "and those of each of two nodes"


async def test_a_round_that_ends_as_it_begins_leaves_no_warning(cluster: WebCluster) -> None:
    """As by Ctrl-C: Python would say in the terminal what was never awaited."""
    async with KubeClient(cluster.credentials()) as client:
        reading = asyncio.create_task(read_shared_cards(client))
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait({reading})
    gc.collect()


def _node_states() -> int:
    """Returns how many of them are in memory."""
    gc.collect()
    return sum(isinstance(found, NodeState) for found in gc.get_objects())


async def test_what_was_computed_while_nobody_looked_makes_no_pause(
    cluster: WebCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = 0.0
    monkeypatch.setattr(time, "process_time", lambda: computed)
    publication = Publication()
    async with KubeClient(cluster.credentials()) as client:
        gathering = Gathering(
            reader=PageReader(client=client, now=utc_now),
            publication=publication,
            server="",
            rack_label="",
            now=utc_now,
            pause=0.01,
        )
        running = asyncio.create_task(gathering.run())
        await asyncio.sleep(0.05)
        computed = 1_000.0
        with publication:
            async with asyncio.timeout(WITHIN / 2):
                await publication.changed(0)
                cluster.put(
                    SHARE_NODES, share_node_object("gpu-2", card(0, 16, share("a/new", 4), node="gpu-2"))
                )
                await publication.changed(1)
        running.cancel()
        await asyncio.wait({running})
        await gathering.reader.close()
