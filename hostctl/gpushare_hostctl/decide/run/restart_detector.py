"""When probes of kube-scheduler add up to a process that works, and to another one than before."""

import math
from dataclasses import dataclass

from gpushare_hostctl.decide.run.process_identity import UNKNOWN, ProcessIdentity

STEADY_PROBES = 3
"""So many good probes of one process in a row, or it may be one that starts and falls."""

GONE_SECONDS = 1.0
"""So long nobody listened at the port, at every look, before a process counts as ended by that alone."""

PROVEN_SECONDS = 10.0
"""So long a process has to serve of which is known that it was started from the present manifest."""

UNPROVEN_SECONDS = 25.0
"""So long any other new process has to serve: it may have been started from the earlier manifest, which the
kubelet notices within 20 seconds (its ``fileCheckFrequency``) and then ends it."""


@dataclass(frozen=True)
class ProbeResult:
    """What one probe of kube-scheduler saw.

    ``refused``: nobody listens there, which is more than no answer in time. ``detail`` is the answer or the
    error, for people.
    """

    serving: bool
    detail: str
    process: ProcessIdentity = UNKNOWN
    refused: bool = False


@dataclass
class SteadyService:
    """Adds up probes until one process has served STEADY_PROBES times in a row."""

    process: ProcessIdentity | None = None
    count: int = 0
    since: float = 0.0
    """When the process was first seen to serve; counts while ``count`` is not 0."""

    def observe(self, probe: ProbeResult, now: float) -> bool:
        """Takes the next probe, made at ``now``, into account. Returns whether service is steady with it."""
        if not probe.serving:
            self.count = 0
        elif self.count == 0 or probe.process != self.process:
            self.count, self.since = 1, now
        else:
            self.count += 1
        self.process = probe.process
        return self.count >= STEADY_PROBES

    def lasts(self, seconds: float, now: float) -> bool:
        """Returns whether the process has served without a break for so long."""
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

    What proves another process is its identity; only where that cannot be compared, that nobody listened for
    a while. A probe without an answer proves nothing: a busy node is slow. Another process may still be one
    of the earlier manifest, so it has to serve for a time without a break. With ``assume_missed_after``, so
    many seconds of uninterrupted service count as a restart that was not seen; None: never.
    """

    before: ProcessIdentity
    lasting_certificate: bool
    assume_missed_after: float | None = None

    def __post_init__(self) -> None:
        self._service = SteadyService()
        self._absence = _Absence()

    def observe(self, probe: ProbeResult, now: float, *, lasting: float) -> bool:
        """Takes the next probe, made at ``now`` seconds of a monotonic clock, into account.

        ``lasting`` is how many seconds of service prove the restart by what is known now; infinite where the
        process cannot be the awaited one. Returns whether the restart is over.
        """
        self._absence.observe(probe, now)
        if math.isinf(lasting):
            self._service = SteadyService()
            return False
        if not self._service.observe(probe, now):
            return False
        is_other = self._service.lasts(lasting, now) and self._is_other(probe)
        return is_other or self._may_be_missed(now)

    def _is_other(self, probe: ProbeResult) -> bool:
        if self.before.sockets == ():
            return True
        other = self.before.is_followed_by(probe.process, lasting_certificate=self.lasting_certificate)
        return self._absence.lasted if other is None else other

    def _may_be_missed(self, now: float) -> bool:
        return self.assume_missed_after is not None and self._service.lasts(self.assume_missed_after, now)
