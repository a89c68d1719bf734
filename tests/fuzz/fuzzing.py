"""How often examples are drawn, and which entry points a test fuzzes."""

import os
from collections.abc import Callable
from math import isinf
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings

Test = TypeVar("Test", bound=Callable[..., Any])

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "0"))
"""Of each test in a long run (``make fuzz EXAMPLES=n``); 0: the few of `make test`, always the same ones."""
SECONDS = float(os.environ.get("FUZZ_SECONDS", "inf"))
"""After so many no further test begins, and shorter examples than the first that fails are not looked for."""
FEW = 20

FUZZED: set[str] = set()
"""Entry points that a test fuzzes, as ``module:qualified name``: what the tests that were imported say."""


def name_of(entry_point: Callable[..., Any]) -> str:
    function = getattr(entry_point, "fget", entry_point)  # of a property
    return f"{function.__module__}:{function.__qualname__}"


def fuzzes(*entry_points: Callable[..., Any], few: int = FEW) -> Callable[[Test], Test]:
    """Marks a property test as that of ``entry_points``, and says how many examples it draws.

    ``few``: how many in `make test`; less than usual where an example is slow.
    """
    FUZZED.update(map(name_of, entry_points))
    return settings(
        max_examples=max(1, EXAMPLES * few // FEW) if EXAMPLES else few,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        # Looking for the shortest failing example can take minutes: in a long run somebody waits for it.
        phases=[Phase.explicit, Phase.generate, *([Phase.shrink] if EXAMPLES and isinf(SECONDS) else [])],
        print_blob=bool(EXAMPLES),
        suppress_health_check=list(HealthCheck),
    )
