"""What the checkpoint says of one container that has several extended resources."""

from array import array
from collections.abc import Sequence
from itertools import permutations

import pytest

from gpushare_core.dialects.dialect import CARD_VARIABLE
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry, StoredUnits, by_pod, read_answer
from gpushare_plugin.decide.units.foreign_units import sort_ids


def entry(name: str, *ids: str, numbers: Sequence[int] = (), uid: str = "uid-a") -> CheckpointEntry:
    _, foreign = sort_ids(name, ids)
    variables = {CARD_VARIABLE: "GPU-0"} if numbers else {}
    return read_answer(StoredUnits(uid, "prep", name, array("I", numbers), foreign), variables)


OURS = entry(GPUSHARE.memory_resource, numbers=range(4))
CARD = entry("nvidia.com/gpu", "GPU-ffff")
ALIYUN = entry("aliyun.com/gpu-mem", "GPU-ffff-_-0", "GPU-ffff-_-1")


@pytest.mark.parametrize("entries", [*permutations([OURS, CARD, ALIYUN])])
def test_units_of_ours_are_seen_beside_devices_of_other_plugins(entries: Sequence[CheckpointEntry]) -> None:
    found = by_pod(entries)["uid-a"]["prep"]
    assert (found.name, found.numbers, found.cards) == (OURS.name, OURS.numbers, OURS.cards)
    assert {units.name for units in found.foreign} == {CARD.name, ALIYUN.name}
    assert by_pod([found]) == {"uid-a": {"prep": found}}


def test_each_container_has_its_own() -> None:
    other = entry("nvidia.com/gpu", "GPU-ffff", uid="uid-b")
    assert by_pod([OURS, other]) == {"uid-a": {"prep": OURS}, "uid-b": {"prep": other}}
