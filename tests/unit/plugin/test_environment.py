"""A container gets the card that its units lie on: nothing else is looked at."""

import pytest
from tests.samples.plugin import ids, layout

from gpushare_core.books.dialects import GPUSHARE
from gpushare_plugin.decide.environment import UnusableUnitsError, environment

LAYOUT = layout(reserved=2**30)


def test_the_variables_follow_from_the_units() -> None:
    assert environment(ids(17, 16, 30), LAYOUT, GPUSHARE) == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-1",
        "GPUSHARE_CARD": "GPU-1",
        "GPUSHARE_CARD_INDEX": "1",
        "GPUSHARE_UNITS": "3",
        "GPUSHARE_MEMORY_MIB": "3072",
        "GPUSHARE_CARD_MEMORY_MIB": "16384",
    }


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        pytest.param(
            ids(0, 1, 16), "asked 3 units of one card, the kubelet chose 2 of GPU-0, 1 of GPU-1", id="two"
        ),
        pytest.param(["no"], "'no' names no unit", id="not an ID"),
        pytest.param(ids(99), "'ABj' is a unit of no card of this node; it has 30 units", id="no such unit"),
        pytest.param([], "asked 0 units", id="none"),
    ],
)
def test_units_that_are_not_of_one_card_are_refused(asked: list[str], message: str) -> None:
    with pytest.raises(UnusableUnitsError) as refusal:
        environment(asked, LAYOUT, GPUSHARE)
    assert message in str(refusal.value)
