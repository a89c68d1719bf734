"""Waiting for kube-scheduler: until it serves, or until another process of it serves."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from gpushare_hostctl.decide.run.process_identity import ProcessIdentity
from gpushare_hostctl.decide.run.restart_detector import (
    PROVEN_SECONDS,
    UNPROVEN_SECONDS,
    ProbeResult,
    RestartDetector,
    SteadyService,
)
from gpushare_hostctl.decide.scheduler.health_endpoint import HealthEndpoint
from gpushare_hostctl.errors import RetryableError
from gpushare_hostctl.host.health_probe import Prober

_LOG = logging.getLogger(__name__)

INTERVAL = 0.25
"""Seconds between two probes: far less than a restart takes."""


class SchedulerNotServingError(RetryableError):
    """kube-scheduler did not serve before the deadline."""


class StoppedError(RetryableError):
    """The program got a signal to end while it waited."""


def _nothing() -> None:
    """The check of a wait that only the deadline ends early."""


def _never() -> bool:
    return False


@dataclass(frozen=True)
class SchedulerWaiter:
    """Probes kube-scheduler again and again.

    ``timeout`` is in seconds and for one wait. ``clock`` is monotonic and, as ``sleep``, in seconds. Every
    wait raises StoppedError soon after ``is_stopped`` turned true.
    """

    prober: Prober
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    timeout: float
    is_stopped: Callable[[], bool] = _never

    @property
    def proven(self) -> float:
        """Returns the seconds that a process surely of the present manifest has to serve."""
        return min(PROVEN_SECONDS, self.timeout / 3)

    @property
    def unproven(self) -> float:
        """Returns the seconds that another process has to serve, which may be of the earlier manifest."""
        return min(UNPROVEN_SECONDS, self.timeout / 2)

    def probe(self, endpoint: HealthEndpoint) -> ProbeResult:
        """Returns what one probe sees now."""
        return self.prober.probe(endpoint)

    def until_serving(
        self, endpoint: HealthEndpoint, *, timeout: float | None = None, lasting: float = 0.0
    ) -> ProbeResult:
        """Waits until any process has served steadily for ``lasting`` seconds; returns the last probe.

        Raises SchedulerNotServingError at the deadline, after ``timeout`` seconds if that is given.
        """
        service = SteadyService()

        def is_over(probe: ProbeResult, now: float) -> bool:
            return service.observe(probe, now) and service.lasts(lasting, now)

        timeout = self.timeout if timeout is None else timeout
        return self._wait(endpoint, is_over, awaited="kube-scheduler", timeout=timeout)

    def until_restarted(
        self,
        endpoint: HealthEndpoint,
        *,
        before: ProcessIdentity,
        lasting: Callable[[], float] | None = None,
        may_miss_restart: bool = False,
        check: Callable[[], None] = _nothing,
    ) -> None:
        """Waits until a process other than ``before`` has served steadily.

        ``lasting`` says for how many seconds, each time anew; without it ``unproven``. ``check`` is called at
        each look and ends the wait by what it raises. With ``may_miss_restart`` half
        the timeout of uninterrupted service counts as a restart that was not seen. Raises
        SchedulerNotServingError at the deadline.
        """
        restart = RestartDetector(
            before=before,
            lasting_certificate=endpoint.lasting_certificate,
            assume_missed_after=self.timeout / 2 if may_miss_restart else None,
        )

        def is_over(probe: ProbeResult, now: float) -> bool:
            check()
            return restart.observe(probe, now, lasting=lasting() if lasting else self.unproven)

        self._wait(endpoint, is_over, awaited="a restarted kube-scheduler", timeout=self.timeout)

    def _wait(
        self,
        endpoint: HealthEndpoint,
        is_over: Callable[[ProbeResult, float], bool],
        *,
        awaited: str,
        timeout: float,
    ) -> ProbeResult:
        start = self.clock()
        while True:
            probe = self.prober.probe(endpoint)
            if is_over(probe, self.clock()):
                _LOG.info("%s serves at %s", awaited, endpoint.url)
                return probe
            if self.is_stopped():
                raise StoppedError(f"stopped from outside while waiting for {awaited}")
            if self.clock() - start >= timeout:
                raise SchedulerNotServingError(
                    f"no {awaited.removeprefix('a ')} served at {endpoint.url} within {timeout:.3g} s "
                    f"(last look: {probe.detail})"
                )
            self.sleep(INTERVAL)
