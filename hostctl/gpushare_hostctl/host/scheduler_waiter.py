"""Waiting for kube-scheduler: until it serves, or until another process of it serves."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from gpushare_hostctl.decide.health_endpoint import HealthEndpoint
from gpushare_hostctl.decide.process_identity import ProcessIdentity
from gpushare_hostctl.decide.restart_detector import ProbeResult, RestartDetector, SteadyService
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

    def probe(self, endpoint: HealthEndpoint) -> ProbeResult:
        """Returns what one probe sees now."""
        return self.prober.probe(endpoint)

    def until_serving(self, endpoint: HealthEndpoint, *, timeout: float | None = None) -> ProbeResult:
        """Waits until any process serves steadily, and returns what the last probe saw.

        Raises SchedulerNotServingError at the deadline, after ``timeout`` seconds if that is given.
        """
        service = SteadyService()
        return self._wait(
            endpoint,
            service.observe,
            awaited="kube-scheduler",
            timeout=self.timeout if timeout is None else timeout,
        )

    def until_restarted(
        self,
        endpoint: HealthEndpoint,
        *,
        before: ProcessIdentity,
        may_miss_restart: bool = False,
        check: Callable[[], None] = _nothing,
    ) -> None:
        """Waits until a process other than ``before`` serves steadily.

        ``check`` is called at each look and ends the wait by what it raises. With ``may_miss_restart`` half
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
            return restart.observe(probe, now)

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
