"""The list of devices is what protobuf makes of it, and its size is known before it is made."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.plugin import card, ids, layout

from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.decide.offer.device_list import MESSAGE_LIMIT, encode_devices, finest_unit, fits
from gpushare_plugin.decide.units.layout import lay_out
from gpushare_plugin.decide.units.unit_ids import CAPACITY, SHORT
from gpushare_plugin.devices.card import PhysicalCard
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api


def decoded(message: bytes) -> api.ListAndWatchResponse:
    return api.ListAndWatchResponse.FromString(message)


CARDS = st.lists(
    st.builds(
        lambda index, gib, healthy, numa_node: card(
            index, memory=gib * 2**30, healthy=healthy, numa_node=numa_node
        ),
        st.integers(0, 9),
        st.integers(0, 20),
        st.booleans(),
        st.integers(-1, 2),
    ),
    max_size=5,
)


@given(CARDS)
def test_the_bytes_are_those_of_the_generated_classes(cards: list[PhysicalCard]) -> None:
    message = encode_devices(layout(*cards)) if cards else b""
    assert decoded(message).SerializeToString() == message


def test_every_unit_is_a_device_with_the_health_of_its_card() -> None:
    devices = decoded(
        encode_devices(layout(card(0, memory=2**30), card(1, memory=2**30, healthy=False)))
    ).devices
    assert [(device.ID, device.health) for device in devices] == [
        (*ids(0), "Healthy"),
        (*ids(1), "Unhealthy"),
    ]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param((0, 1), [[0], [1]], id="two nodes: sent"),
        pytest.param((0, 0), [[], []], id="one node: nothing to align"),
        pytest.param((-1, 1), [[], []], id="one unknown: not sent"),
    ],
)
def test_numa_nodes_are_sent_only_where_there_is_something_to_align(
    nodes: tuple[int, int], expected: list[list[int]]
) -> None:
    made = layout(*(card(index, memory=2**30, numa_node=node) for index, node in enumerate(nodes)))
    devices = decoded(encode_devices(made)).devices
    assert [[node.ID for node in device.topology.nodes] for device in devices] == expected


def test_eight_cards_of_32_gb_at_1_mb_make_less_than_4096000_bytes() -> None:
    """A hundred IDs have two letters, the others three."""
    cards = [card(index, memory=32 * 10**9, numa_node=index % 2) for index in range(8)]
    made = layout(*cards, unit="1M")
    message = encode_devices(made)
    assert (made.units, len(message)) == (256_000, 4_096_000 - len(SHORT))
    assert fits(made)
    assert len({device.ID for device in decoded(message).devices}) == 256_000


def test_a_list_that_fits_healthy_fits_with_every_card_unhealthy() -> None:
    cards = [card(index, memory=32 * 10**9, healthy=False) for index in range(8)]
    message = encode_devices(layout(*cards, unit="1M"))
    assert len(message) <= MESSAGE_LIMIT
    assert {device.health for device in decoded(message).devices} == {""}


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        pytest.param(CAPACITY, True, id="as many as there are IDs: 4 MiB to the byte"),
        pytest.param(CAPACITY + 1, False, id="one more"),
    ],
)
def test_the_limit_is_exact(units: int, *, expected: bool) -> None:
    assert fits(layout(card(0, memory=units), unit="1")) is expected


@pytest.mark.parametrize(
    ("gigabytes", "unit", "expected"),
    [
        pytest.param(80, "1M", "3M", id="8 x 80 GB at 1M"),
        pytest.param(48, "1M", "2M", id="8 x 48 GB at 1M"),
        pytest.param(80, "1Mi", "3Mi", id="in the suffix that was asked"),
        pytest.param(32, "1M", "1M", id="fits already"),
    ],
)
def test_the_finest_unit_that_works_is_found(gigabytes: int, unit: str, expected: str) -> None:
    cards = [card(index, memory=gigabytes * 10**9) for index in range(8)]
    assert finest_unit(cards, MemoryUnit.parse(unit), reserved=0).text == expected


@given(st.lists(st.integers(1, 90_000), min_size=1, max_size=8), st.integers(100, 10**6))
def test_one_finer_than_the_finest_does_not_fit(memories: list[int], limit: int) -> None:
    cards = [card(index, memory=memory * 10**6) for index, memory in enumerate(memories)]
    found = finest_unit(cards, MemoryUnit.parse("1M"), reserved=0, limit=limit)
    amount = int(found.text.removesuffix("M"))
    assert fits(lay_out(cards, found, reserved=0), limit=limit)
    if amount > 1:
        finer = MemoryUnit.parse(f"{amount - 1}M")
        assert not fits(lay_out(cards, finer, reserved=0), limit=limit)
