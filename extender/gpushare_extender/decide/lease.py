"""The Lease by which one extender at a time answers binds: what it says, and when it is free. Pure.

Nobody's clock is believed but our own: somebody else's Lease has expired once it has not changed for its
duration before our eyes, as in client-go's leader election.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from gpushare_core.json_object import Json

LEASE_SECONDS = 20


@dataclass(frozen=True, slots=True)
class LeaseState:
    """A ``coordination.k8s.io/v1`` Lease as it was read."""

    version: str
    holder: str = ""
    """Identity; empty when nobody holds it."""
    seconds: int = LEASE_SECONDS
    transitions: int = 0
    acquired: str = ""


def read_lease(lease: Json) -> LeaseState:
    spec = lease.get("spec") or {}
    return LeaseState(
        version=lease["metadata"]["resourceVersion"],
        holder=spec.get("holderIdentity") or "",
        seconds=spec.get("leaseDurationSeconds") or LEASE_SECONDS,
        transitions=spec.get("leaseTransitions") or 0,
        acquired=spec.get("acquireTime") or "",
    )


def held_lease(before: LeaseState | None, *, name: str, identity: str, now: datetime) -> Json:
    """Returns the Lease renewed or taken over by ``identity``, to be written over ``before``."""
    keeps = before is not None and before.holder == identity
    spec = {
        "holderIdentity": identity,
        "leaseDurationSeconds": LEASE_SECONDS,
        "acquireTime": before.acquired if before and keeps else _micro_time(now),
        "renewTime": _micro_time(now),
        "leaseTransitions": before.transitions + (not keeps) if before else 0,
    }
    return _lease(name, before, spec)


def released_lease(before: LeaseState, *, name: str, now: datetime) -> Json:
    """Returns the Lease that nobody holds, to be written over ``before``."""
    spec = {"leaseDurationSeconds": 1, "renewTime": _micro_time(now), "leaseTransitions": before.transitions}
    return _lease(name, before, spec)


def _lease(name: str, before: LeaseState | None, spec: Json) -> Json:
    """With the version of ``before`` the API server refuses to overwrite anything later."""
    version = {"resourceVersion": before.version} if before else {}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, **version},
        "spec": spec,
    }


def _micro_time(now: datetime) -> str:
    """Source: ``metav1.MicroTime``."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(slots=True)
class LeaseObserver:
    """Follows what others do with the Lease."""

    identity: str
    _seen: LeaseState | None = field(default=None, init=False)
    _since: float = field(default=0.0, init=False)

    def observe(self, state: LeaseState, *, now: float) -> None:
        """``state`` was read at ``now``, in seconds of our clock."""
        if self._seen is None or state.version != self._seen.version:
            self._seen, self._since = state, now

    def seconds_left(self, *, now: float) -> float:
        """Returns how long somebody else may still rely on the Lease; 0 when it is ours to take."""
        if self._seen is None or self._seen.holder in ("", self.identity):
            return 0.0
        return max(0.0, self._since + self._seen.seconds - now)
