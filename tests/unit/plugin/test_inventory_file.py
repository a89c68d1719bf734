"""What an inventory says, and what is refused with its line."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.inventory import ENFLAME, card_lines

from gpushare_core.placement.quantity import parse_memory
from gpushare_plugin.devices.card import DeviceNode, HostMount
from gpushare_plugin.devices.inventory.inventory_file import MAX_BYTES, InventoryError, read_inventory


def test_cards_come_with_their_own_things_and_those_of_all() -> None:
    first, second = read_inventory(ENFLAME.encode()).cards
    assert (first.uuid, first.index, first.memory) == ("GCU-U53000090104", 0, parse_memory("16Gi"))
    assert (first.model, first.compute_score, first.numa_node, first.link_group) == ("T20", 200, 1, 0)
    assert (second.index, second.numa_node, second.link_group) == (1, -1, -1)
    assert first.equipment
    assert first.equipment.device_nodes == (
        DeviceNode("/dev/gcuctl", "/dev/gcuctl"),
        DeviceNode("/dev/gcu-by-id/U53000090104", "/dev/gcu0", "rwm"),
    )
    assert first.equipment.mounts == (HostMount("/usr/lib/libefml.so", "/usr/lib/libefml.so"),)
    assert first.equipment.variables == (("ENFLAME_LOG", "1"),)
    assert (first.equipment.runtime_variable, first.equipment.runtime_name) == ("GCU_VISIBLE", "0")
    assert (first.equipment.cdi_kind, first.equipment.cdi_name) == ("enflame.com/gcu", "gcu0")
    assert second.equipment
    assert (second.equipment.runtime_name, second.equipment.cdi_name) == ("1", "GCU-U53000090105")


def test_the_health_command_is_told_which_card() -> None:
    inventory = read_inventory(ENFLAME.encode())
    assert inventory.health
    assert inventory.health.for_card(inventory.cards[1]) == (
        "/etc/gpushare/healthy",
        "GCU-U53000090105",
        "--index=1",
    )
    assert (inventory.health.period, inventory.health.timeout) == (10.0, 2.0)


def test_cards_are_ordered_by_index_and_numbered_by_their_place_otherwise() -> None:
    cards = read_inventory(
        b"cards: [{uuid: b, memory: 1Gi, index: 1}, {uuid: a, memory: 1Gi, index: 0}]"
    ).cards
    assert [(card.uuid, card.index) for card in cards] == [("a", 0), ("b", 1)]
    cards = read_inventory(b"cards: [{uuid: b, memory: 1Gi}, {uuid: a, memory: 1Gi}]").cards
    assert [(card.uuid, card.index) for card in cards] == [("b", 0), ("a", 1)]


BOMB = """
a: &a [x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]
cards: [*b, *b, *b]
"""
MALFORMED = [
    pytest.param("", "line 1: not a mapping with cards", id="empty"),
    pytest.param("cards", "line 1: not a mapping with cards", id="a word"),
    pytest.param("cards: []", "line 1: cards: List should have at least 1 item", id="no card"),
    pytest.param("cards:\n- {uuid: a}", "line 2: cards[0].memory: Field required", id="no memory"),
    pytest.param("cards:\n- uuid: [", "line 2: not YAML", id="not YAML"),
    pytest.param("x: 1\n\t- y", "line 2: not YAML", id="tabs"),
    pytest.param("cards: [{uuid: a, memory: 1Gi}]\n---\nb: 1", "line 2: not YAML", id="two documents"),
    pytest.param(BOMB, "line 2: anchors and aliases", id="YAML bomb"),
    pytest.param("cards: " + "[" * 100_000, "line 1: lists or mappings nest too deep", id="deep"),
    pytest.param("cards: " + "{a: " * 50_000, "line 1: lists or mappings nest too deep", id="deep maps"),
    pytest.param("cards: !!python/object/apply:os.system [id]", "not YAML: could not determine", id="tag"),
    pytest.param("a: " + "9" * 10_000, "a value cannot be read", id="a number without end"),
    pytest.param("cards: []\n? [a]\n: b", "line 2: a key must be a word", id="key that is a list"),
    pytest.param("cards: []\ncards: []", "line 2: cards is there twice", id="twice"),
    pytest.param(
        card_lines(memory="-1Gi"), "line 3: cards[0].memory: '-1Gi' is not a quantity", id="negative"
    ),
    pytest.param(
        card_lines(memory="0"), "line 3: cards[0].memory: Input should be a valid string", id="number"
    ),
    pytest.param(
        card_lines(memory="0Gi"), "line 3: cards[0].memory: a card has more than nothing", id="none"
    ),
    pytest.param(card_lines(memory="1Pi"), "line 3: cards[0].memory: a card has more", id="too much"),
    pytest.param(card_lines(uuid='"a,b"'), "line 2: cards[0].uuid: String should match", id="list"),
    pytest.param(card_lines(uuid='"a\\n"'), "line 2: cards[0].uuid: String should match", id="new line"),
    pytest.param(card_lines(index="-1"), "line 4: cards[0].index: Input should be greater", id="index"),
    pytest.param(card_lines(colour="red"), "line 4: cards[0].colour: Extra inputs are not", id="unknown"),
    pytest.param(
        card_lines() + card_lines().removeprefix("cards:\n"),
        "line 4: cards[1].uuid: GCU-0 is that of the card in line 2",
        id="uuid twice",
    ),
    pytest.param(
        card_lines(index="1") + "- uuid: b\n  memory: 1Gi",
        "line 5: cards[1].index: 1 is that of the card in line 4",
        id="index twice",
    ),
    pytest.param(card_lines(deviceNodes="[/etc/shadow]"), "'/etc/shadow' is not below /dev", id="device"),
    pytest.param(card_lines(deviceNodes="[/dev/../etc]"), "not an absolute path", id="upwards"),
    pytest.param(card_lines(deviceNodes="[{hostPath: /dev/a, permissions: x}]"), "permissions", id="rights"),
    pytest.param(
        card_lines(deviceNodes="[/dev/a, /dev/a]"), "/dev/a in the container is given twice", id="2"
    ),
    pytest.param(card_lines(mounts="[lib]"), "'lib' is not an absolute path", id="relative"),
    pytest.param(card_lines(mounts="[/]"), "'/' is not an absolute path", id="everything"),
    pytest.param(
        card_lines() + "container: {environment: {GPUSHARE_CARD: a}}",
        "line 4: container.environment.GPUSHARE_CARD.[key]: variables that begin with GPUSHARE_",
        id="our variable",
    ),
    pytest.param(card_lines() + "container: {environment: {A=B: a}}", "should match pattern", id="variable"),
    pytest.param(card_lines() + "cdiKind: gpu", "line 4: cdiKind: String should match", id="kind"),
    pytest.param(card_lines() + "health: {command: []}", "line 4: health.command: List", id="command"),
    pytest.param(card_lines() + "health: {command: [a], timeoutSeconds: 900}", "less than", id="timeout"),
]


@pytest.mark.parametrize(("text", "expected"), MALFORMED)
def test_what_is_no_inventory_is_refused_with_line_and_reason(text: str, expected: str) -> None:
    with pytest.raises(InventoryError) as refusal:
        read_inventory(text.encode())
    assert expected in str(refusal.value)


def test_what_is_not_utf_8_is_refused_with_its_line() -> None:
    with pytest.raises(InventoryError, match="line 2: not UTF-8"):
        read_inventory(b"cards:\n- {uuid: \xff}")


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(InventoryError, match="longer than 256 KiB"):
        read_inventory(b"#" * (MAX_BYTES + 1))


@given(st.binary(max_size=200) | st.text(alphabet="cards:-[]{}&*!?|>'\"\n #%@`\tuidmemory1G", max_size=200))
def test_nothing_else_is_raised(content: bytes | str) -> None:
    with suppress(InventoryError):
        read_inventory(content if isinstance(content, bytes) else content.encode())


def test_the_example_of_the_documentation_is_an_inventory() -> None:
    page = (Path(__file__).parents[3] / "docs" / "inventory.md").read_text()
    (example,) = (part for part in page.split("```") if "# /etc/gpushare/inventory.yaml" in part)
    inventory = read_inventory(example.removeprefix("yaml").encode())
    assert [card.uuid for card in inventory.cards] == ["GCU-U53000090104", "GCU-U53000090105"]
    equipment = [card.equipment for card in inventory.cards]
    assert [found.cdi_name for found in equipment if found] == ["gcu0", "GCU-U53000090105"]
    assert inventory.health
