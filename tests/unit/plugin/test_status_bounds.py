"""Whatever cards, drivers and kubelets say: the status that follows is one that the API server takes."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.samples.hidden import HIDDEN, WRITABLE
from tests.samples.plugin import card, layout, pod, share_node

from gpushare_core.api import bounds, crd
from gpushare_core.api.conditions import condition_false
from gpushare_core.api.share_node import CardFault, GPUShareNode, NodeStatus
from gpushare_core.placement.units import MemoryUnit
from gpushare_core.text.json_object import Json
from gpushare_core.text.printable import printable
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.offer.offering import Offering
from gpushare_plugin.decide.report.status import kept_status, node_status
from gpushare_plugin.decide.units.layout import lay_out
from gpushare_plugin.devices.inventory.inventory_file import read_inventory

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
ODD = f"{HIDDEN}é\U0001f4a5" * 1000
SINCE = "2026-11-21T12:00:00Z"
FAULT = CardFault(uuid="GPU-0", reason="Xid79", message=ODD, since=SINCE, last_seen=SINCE)


def status_schema(resource: crd.CustomResource) -> Json:
    (version,) = crd.definition(resource)["spec"]["versions"]
    schema: Json = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    return schema


def refusals(schema: Json, value: Any, at: str = "status") -> Iterator[str]:
    """Yields what the API server would say. Lengths are in characters, as it counts them."""
    if isinstance(value, str):
        if len(value) > schema.get("maxLength", len(value)):
            yield f"{at} is longer than {schema['maxLength']}"
        if "pattern" in schema and not in_python(schema["pattern"]).search(value):
            yield f"{at} is not {schema['pattern']}"
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            yield f"{at} has more than {schema['maxItems']} items"
        for item in value:
            yield from refusals(schema["items"], item, f"{at}[]")
    if isinstance(value, dict):
        if len(value) > schema.get("maxProperties", len(value)):
            yield f"{at} has more than {schema['maxProperties']} properties"
        for name, item in value.items():
            yield from refusals(schema.get("properties", {}).get(name, {}), item, f"{at}.{name}")


def in_python(pattern: str) -> re.Pattern[str]:
    """Go writes a character as ``\\x{202a}``, and its ``$`` is the end of the text."""
    return re.compile(re.sub(r"\\x\{([0-9a-f]{4})\}", r"\\u\1", pattern).removesuffix("$") + r"\Z")


def is_taken(status: NodeStatus) -> bool:
    return [*refusals(status_schema(crd.NODE), status.to_json())] == []


def odd_status() -> NodeStatus:
    return status_of(share_node())


def status_of(node: GPUShareNode) -> NodeStatus:
    first = replace(card(0), model=ODD, reason=ODD, healthy=False)
    strange = replace(pod("a"), name=PodName(ODD, ODD), uid=ODD)
    held = [PodAllocation(strange, {ODD: {"GPU-0": 4}}, {"GPU-0": 4})]
    states = [condition_false("CardsHealthy", "CardsUnhealthy", ODD)]
    return node_status(
        node,
        Offering(layout=layout(first, card(1))),
        held,
        states,
        faults=[FAULT, replace_uuid(FAULT, f"GPU-{HIDDEN}")],
        now=NOW,
    )


def replace_uuid(fault: CardFault, uuid: str) -> CardFault:
    return CardFault(uuid=uuid, reason=fault.reason, since=fault.since, last_seen=fault.last_seen)


def test_odd_words_are_made_fit() -> None:
    status = odd_status()
    assert is_taken(status)
    assert [fault.uuid for fault in status.faults] == ["GPU-0"]
    assert status.cards[0].model.startswith("\\u0000\\u0001")


def test_also_where_it_is_not_known_who_has_what() -> None:
    states = [condition_false("Registered", "DriverHung", ODD)]
    assert is_taken(kept_status(share_node(), states, faults=[FAULT], now=NOW))


def test_the_same_words_are_the_same_status() -> None:
    """Else it would be written for ever."""
    written = share_node(status=odd_status().to_json())
    assert status_of(written) == written.status


def test_as_many_cards_as_a_policy_can_simulate_are_taken() -> None:
    cards = [replace(card(index), uuid=f"GPU-{index:04}") for index in range(1024)]
    offering = Offering(layout=lay_out(cards, MemoryUnit.parse("1Gi"), reserved=0))
    status = node_status(share_node(), offering, [], now=NOW)
    assert len(status.cards) == 1024
    assert is_taken(status)


@pytest.mark.parametrize("model", ["NVIDIA A100-SXM4-80GB (MIG: off)", "昇腾 910B", "x" * 63])
def test_what_an_inventory_may_say_is_taken_as_it_is(model: str) -> None:
    uuid = "GCU-U53000090104:0.1_" + "x" * 42
    reading = read_inventory(f"cards: [{{uuid: '{uuid}', memory: 16Gi, model: '{model}'}}]".encode())
    status = node_status(share_node(), Offering(layout=layout(*reading.cards)), [], now=NOW)
    assert (status.cards[0].uuid, status.cards[0].model) == (uuid, model)
    assert is_taken(status)


@pytest.mark.parametrize("uuid", [f"GPU-{HIDDEN}", "GPU-\x1b[2J", "", "x" * 64])
def test_what_a_stolen_token_would_write_is_refused(uuid: str) -> None:
    card_status = {"index": 0, "uuid": uuid, "memory": "16Gi", "units": 16}
    found = [*refusals(status_schema(crd.NODE), {"cards": [card_status]})]
    assert any("cards[].uuid" in text for text in found)


@pytest.mark.parametrize("field", ["model", "healthReason"])
def test_no_text_of_a_status_has_a_control_character(field: str) -> None:
    for character in WRITABLE:
        assert [*refusals(status_schema(crd.NODE), {"cards": [{"uuid": "a", field: character}]})]


def test_every_text_of_a_status_is_bounded() -> None:
    for resource in crd.CUSTOM_RESOURCES:
        for at, part in parts(status_schema(resource)):
            if part["type"] == "string" and "enum" not in part and part.get("format") != "date-time":
                assert part.keys() >= {"maxLength", "pattern"}, at
            if part["type"] == "array":
                assert "maxItems" in part, at


def parts(schema: Json, at: str = "status") -> Iterator[tuple[str, Json]]:
    yield at, schema
    for name, child in schema.get("properties", {}).items():
        yield from parts(child, f"{at}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from parts(schema["items"], f"{at}[]")


def test_the_patterns_are_what_the_functions_leave() -> None:
    for text in (ODD, HIDDEN, "a b", ""):
        assert in_python(bounds.PRINTABLE).search(printable(text))
    assert not in_python(bounds.PRINTABLE).search("a\n")
