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

INTERVAL = 1.0
"""Seconds between two probes: far less than a restart takes. A probe costs more where a machine has more
connections: the kernel lists all of them."""


class SchedulerNotServingError(RetryableError):
    """kube-scheduler did not serve before the deadline."""


class StoppedError(RetryableError):
    """The program got a signal to end while it waited."""


@dataclass(frozen=True)
class SchedulerWaiter:
    """Probes kube-scheduler again and again.

    ``timeout``: seconds of one wait. ``clock``: monotonic. Every wait raises StoppedError soon after
    ``is_stopped`` turned true.
    """

    prober: Prober
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    timeout: float
    is_stopped: Callable[[], bool] = lambda: False

    @property
    def proven(self) -> float:
        """Seconds that a process has to serve that is surely of the present manifest."""
        return min(PROVEN_SECONDS, self.timeout / 3)

    @property
    def unproven(self) -> float:
        """Seconds that another process has to serve, which may be of the earlier manifest."""
        return min(UNPROVEN_SECONDS, self.timeout / 2)

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
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Waits until a process other than ``before`` has served steadily.

        ``lasting`` says at each probe for how many seconds; without it ``unproven``. ``check`` is called at
        each probe and ends the wait by what it raises. With ``may_miss_restart`` uninterrupted service for
        half the timeout counts as a restart that was not seen. At the deadline it raises
        SchedulerNotServingError.
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
