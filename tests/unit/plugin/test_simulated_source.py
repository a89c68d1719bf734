"""Simulated cards are the same ones after every restart."""

from gpushare_core.api.share_node import SimulatedCards
from gpushare_plugin.devices.simulated.source import SimulatedSource, simulate

GROUPS = [
    SimulatedCards(count=2, memory="16Gi", model="Small", compute_score=50),
    SimulatedCards(count=1, memory="80G", model="Large", compute_score=200),
]


def test_groups_follow_each_other() -> None:
    cards = list(simulate("gpu-1", GROUPS))
    assert [(card.index, card.model, card.memory, card.compute_score) for card in cards] == [
        (0, "Small", 16 * 2**30, 50),
        (1, "Small", 16 * 2**30, 50),
        (2, "Large", 80 * 10**9, 200),
    ]


def test_uuids_follow_from_node_and_index_alone() -> None:
    here, again, there = (
        [card.uuid for card in simulate(node, GROUPS)] for node in ("gpu-1", "gpu-1", "gpu-2")
    )
    assert here == again
    assert len({*here, *there}) == 6
    assert all(uuid.startswith("GPU-") for uuid in here)


async def test_the_source_lists_its_cards() -> None:
    assert len((await SimulatedSource("gpu-1", GROUPS).read()).cards) == 3
