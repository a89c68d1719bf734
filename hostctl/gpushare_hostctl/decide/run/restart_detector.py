"""When probes of kube-scheduler prove that a process works, and that it is another one than before."""

import math
from dataclasses import dataclass

from gpushare_hostctl.decide.run.process_identity import UNKNOWN, ProcessIdentity

STEADY_PROBES = 3
"""Good probes of one process in a row: with fewer it may be one that starts and falls."""

GONE_SECONDS = 1.0
"""Without a listener at the port in any probe, after which the process counts as ended by that alone."""

PROVEN_SECONDS = 10.0
"""A process has to serve so long that was surely started from the present manifest."""

UNPROVEN_SECONDS = 25.0
"""Any other new process has to serve so long. It may have been started from the earlier manifest: the kubelet
notices that within 20 seconds (its ``fileCheckFrequency``) and ends it."""


@dataclass(frozen=True)
class ProbeResult:
    serving: bool
    detail: str
    """The answer or the error, for people."""
    process: ProcessIdentity = UNKNOWN
    refused: bool = False
    """Nobody listens there, which is more than no answer in time."""


@dataclass
class SteadyService:
    """Adds up probes until one process has served STEADY_PROBES times in a row."""

    process: ProcessIdentity | None = None
    count: int = 0
    since: float = 0.0
    """When the process was first seen to serve; counts while ``count`` is not 0."""

    def observe(self, probe: ProbeResult, now: float) -> bool:
        """Returns whether service is steady with ``probe``, made at ``now``."""
        if not probe.serving:
            self.count = 0
        elif self.count == 0 or probe.process != self.process:
            self.count, self.since = 1, now
        else:
            self.count += 1
        self.process = probe.process
        return self.count >= STEADY_PROBES

    def lasts(self, seconds: float, now: float) -> bool:
        return self.count > 0 and now - self.since >= seconds


@dataclass
class _Absence:
    """Whether nobody listened for GONE_SECONDS without a break."""

    lasted: bool = False
    since: float | None = None

    def observe(self, probe: ProbeResult, now: float) -> None:
        if not probe.refused:
            self.since = None
        elif self.since is None:
            self.since = now
        else:
            self.lasted = self.lasted or now - self.since >= GONE_SECONDS


@dataclass
class RestartDetector:
    """Adds up probes until a process other than ``before`` serves steadily.

    Another process is proven by

    1. its identity;
    2. where identities cannot be compared: that nobody listened for GONE_SECONDS. A probe without an answer
       proves nothing: a busy node is slow.

    Another process may still be one of the earlier manifest, so it has to serve for a time without a break.
    """

    before: ProcessIdentity
    lasting_certificate: bool
    assume_missed_after: float | None = None
    """Seconds of uninterrupted service that count as a restart that was not seen; None: never."""

    def __post_init__(self) -> None:
        self._service = SteadyService()
        self._absence = _Absence()

    def observe(self, probe: ProbeResult, now: float, *, lasting: float) -> bool:
        """Returns whether the restart is over with ``probe``, made at ``now`` seconds of a monotonic clock.

        ``lasting``: seconds of service that prove the restart; infinite where the process cannot be the
        awaited one.
        """
        self._absence.observe(probe, now)
        if math.isinf(lasting):
            self._service = SteadyService()
            return False
        if not self._service.observe(probe, now):
            return False
        is_other = self._service.lasts(lasting, now) and self._is_other(probe)
        missed_after = self.assume_missed_after
        return is_other or (missed_after is not None and self._service.lasts(missed_after, now))

    def _is_other(self, probe: ProbeResult) -> bool:
        if self.before.sockets == ():
            return True
        other = self.before.is_followed_by(probe.process, lasting_certificate=self.lasting_certificate)
        return self._absence.lasted if other is None else other
