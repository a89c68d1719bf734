"""When probes of kube-scheduler add up to a process that works, and to another one than before.

Without ``--tls-cert-file`` kube-scheduler makes a certificate in memory when it starts, so the certificate's
fingerprint tells one process from the next without any access to the API or to the process table.
"""

from dataclasses import dataclass

STEADY_PROBES = 3
"""So many good probes of one process in a row, or it may be one that starts and falls."""


@dataclass(frozen=True)
class ProbeResult:
    """What one probe of kube-scheduler saw.

    ``fingerprint`` is the SHA-256 in hex of the certificate; None when nothing listens there. ``detail`` is
    the answer or the error, for people.
    """

    serving: bool
    fingerprint: str | None
    detail: str


@dataclass
class SteadyService:
    """Adds up probes until one process has served STEADY_PROBES times in a row."""

    fingerprint: str | None = None
    count: int = 0

    def observe(self, probe: ProbeResult) -> bool:
        """Takes the next probe into account. Returns whether service is steady with it."""
        same = probe.fingerprint == self.fingerprint
        self.count = (self.count + 1 if same else 1) if probe.serving else 0
        self.fingerprint = probe.fingerprint
        return self.count >= STEADY_PROBES


@dataclass
class RestartDetector:
    """Adds up probes until a process other than ``before`` serves steadily.

    Another process shows by another certificate, or by the endpoint having been closed in between.
    ``before`` is the fingerprint of the process before, None when none served. After ``assume_missed_after``
    seconds of uninterrupted service the restart counts as missed, not as outstanding; None: never.
    """

    before: str | None
    assume_missed_after: float | None = None

    def __post_init__(self) -> None:
        self._service = SteadyService()
        self._went_away = False
        self._serving_since: float | None = None

    def observe(self, probe: ProbeResult, now: float) -> bool:
        """Takes the next probe, made at ``now`` seconds of a monotonic clock, into account.

        Returns whether the restart is over.
        """
        self._went_away = self._went_away or probe.fingerprint is None
        if not probe.serving:
            self._serving_since = None
        elif self._serving_since is None:
            self._serving_since = now
        steady = self._service.observe(probe)
        return steady and self._is_other(probe, now)

    def _is_other(self, probe: ProbeResult, now: float) -> bool:
        if self._went_away or probe.fingerprint != self.before:
            return True
        since = now if self._serving_since is None else self._serving_since
        return self.assume_missed_after is not None and now - since >= self.assume_missed_after
