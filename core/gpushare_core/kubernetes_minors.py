"""Which minor versions of Kubernetes gpushare is for, and what they differ in.

``docs/kubernetes-versions.md`` shows it. Source of gates: ``pkg/features/kube_features.go`` of each minor.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from gpushare_core.text.whole_number import whole_number


class KubernetesMinor(NamedTuple):
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


OLDEST, NEWEST = KubernetesMinor(1, 32), KubernetesMinor(1, 37)
"""Of API servers. A newer one is let alone: most of what is new there changes nothing here."""
MINORS = tuple(KubernetesMinor(1, minor) for minor in range(OLDEST.minor, NEWEST.minor + 1))
RANGE = f"{OLDEST} to {NEWEST}"

_VERSION = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})(?![0-9])")


def minor_of(version: str) -> KubernetesMinor | None:
    """Returns the minor of a version as API servers, kubelets and people write it; None where it is none.

    >>> [str(minor_of(version)) for version in ("v1.31.5-gke.1233000", "v1.33.0+k3s1", "1.36", "new")]
    ['1.31', '1.33', '1.36', 'None']
    """
    found = _VERSION.match(version)
    return KubernetesMinor(whole_number(found[1]), whole_number(found[2])) if found else None


class KubernetesSupport(StrEnum):
    """Of an API server."""

    SUPPORTED = "Supported"
    TOO_OLD = "TooOld"
    NOT_TESTED = "NotTested"
    """Newer than what tests run: everything is done as for ``NEWEST``."""
    UNKNOWN = "Unknown"
    """Its version cannot be read: it is not refused."""


def support_of(version: str) -> KubernetesSupport:
    """
    >>> [str(support_of(version)) for version in ("v1.31.9", "v1.32.0", "v1.38.0+k3s1", "")]
    ['TooOld', 'Supported', 'NotTested', 'Unknown']
    """
    minor = minor_of(version)
    if minor is None:
        return KubernetesSupport.UNKNOWN
    if minor < OLDEST:
        return KubernetesSupport.TOO_OLD
    return KubernetesSupport.SUPPORTED if minor <= NEWEST else KubernetesSupport.NOT_TESTED


class Stage(StrEnum):
    ALPHA = "alpha"
    BETA = "beta"
    STABLE = "stable"


@dataclass(frozen=True, kw_only=True)
class FeatureState:
    """From a minor on, until the next state."""

    since: KubernetesMinor
    stage: Stage
    is_on: bool = True
    """Where nobody has said otherwise."""
    api: str = ""
    """Version of its API, where it has one."""

    def __str__(self) -> str:
        """Such as ``v1beta1, off``."""
        named = self.api or self.stage.value
        return named if self.is_on else f"{named}, off"


@dataclass(frozen=True, kw_only=True)
class KubernetesFeature:
    """Something of Kubernetes that gpushare uses, or that changes what gpushare does."""

    name: str
    """Its feature gate, where it has one."""
    used_by: str
    purpose: str
    states: tuple[FeatureState, ...]
    """Oldest first."""
    where_missing: str
    """What is done there."""

    def state_in(self, minor: KubernetesMinor) -> FeatureState | None:
        """Returns None where Kubernetes does not have it yet."""
        return next((state for state in reversed(self.states) if state.since <= minor), None)

    def is_on_in(self, minor: KubernetesMinor) -> bool:
        """Returns whether it is on where nobody has said otherwise."""
        state = self.state_in(minor)
        return state is not None and state.is_on


def _state(since: int, stage: Stage, api: str = "", *, is_on: bool = True) -> FeatureState:
    """``since``: minor of Kubernetes 1."""
    return FeatureState(since=KubernetesMinor(1, since), stage=stage, is_on=is_on, api=api)


MUTATING_POLICY = KubernetesFeature(
    name="MutatingAdmissionPolicy",
    used_by="`manifests/dedicated/pods.yaml`",
    purpose="points pods that ask for cards at the kube-scheduler of backend `Dedicated`",
    states=(
        _state(32, Stage.ALPHA, "v1alpha1", is_on=False),
        _state(34, Stage.BETA, "v1beta1", is_on=False),
        _state(36, Stage.STABLE, "v1"),
    ),
    where_missing="pods have to say `schedulerName: gpushare-scheduler`; `SchedulerConfigured` says so",
)

FEATURES: Sequence[KubernetesFeature] = (
    KubernetesFeature(
        name="ServiceAccountTokenPodNodeInfo",
        used_by="`manifests/admission-share-nodes.yaml`, `admission-pods.yaml`",
        purpose="the token of a plugin names its node, so that it may write for that node alone",
        states=(_state(29, Stage.ALPHA, is_on=False), _state(30, Stage.BETA), _state(32, Stage.STABLE)),
        where_missing="plugins may write nothing: this is why 1.32 is the oldest",
    ),
    KubernetesFeature(
        name="ValidatingAdmissionPolicy",
        used_by="`manifests/admission-*.yaml`",
        purpose="narrows what accounts may do; refuses pods that get round a limit of memory",
        states=(_state(30, Stage.STABLE, "v1"),),
        where_missing="never missing",
    ),
    MUTATING_POLICY,
)
