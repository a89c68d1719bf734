"""What the plugin makes all the time does not come from the system each time."""

import sys

from gpushare_core.process.malloc import LARGE
from gpushare_plugin.decide.units.unit_ids import CAPACITY


def test_sets_of_units_are_no_large_blocks() -> None:
    """Every admission makes some."""
    assert sys.getsizeof(bytearray(CAPACITY)) < LARGE
