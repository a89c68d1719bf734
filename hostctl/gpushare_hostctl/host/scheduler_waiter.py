"""Waiting for kube-scheduler: until it serves, or until another process of it serves."""

import logging
from collections.abc import Callable
from dataclasses import dataclass

from gpushare_hostctl.decide.health_endpoint import HealthEndpoint
from gpushare_hostctl.decide.restart_detector import ProbeResult, RestartDetector, SteadyService
from gpushare_hostctl.errors import RetryableError
from gpushare_hostctl.host.health_probe import Prober

_LOG = logging.getLogger(__name__)

INTERVAL = 0.25
"""Seconds between two probes: far less than a restart takes."""


class SchedulerNotServingError(RetryableError):
    """kube-scheduler did not serve before the deadline."""


@dataclass(frozen=True)
class SchedulerWaiter:
    """Probes kube-scheduler again and again.

    ``timeout`` is in seconds and for one wait. ``clock`` is monotonic and, as ``sleep``, in seconds.
    """

    prober: Prober
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    timeout: float

    def probe(self, endpoint: HealthEndpoint) -> ProbeResult:
        """Returns what one probe sees now."""
        return self.prober.probe(endpoint)

    def until_serving(self, endpoint: HealthEndpoint) -> None:
        """Waits until any process serves steadily. Raises SchedulerNotServingError at the deadline."""
        service = SteadyService()
        self._wait(endpoint, lambda probe, _: service.observe(probe), awaited="kube-scheduler")

    def until_restarted(
        self, endpoint: HealthEndpoint, *, before: str | None, may_miss_restart: bool
    ) -> None:
        """Waits until a process other than ``before`` serves steadily.

        With ``may_miss_restart`` half the timeout of uninterrupted service counts as a restart that was too
        short to be seen. Raises SchedulerNotServingError at the deadline.
        """
        assume_missed_after = self.timeout / 2 if may_miss_restart else None
        restart = RestartDetector(before=before, assume_missed_after=assume_missed_after)
        self._wait(endpoint, restart.observe, awaited="a restarted kube-scheduler")

    def _wait(
        self, endpoint: HealthEndpoint, is_over: Callable[[ProbeResult, float], bool], *, awaited: str
    ) -> None:
        start = self.clock()
        while True:
            probe = self.prober.probe(endpoint)
            if is_over(probe, self.clock()):
                _LOG.info("%s serves at %s", awaited, endpoint.url)
                return
            if self.clock() - start >= self.timeout:
                raise SchedulerNotServingError(
                    f"no {awaited.removeprefix('a ')} served at {endpoint.url} within {self.timeout:g} s "
                    f"(last look: {probe.detail})"
                )
            self.sleep(INTERVAL)
