"""A prober with a script, and a clock that only sleeping moves."""

from collections.abc import Iterator, Sequence

from gpushare_hostctl.decide.run.restart_detector import ProbeResult
from gpushare_hostctl.decide.scheduler.health_endpoint import HealthEndpoint


class ScriptedProber:
    """Returns the probes of a script, the last one for ever."""

    def __init__(self, probes: Sequence[ProbeResult]) -> None:
        self._probes: Iterator[ProbeResult] = iter(probes)
        self._last = probes[-1]

    def probe(self, endpoint: HealthEndpoint) -> ProbeResult:  # noqa: ARG002
        return next(self._probes, self._last)


class SleepClock:
    """A clock that only sleeping moves, in seconds."""

    def __init__(self) -> None:
        self.now = 100.0

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
