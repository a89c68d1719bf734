"""What of the API this version serves. The rest is accepted, and a condition says what works instead."""

from collections.abc import Collection
from dataclasses import dataclass

from gpushare_core.api.enums import Backend, Mode, Source
from gpushare_core.placement import modes

MODES = frozenset({*modes.MODES, Mode.OFF})
SOURCES = frozenset({Source.SIMULATED})
BACKENDS = frozenset({Backend.KUBE_SCHEDULER, Backend.EXTERNAL, Backend.VOLCANO})

UNSUPPORTED_MODE = "UnsupportedMode"
UNSUPPORTED_SOURCE = "UnsupportedSource"
UNSUPPORTED_BACKEND = "UnsupportedBackend"


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something cannot be served as asked, and what to do: a condition's reason and message."""

    reason: str
    message: str


def mode_problem(mode: Mode) -> Problem | None:
    return _problem(UNSUPPORTED_MODE, "mode", mode, MODES)


def source_problem(source: Source) -> Problem | None:
    return _problem(UNSUPPORTED_SOURCE, "devices.source", source, SOURCES)


def backend_problem(backend: Backend) -> Problem | None:
    return _problem(UNSUPPORTED_BACKEND, "scheduler.backend", backend, BACKENDS)


def _problem(reason: str, field: str, asked: str, served: Collection[str]) -> Problem | None:
    if asked in served:
        return None
    return Problem(
        reason, f"{field} {asked} is not served by this version; use {' or '.join(sorted(served))}"
    )
