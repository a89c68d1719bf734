"""Which combinations of the API this version serves. For the others a condition says what works instead."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpushare_core.api.enums import Backend, Mode

MODES_OF_BACKENDS: Mapping[Backend, frozenset[Mode]] = {Backend.VOLCANO: frozenset({Mode.MEMORY})}
"""Backends that place pods only in some modes: Volcano's scheduler shares only the memory of cards."""

UNSUPPORTED_MODE = "UnsupportedMode"


@dataclass(frozen=True, slots=True)
class Problem:
    """Reason and message of a condition: why something cannot be served as asked, and what to do."""

    reason: str
    message: str


def combination_problem(backend: Backend, mode: Mode) -> Problem | None:
    """Returns why pods of nodes in ``mode`` would not be placed; every dialect serves every mode."""
    modes_placed = MODES_OF_BACKENDS.get(backend)
    if modes_placed is None or mode in modes_placed:
        return None
    others = " or ".join(sorted(set(Backend) - MODES_OF_BACKENDS.keys()))
    return Problem(
        UNSUPPORTED_MODE,
        f"mode {mode} is not served with scheduler.backend {backend};"
        f" use mode {' or '.join(sorted(modes_placed))}, or scheduler.backend {others}",
    )
