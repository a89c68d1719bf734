"""The extender's log has the level that the policies of all nodes ask for, without a restart."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator

import pytest
from msgspec.structs import replace
from tests.fakes.api_server import SHARE_NODES, FakeApi, fake_api
from tests.samples.extender import share_node, share_node_json

from gpushare_core.kube.client import KubeClient
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.text.json_object import Json
from gpushare_extender.cluster.log_levels import LogLevels
from gpushare_extender.cluster.watchers import WatchHealth, watch_share_nodes


def asking(name: str, level: str | None) -> Json:
    body = share_node_json(name)
    return {**body, "spec": {**body["spec"], **({"extenderLogLevel": level} if level else {})}}


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    logger = logging.getLogger()
    before = logger.level
    yield logger
    logger.setLevel(before)


@pytest.fixture
async def api(root: logging.Logger) -> AsyncIterator[FakeApi]:
    """A cluster that an extender with ``--log-level error`` follows."""
    root.setLevel("ERROR")
    async with fake_api() as fake, KubeClient(fake.credentials()) as client:
        following = watch_share_nodes(
            client, Ledger(), WatchHealth("gpusharenodes"), log_levels=LogLevels("error")
        )
        task = asyncio.create_task(following)
        yield fake
        task.cancel()


async def test_the_most_verbose_of_all_nodes_counts(api: FakeApi, root: logging.Logger) -> None:
    async def until(level: int) -> None:
        await api.wait_for(f"level {level}", lambda: root.level == level)

    api.put(SHARE_NODES, asking("n1", "warning"))
    await until(logging.WARNING)
    api.put(SHARE_NODES, asking("n2", "debug"))
    await until(logging.DEBUG)
    api.put(SHARE_NODES, asking("n2", None))
    await until(logging.INFO)
    api.put(SHARE_NODES, asking("n2", "louder than this version knows"))
    api.put(SHARE_NODES, asking("n1", "error"))
    await until(logging.INFO)
    api.delete(SHARE_NODES, "n2")
    await until(logging.ERROR)
    api.put(SHARE_NODES, asking("n1", "debug"))
    await until(logging.DEBUG)
    api.delete(SHARE_NODES, "n1")
    await until(logging.ERROR)


class CountedLevel(str):
    """A level that knows how often levels like it are looked at."""

    looks = 0

    def __hash__(self) -> int:
        CountedLevel.looks += 1
        return super().__hash__()


def test_what_all_other_nodes_ask_for_is_not_looked_at_again(root: logging.Logger) -> None:
    """Every node of a policy changes when its level does, and thousands appear in a roll-out."""
    levels, nodes, before = LogLevels(), 500, CountedLevel.looks
    for level in ("debug", "warning"):
        for number in range(nodes):
            levels.set(replace(share_node(f"n{number}"), log_level=CountedLevel(level)))
    assert root.level == logging.WARNING
    for number in range(nodes):
        levels.drop(f"n{number}")
    assert root.level == logging.INFO
    assert CountedLevel.looks - before < 3 * nodes * 10
