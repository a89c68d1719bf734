"""Prometheus reads the plugin of a running node; the log's level follows the policy meanwhile."""

import logging
from collections.abc import Iterator

import pytest
from tests.component.plugin.test_health_server import call
from tests.fakes.api_server import SHARE_NODES
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, container, pod_json

from gpushare_core.process.metrics import CONTENT_TYPE

READ = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def level() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    before = root.level
    yield root
    root.setLevel(before)


async def test_units_of_a_pod_and_the_kubelets_calls_are_shown(node: Node, unused_tcp_port: int) -> None:
    node.health_port = unused_tcp_port
    await node.restart_plugin()
    await node.run_pod(pod_json("a", container(units=4)))
    await node.until("the status", lambda: node.share_node.status.units.allocated == 4)
    head, _, text = (await call(unused_tcp_port, READ)).partition("\r\n\r\n")
    assert f"Content-Type: {CONTENT_TYPE}\r\n" in head
    assert f'gpushare_units{{node="{NODE}",resource="memory",state="allocated"}} 4.0' in text
    assert f'gpushare_cards{{health="Healthy",node="{NODE}"}} 2.0' in text
    assert f'gpushare_plugin_registered{{node="{NODE}"}} 1.0' in text
    assert 'gpushare_plugin_kubelet_call_duration_seconds_count{verb="Allocate"} 1.0' in text
    assert 'gpushare_watch_listed{collection="pods"} 1.0' in text


async def test_the_log_level_follows_the_policy_without_a_restart(node: Node, level: logging.Logger) -> None:
    node.share(logLevel="debug")
    await node.until("level debug", lambda: level.level == logging.DEBUG)
    node.share(logLevel="error")
    await node.until("level error", lambda: level.level == logging.ERROR)
    node.api.delete(SHARE_NODES, NODE)
    await node.until("the level of the start", lambda: level.level == logging.INFO)
