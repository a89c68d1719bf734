"""A Lease by which one of several processes at a time does something: what it says, when it is free. Pure.

Nobody's clock is believed but our own: somebody else's Lease has expired once it has not changed for its
duration before our eyes, as in client-go's leader election.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

import msgspec

from gpushare_core.api.timestamps import micro_time
from gpushare_core.text.json_object import Json

RELEASED_SECONDS = 1
"""Duration of a Lease that its holder gave back, as client-go's leader election writes it, too."""
MAX_TRANSITIONS = 2**31 - 1
"""What the API takes. Who wrote that number into a Lease would else have stopped everybody for ever."""

_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=MAX_TRANSITIONS)]


@dataclass(frozen=True, slots=True)
class LeaseState:
    """A ``coordination.k8s.io/v1`` Lease as it was read."""

    version: str
    holder: str = ""
    """Identity; empty when nobody holds it."""
    seconds: int = 0
    """How long the holder relies on it; 0 when that is not said."""
    transitions: int = 0
    acquired: str = ""
    metadata: Json = field(default_factory=dict, compare=False)
    """What others keep there and a PUT has to repeat, or it is gone: kubectl keeps what it applied last in an
    annotation, and touches the Lease at every ``kubectl apply`` where it misses it."""

    @property
    def holding(self) -> tuple[str, int, str]:
        """The same for as long as nobody else takes the Lease, whoever touches it meanwhile."""
        return self.holder, self.transitions, self.acquired


class _Metadata(msgspec.Struct, rename="camel", omit_defaults=True):
    resource_version: str
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None
    owner_references: Sequence[Json] | None = None
    finalizers: Sequence[str] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: _Int32 | None = None
    lease_transitions: _Int32 | None = None
    acquire_time: str | None = None


class Lease(msgspec.Struct):
    """Source: ``coordination.k8s.io/v1``. An answer without a version is none of the API server's, and cannot
    be read as this."""

    metadata: _Metadata
    spec: _Spec | None = None

    def state(self) -> LeaseState:
        spec = self.spec or _Spec()
        return LeaseState(
            version=self.metadata.resource_version,
            holder=spec.holder_identity or "",
            seconds=spec.lease_duration_seconds or 0,
            transitions=spec.lease_transitions or 0,
            acquired=spec.acquire_time or "",
            metadata=msgspec.to_builtins(self.metadata),
        )


def held_lease(before: LeaseState | None, *, name: str, identity: str, seconds: int, now: datetime) -> Json:
    """Returns the Lease renewed or taken over by ``identity``, to be written over ``before``."""
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
    """Returns the Lease that nobody holds, to be written over ``before``."""
    spec = {
        "leaseDurationSeconds": RELEASED_SECONDS,
        "renewTime": micro_time(now),
        "leaseTransitions": before.transitions,
    }
    return _lease(name, before, spec)


def _lease(name: str, before: LeaseState | None, spec: Json) -> Json:
    """With the version of ``before`` the API server refuses to overwrite anything later; without one it
    creates the Lease, and refuses if there is one."""
    kept = {**before.metadata, "resourceVersion": before.version} if before else {}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, **kept},
        "spec": spec,
    }


@dataclass(slots=True)
class LeaseObserver:
    """Follows what others do with the Lease."""

    identity: str
    seconds: int
    """How long others rely on a Lease that does not say so, or that was deleted."""
    _seen: LeaseState | None = field(default=None, init=False)
    _since: float | None = field(default=None, init=False)
    _relied_on: int = field(default=0, init=False)
    """How long somebody else may rely on it from ``_since`` on."""

    def observe(self, state: LeaseState | None, *, now: float) -> None:
        """``state`` was read at ``now``, in seconds of our clock; None: there is no Lease."""
        if self._since is None or state != self._seen:
            self._relied_on = self._reliance(state)
            self._seen, self._since = state, now

    def _reliance(self, state: LeaseState | None) -> int:
        """Returns how long others may rely on a Lease that has just become ``state``.

        The Lease comes with the manifests: where there is none, it may have been deleted while it was held.
        Who replaces it by that of the manifests (``helm upgrade --force``) empties it while it is held.
        """
        if state is None:
            return max(self._relied_on, self.seconds)
        if state.holder:
            return 0 if state.holder == self.identity else state.seconds or self.seconds
        return 0 if state.seconds == RELEASED_SECONDS else self._relied_on

    def seconds_left(self, *, now: float) -> float:
        """Returns how long somebody else may still rely on the Lease; 0 when it is ours to take."""
        if self._since is None:
            return float(self.seconds)
        return max(0.0, self._since + self._relied_on - now)
