"""While pods keep another unit or mode from coming, a node takes no new pods: an amount means one size."""

from typing import Any

import pytest
from tests.component.plugin.test_lost_assignments import RUNNING
from tests.component.plugin.test_mixed_with_extender import bind
from tests.component.plugin.test_with_extender import extender
from tests.fakes.api_server import PODS
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import NODE, annotation, container, name_of, pod_json

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS
from gpushare_extender.extender import Extender
from gpushare_plugin.devices.simulated.source import card_uuid

__all__ = ["extender"]

MEMORY = GPUSHARE.memory_resource
FIRST, SECOND = (card_uuid(NODE, index) for index in range(2))
BLOCKED = ("True", "PodsHoldUnits")
DRAINS = "takes no new pods until the pods with units of 1Gi are gone"
TOO_FINE = {"source": "Simulated", "simulated": [{"count": 2, "memory": "2Ti"}]}


async def changing(node: Node, *, units: int = 4, unit: str = "512Mi", **spec: Any) -> None:
    """Pod ``a`` runs with units of 1Gi, and another unit is asked for."""
    pod = pod_json("a", container(units=units), annotation=annotation({"main": {FIRST: units}}))
    await node.run_pod(pod | {"status": RUNNING})
    node.share(unit, **spec)
    await node.until("the block", lambda: node.condition("UnitChangeBlocked") == BLOCKED)


async def test_a_pod_that_comes_past_the_extender_is_refused_and_the_node_changes_when_it_is_drained(
    node: Node,
) -> None:
    await changing(node)
    with pytest.raises(AdmissionError, match=DRAINS):
        await node.run_pod(pod_json("b", container(units=4)))
    node.api.delete(PODS, "b", "default")
    assert list(node.on_cards()) == ["a"]
    node.end_pod("a")
    await node.until("the new unit", lambda: node.share_node.status.memory_unit == "512Mi")
    await node.kubelet.until("the finer list", lambda it: len(it.devices) == 64)
    admitted = await node.run_pod(pod_json("c", container(units=4)))
    assert admitted.variables["main"]["GPUSHARE_MEMORY_MIB"] == "2048"


async def test_the_pods_in_the_way_are_named(node: Node) -> None:
    for name in ("c", "b"):
        await node.run_pod(pod_json(name, container(units=1)))
    await changing(node)
    message = node.message("UnitChangeBlocked")
    assert "these 3 pods are gone, which hold units of 1Gi: default/a, default/b, default/c;" in message
    assert message.endswith("until then no new pod gets units here")


async def test_a_pod_that_was_promised_units_before_gets_them(node: Node) -> None:
    """It was bound, and its kubelet had not admitted it yet."""
    late = pod_json("late", container(units=4), annotation=annotation({"main": {SECOND: 4}}))
    node.api.put(PODS, late)
    await node.until("the plugin knows it", lambda: node.knows("late"))
    await changing(node)
    assert "default/a, default/late" in node.message("UnitChangeBlocked")
    admitted = await node.kubelet.admit(late)
    assert admitted.variables["main"]["GPUSHARE_MEMORY_MIB"] == "4096"
    assert admitted.variables["main"]["GPUSHARE_CARD"] == SECOND


async def test_a_promise_of_another_unit_is_none(node: Node) -> None:
    """Its amount is of the unit that is to come."""
    await changing(node)
    text = annotation({"main": {SECOND: 4}}, unit="512Mi")
    with pytest.raises(AdmissionError, match=DRAINS):
        await node.run_pod(pod_json("b", container(units=4), annotation=text))


async def test_a_container_that_starts_anew_after_the_kubelet_lost_its_checkpoint_gets_its_units(
    node: Node,
) -> None:
    await changing(node)
    node.kubelet.forget_units(name_of("a"))
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "KubeletForgot"))
    variables = await node.kubelet.restart_container(name_of("a"), "main", 4)
    assert variables["GPUSHARE_CARD"] == FIRST


