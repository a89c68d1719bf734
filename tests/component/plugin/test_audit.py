"""A plugin whose kubelet holds what it should not says so, and says when it is over."""

import asyncio

import pytest
from tests.fakes.api_server import PODS, SHARE_NODES
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, ids, name_of, pod_json

from gpushare_plugin.devices.simulated.source import card_uuid
from gpushare_plugin.reconcile.reconciler import NodeReconciler

CARDS = [card_uuid(NODE, index) for index in range(2)]


async def is_read_again(node: Node) -> None:
    """The kubelet's books are read whenever a pod has gone."""
    node.api.put(PODS, pod_json("passing", container(units=1)))
    await node.until("the passing pod", lambda: node.knows("passing"))
    node.api.delete(PODS, "passing", "default")


async def test_units_on_another_card_than_the_container_was_told_are_named(node: Node) -> None:
    text = annotation({"main": {CARDS[0]: 12}})
    admitted = await node.run_pod(pod_json("a", container(units=12), annotation=text))
    await node.until("the pod", lambda: node.on_cards() == {"a": {CARDS[0]: 12}})
    await node.until("agreement", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    right = admitted.held["main"]
    admitted.held["main"] = ids(*range(16, 28))  # of the other card
    await is_read_again(node)
    await node.until("the word", lambda: node.condition("LedgerInSync")[0] == "False")
    assert node.condition("LedgerInSync")[1] == "BooksDiffer"
    message = node.message("LedgerInSync")
    assert "default/a" in message
    assert CARDS[1] in message
    assert "delete the pod" in message
    admitted.held["main"] = right
    await is_read_again(node)
    await node.until("agreement again", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    assert node.kubelet.pods[name_of("a")] is admitted


async def test_a_pod_that_the_kubelet_started_without_units_is_named(node: Node) -> None:
    """It was bound past the scheduler before the plugin registered: PodResources list it with nothing."""
    admitted = await node.kubelet.admit(pod_json("blind", container()))
    body = pod_json("blind", container(units=4))
    node.api.put(PODS, {**body, "status": {"phase": "Running", "startTime": "2026-11-21T10:00:00Z"}})
    await node.until("the word", lambda: "default/blind" in node.message("LedgerInSync"))
    assert node.condition("LedgerInSync") == ("False", "BooksDiffer")
    assert "asks for 4 of gpushare.io/memory" in node.message("LedgerInSync")
    assert "let the scheduler choose its node" in node.message("LedgerInSync")
    assert admitted.held == {}
    node.end_pod("blind")
    await node.until("agreement", lambda: node.condition("LedgerInSync") == ("True", "InSync"))


async def test_a_node_that_is_not_shared_any_more_is_at_rest(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changed a moment ago was to be audited soon, and now never will be."""
    rounds, reconcile = [], NodeReconciler.reconcile

    async def counted(reconciler: NodeReconciler) -> bool:
        rounds.append(reconciler)
        return await reconcile(reconciler)

    await node.until("agreement", lambda: node.condition("LedgerInSync") == ("True", "InSync"))
    monkeypatch.setattr("gpushare_plugin.decide.report.self_audit.APART_SECONDS", 3600.0)
    await node.run_pod(pod_json("a", container(units=4)))
    await node.until("the pod", lambda: bool(node.on_cards()))
    node.api.delete(SHARE_NODES, NODE)
    await node.kubelet.until("an empty list", lambda it: it.devices == {})
    monkeypatch.setattr("gpushare_plugin.decide.report.self_audit.APART_SECONDS", 0.0)
    monkeypatch.setattr(NodeReconciler, "reconcile", counted)
    node.api.put(PODS, pod_json("b", container(units=1)))
    await node.until("a round", lambda: bool(rounds))
    await asyncio.sleep(1.0)  # nothing happens: a loop without end makes hundreds of rounds
    assert len(rounds) < 20
