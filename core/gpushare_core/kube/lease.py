"""A Lease that lets one of several processes work at a time: what it says, and when it is free. Pure.

Only our own clock counts, as in client-go's leader election: the Lease of another process has expired once we
have seen no change of it for its duration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

import msgspec

from gpushare_core.api.timestamps import micro_time
from gpushare_core.text.json_object import Json

RELEASED_SECONDS = 1
"""Duration of a Lease that its holder gave back; client-go's leader election writes the same."""
MAX_TRANSITIONS = 2**31 - 1
"""The API's maximum. Counting stops there: a Lease in which somebody wrote this number can still be taken."""

_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=MAX_TRANSITIONS)]


@dataclass(frozen=True, slots=True)
class LeaseState:
    """A ``coordination.k8s.io/v1`` Lease as it was read."""

    version: str
    holder: str = ""
    """Identity; empty when nobody holds the Lease."""
    seconds: int = 0
    """Duration for which the holder relies on it; 0 when the Lease does not say."""
    transitions: int = 0
    acquired: str = ""
    metadata: Json = field(default_factory=dict, compare=False)
    """What other writers keep there. A PUT has to repeat it: kubectl keeps in an annotation what it applied
    last, and without it writes the Lease at every ``kubectl apply``."""

    @property
    def holding(self) -> tuple[str, int, str]:
        """Stays the same until another process takes the Lease, whoever else writes to it."""
        return self.holder, self.transitions, self.acquired


class _LeaseMetadata(msgspec.Struct, rename="camel", omit_defaults=True):
    resource_version: str
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    owner_references: Sequence[Json] | None = None
    finalizers: Sequence[str] | None = None


class _LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: _Int32 | None = None
    lease_transitions: _Int32 | None = None
    acquire_time: str | None = None


class Lease(msgspec.Struct):
    """Source: ``coordination.k8s.io/v1``. A response without a resource version is not the API server's, and
    is not read."""

    metadata: _LeaseMetadata
    spec: _LeaseSpec | None = None

    def state(self) -> LeaseState:
        spec = self.spec or _LeaseSpec()
        return LeaseState(
            version=self.metadata.resource_version,
            holder=spec.holder_identity or "",
            seconds=spec.lease_duration_seconds or 0,
            transitions=spec.lease_transitions or 0,
            acquired=spec.acquire_time or "",
            metadata=msgspec.to_builtins(self.metadata),
        )


def held_lease(before: LeaseState | None, *, name: str, identity: str, seconds: int, now: datetime) -> Json:
    """Returns the Lease as ``identity`` renews it or takes it over, to be written over ``before``."""
    keeps = before is not None and before.holder == identity
    spec = {
        "holderIdentity": identity,
        "leaseDurationSeconds": seconds,
        "acquireTime": before.acquired if before and keeps else micro_time(now),
        "renewTime": micro_time(now),
        "leaseTransitions": min(before.transitions + (not keeps), MAX_TRANSITIONS) if before else 0,
    }
    return _lease(name, before, spec)


def released_lease(before: LeaseState, *, name: str, now: datetime) -> Json:
    """Returns the Lease without a holder, to be written over ``before``."""
    spec = {
        "leaseDurationSeconds": RELEASED_SECONDS,
        "renewTime": micro_time(now),
        "leaseTransitions": before.transitions,
    }
    return _lease(name, before, spec)


def _lease(name: str, before: LeaseState | None, spec: Json) -> Json:
    """With the version of ``before`` the API server refuses to overwrite a later one. Without a version it
    creates the Lease, and refuses if one exists."""
    kept = {**before.metadata, "resourceVersion": before.version} if before else {}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, **kept},
        "spec": spec,
    }


@dataclass(slots=True)
class LeaseObserver:
    """Watches how long other processes may rely on the Lease."""

    identity: str
    seconds: int
    """Duration of a Lease that does not say one, or that was deleted."""
    _seen: LeaseState | None = field(default=None, init=False)
    _since: float | None = field(default=None, init=False)
    _relied_on: int = field(default=0, init=False)
    """Seconds from ``_since`` for which another process may rely on it."""

    def observe(self, state: LeaseState | None, *, now: float) -> None:
        """``state`` was read at ``now``, in seconds of our clock; None when there is no Lease."""
        if self._since is None or state != self._seen:
            self._relied_on = self._reliance(state)
            self._seen, self._since = state, now

    def _reliance(self, state: LeaseState | None) -> int:
        """Returns the seconds for which other processes may rely on a Lease that has just become ``state``:

        1. no Lease: as before, at least ``seconds``. The Lease comes with the manifests, so it may have been
           deleted while held.
        2. held by us, or given back: 0.
        3. held by another process: its duration.
        4. without a holder otherwise: as before, for ``helm upgrade --force`` empties a Lease that is held.
        """
        if state is None:
            return max(self._relied_on, self.seconds)
        if state.holder:
            return 0 if state.holder == self.identity else state.seconds or self.seconds
        return 0 if state.seconds == RELEASED_SECONDS else self._relied_on

    def seconds_left(self, *, now: float) -> float:
        """Returns the seconds for which another process may still rely on it; 0 when we may take it."""
        if self._since is None:
            return float(self.seconds)
        return max(0.0, self._since + self._relied_on - now)