async def test_a_kubelet_that_does_not_ask_which_units_to_take_gives_none_to_a_new_pod(node: Node) -> None:
    """It does not where it needs all that it calls free."""
    await changing(node)
    held = node.kubelet.pods[name_of("a")].held["main"]
    free = sorted(set(node.kubelet.devices) - {*held})
    new = pod_json("b", container(units=len(free)))
    node.api.put(PODS, new)
    await node.until("the plugin knows it", lambda: node.knows("b"))
    with pytest.raises(AdmissionError, match=DRAINS):
        await node.kubelet.allocate(MEMORY, free)


async def test_with_keep_the_node_goes_on_by_the_former_unit(node: Node) -> None:
    await changing(node, unitChange="Keep")
    assert "no new pod" not in node.message("UnitChangeBlocked")
    admitted = await node.run_pod(pod_json("b", container(units=4)))
    assert admitted.variables["main"]["GPUSHARE_MEMORY_MIB"] == "4096"


async def test_back_to_the_former_unit_opens_the_node_at_once(node: Node) -> None:
    await changing(node)
    node.share("1Gi")
    await node.until("no block", lambda: node.condition("UnitChangeBlocked") == ("False", "NotBlocked"))
    await node.run_pod(pod_json("b", container(units=4)))


async def test_nobody_has_to_end_for_a_unit_that_will_be_refused(node: Node) -> None:
    node.share(devices=TOO_FINE)
    await node.kubelet.until("the list", lambda it: len(it.devices) == 4096)
    await node.run_pod(pod_json("a", container(units=4)))
    await node.until("the pod", lambda: list(node.on_cards()) == ["a"])
    node.share("1M", devices=TOO_FINE)
    await node.until("the refusal", lambda: node.condition("UnitTooFine") == ("True", "TooManyUnits"))
    assert node.condition("UnitChangeBlocked") == ("False", "NotBlocked")
    assert "memoryUnit 1M makes" in node.message("UnitTooFine")
    await node.run_pod(pod_json("b", container(units=4)))


MODES: list[Any] = [
    pytest.param({"mode": "Slices", "slicesPerCard": 2}, id="Slices"),
    pytest.param({"mode": "Exclusive"}, id="Exclusive"),
    pytest.param({"mode": "Mixed", "slicesPerCard": 2}, id="Mixed"),
    pytest.param({"unit": "512Mi"}, id="another unit"),
]


@pytest.mark.parametrize("asked", MODES)
async def test_the_extender_says_why_and_opens_the_node_when_it_has_changed(
    node: Node, extender: Extender, asked: dict[str, Any]
) -> None:
    assert await bind(node, extender, "a", container(units=4)) == ""
    await node.kubelet.admit(node.api.pod("a"))
    node.share(**asked)
    await node.until("the block", lambda: node.condition("UnitChangeBlocked") == BLOCKED)
    ledger = extender.api.ledger
    await node.until("closed", lambda: NODE not in ledger.greatest[MEMORY])
    assert "no new pods until the pods with units of 1Gi are gone" in await bind(
        node, extender, "b", container(units=4)
    )
    node.end_pod("a")
    await node.until("the change", lambda: node.condition("UnitChangeBlocked") == ("False", "NotBlocked"))
    await node.until("open", lambda: any(NODE in nodes for nodes in ledger.greatest.values()))


@pytest.mark.parametrize("dialect", sorted(DIALECTS.keys() - {"tuya.com"}))
async def test_in_every_dialect(idle_node: Node, dialect: str) -> None:
    node, memory = idle_node, DIALECTS[dialect].memory_resource
    node.share(dialect=dialect)
    await node.start_plugin()
    await node.until_registered()
    await node.run_pod(pod_json("a", container(units=4, resource=memory)))
    node.share("512Mi", dialect=dialect)
    await node.until("the block", lambda: node.condition("UnitChangeBlocked") == BLOCKED)
    with pytest.raises(AdmissionError, match=DRAINS):
        await node.run_pod(pod_json("b", container(units=4, resource=memory)))
