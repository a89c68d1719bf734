"""What of the API this version serves. The rest is accepted, and a condition says what works instead."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpushare_core.api.enums import Backend, Mode

MODES_OF_BACKENDS: Mapping[Backend, frozenset[Mode]] = {Backend.VOLCANO: frozenset({Mode.MEMORY})}
"""Where a backend does not place pods in every mode: Volcano's scheduler shares the memory of cards only."""

UNSUPPORTED_MODE = "UnsupportedMode"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something cannot be served as asked, and what to do: a condition's reason and message."""

    reason: str
    message: str


def combination_problem(backend: Backend, mode: Mode) -> Problem | None:
    """Returns why pods of nodes in ``mode`` would not be placed. Every dialect has a name for every mode."""
    modes_placed = MODES_OF_BACKENDS.get(backend)
    if modes_placed is None or mode in modes_placed:
        return None
    others = " or ".join(sorted(set(Backend) - MODES_OF_BACKENDS.keys()))
    return Problem(
        UNSUPPORTED_MODE,
        f"mode {mode} is not served with scheduler.backend {backend};"
        f" use mode {' or '.join(sorted(modes_placed))}, or scheduler.backend {others}",
    )
