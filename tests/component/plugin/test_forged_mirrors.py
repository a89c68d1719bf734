"""A pod that its author has annotated as the mirror of another one: that changes no book."""

import pytest
from tests.component.plugin.test_lost_assignments import RUNNING
from tests.fakes.api_server import PODS, SHARE_NODES
from tests.fakes.plugin_node import Node
from tests.samples.plugin import container, pod_json

from gpushare_core.api.names import MIRROR_ANNOTATION


async def victim(node: Node, units: int = 12) -> None:
    """It runs, is in all books, and its kubelet has shown all pods."""
    await node.run_pod(pod_json("victim", container(units=units)) | {"status": RUNNING})
    await node.until("it in the status", lambda: "victim" in node.on_cards())
    await node.until("agreement", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    await node.until(
        "its kubelet's word",
        lambda: node.agent is not None and node.agent.state.listed_since_restart.complete,
    )


async def forge(node: Node, uid: str = "uid-victim") -> None:
    pod = pod_json("forged", container())
    pod["metadata"]["annotations"] = {MIRROR_ANNOTATION: uid}
    node.api.put(PODS, pod)
    await node.until("the forged one", lambda: node.knows("forged"))


async def test_nobody_is_alarmed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpushare_plugin.decide.report.self_audit.APART_SECONDS", 0.0)
    await victim(node)
    await forge(node)
    await node.run_pod(pod_json("next", container(units=4)))  # a round, and with it an audit, after that
    await node.until("the next one", lambda: "next" in node.on_cards())
    await node.until("agreement", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    conditions = [it["status"].get("conditions", []) for it in node.api.history(SHARE_NODES)]
    assert "OverCommitted" not in {condition["reason"] for found in conditions for condition in found}


async def test_what_the_other_one_had_is_free_when_that_has_ended(node: Node) -> None:
    """The kubelet writes its checkpoint again only when it assigns something."""
    await node.run_pod(pod_json("other", container(units=16)) | {"status": RUNNING})
    await victim(node)
    await forge(node)
    node.end_pod("victim")
    await node.until("its end", lambda: "victim" not in node.on_cards())
    await node.run_pod(pod_json("next", container(units=12)))
