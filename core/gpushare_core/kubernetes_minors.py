"""Which minor versions of Kubernetes gpushare is for, and what they differ in.

``docs/kubernetes-versions.md`` shows it. Source of gates: ``pkg/features/kube_features.go`` of each minor.
"""

import re
from collections.abc import Mapping, Sequence
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
SCHEDULER_CONFIGURATION = KubernetesMinor(1, 25)
"""The first kube-scheduler that reads ``kubescheduler.config.k8s.io/v1``."""
RANGE = f"{OLDEST} to {NEWEST}"
ENGINE_MINORS = tuple(KubernetesMinor(1, minor) for minor in (35, 36, 37))
"""For which ``scheduler/`` is built: an image of our kube-scheduler each."""
ENGINE_RANGE = f"{ENGINE_MINORS[0]} to {ENGINE_MINORS[-1]}"

_VERSION = re.compile(r"v?([0-9]{1,6})\.([0-9]{1,6})(?![0-9])")


def minor_of(version: str) -> KubernetesMinor | None:
    """Returns the minor of a version as API servers, kubelets and people write it; None where it is none.

    >>> [str(minor_of(version)) for version in ("v1.31.5-gke.1233000", "v1.33.0+k3s1", "1.36", "new")]
    ['1.31', '1.33', '1.36', 'None']
    """
    found = _VERSION.match(version)
    return KubernetesMinor(whole_number(found[1]), whole_number(found[2])) if found else None


def engine_minor(server: KubernetesMinor) -> KubernetesMinor | None:
    """Returns the minor of our kube-scheduler for an API server of minor ``server``; None if there is none.

    It may be one minor older than the server, never newer. Source: Kubernetes' version skew policy.

    >>> [str(engine_minor(KubernetesMinor(1, minor))) for minor in (34, 35, 37, 38, 39)]
    ['None', '1.35', '1.37', '1.37', 'None']
    """
    allowed = (server, server._replace(minor=server.minor - 1))
    return next((minor for minor in allowed if minor in ENGINE_MINORS), None)


class KubernetesSupport(StrEnum):
    """Of an API server."""

    SUPPORTED = "Supported"
    TOO_OLD = "TooOld"
    NOT_TESTED = "NotTested"
    """Newer than what tests run: everything is done as for ``NEWEST``."""
    UNKNOWN = "Unknown"
    """Its version cannot be read, or it was built without one and says ``v0.0.0``: it is not refused."""


def support_of(version: str) -> KubernetesSupport:
    """
    >>> [str(support_of(version)) for version in ("v1.31.9", "v1.32.0", "v1.38.0+k3s1", "", "v0.0.0-master")]
    ['TooOld', 'Supported', 'NotTested', 'Unknown', 'Unknown']
    """
    minor = minor_of(version)
    if minor is None or minor.major == 0:
        return KubernetesSupport.UNKNOWN
    if minor < OLDEST:
        return KubernetesSupport.TOO_OLD
    return KubernetesSupport.SUPPORTED if minor <= NEWEST else KubernetesSupport.NOT_TESTED


class FeatureStage(StrEnum):
    ALPHA = "alpha"
    BETA = "beta"
    STABLE = "stable"


@dataclass(frozen=True, kw_only=True)
class FeatureState:
    """From a minor on, until the next state."""

    since: KubernetesMinor
    stage: FeatureStage
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
    where_missing: str = ""
    """What is done there; empty where no supported minor lacks it."""

    def state_in(self, minor: KubernetesMinor) -> FeatureState | None:
        """Returns None where Kubernetes does not have it yet."""
        return next((state for state in reversed(self.states) if state.since <= minor), None)

    def is_on_in(self, minor: KubernetesMinor) -> bool:
        """Returns whether it is on where nobody has said otherwise."""
        state = self.state_in(minor)
        return state is not None and state.is_on


def _state(since: int, stage: FeatureStage, api: str = "", *, is_on: bool = True) -> FeatureState:
    """``since``: minor of Kubernetes 1."""
    return FeatureState(since=KubernetesMinor(1, since), stage=stage, is_on=is_on, api=api)


_THROUGHOUT = (_state(OLDEST.minor, FeatureStage.STABLE),)
"""Has no gate, and is the same in all supported minors; older ones were not looked at."""

_OF_THE_SERVER = (
    KubernetesFeature(
        name="ServiceAccountTokenPodNodeInfo",
        used_by="`manifests/admission-share-nodes.yaml`, `admission-pods.yaml`",
        purpose="a plugin's token names its node, so the plugin may write for that node only",
        states=(
            _state(29, FeatureStage.ALPHA, is_on=False),
            _state(30, FeatureStage.BETA),
            _state(32, FeatureStage.STABLE),
        ),
    ),
    KubernetesFeature(
        name="ValidatingAdmissionPolicy",
        used_by="`manifests/admission-*.yaml`",
        purpose="limits what gpushare's accounts may do; refuses pods that bypass their memory limit",
        states=(_state(30, FeatureStage.STABLE, "v1"),),
    ),
    KubernetesFeature(
        name="MutatingAdmissionPolicy",
        used_by="`manifests/dedicated/pods.yaml`",
        purpose="sets `schedulerName: gpushare-scheduler` in pods that ask for cards (backend `Dedicated`)",
        states=(
            _state(32, FeatureStage.ALPHA, "v1alpha1", is_on=False),
            _state(34, FeatureStage.BETA, "v1beta1", is_on=False),
            _state(36, FeatureStage.STABLE, "v1"),
        ),
        where_missing="each pod has to set it itself; `SchedulerConfigured` says so",
    ),
    KubernetesFeature(
        name="CEL: optional values, quantities, strings of version 2",
        used_by="`manifests/admission-*.yaml`, `crds/`",
        purpose="expressions in admission policies and CRDs; a server accepts what the minor before it knows",
        states=(_state(29, FeatureStage.STABLE),),
    ),
    KubernetesFeature(
        name="CRDValidationRatcheting",
        used_by="`crds/`",
        purpose="a stored policy stays valid when an upgrade of gpushare makes rules for its fields stricter",
        states=(
            _state(28, FeatureStage.ALPHA, is_on=False),
            _state(30, FeatureStage.BETA),
            _state(33, FeatureStage.STABLE),
        ),
    ),
    KubernetesFeature(
        name="CRDValidationRatcheting of a status",
        used_by="`crds/`",
        purpose="the same for the status, which the operator and the plugin write",
        states=(_state(33, FeatureStage.STABLE),),
        where_missing="the API server refuses the status until somebody corrects the object: the log of the"
        " operator or of the plugin names the field",
    ),
    KubernetesFeature(
        name="Binding with annotations and the pod's UID",
        used_by="extender",
        purpose="writes the node and the card in one step, for exactly this pod, not for another one of the"
        " same name",
        states=_THROUGHOUT,
    ),
    KubernetesFeature(
        name="PodLevelResources",
        used_by="`kubectl gpushare why` and `simulate`",
        purpose="CPU and memory of a whole pod (`spec.resources`); only containers ask for units of cards",
        states=(_state(32, FeatureStage.ALPHA, is_on=False), _state(34, FeatureStage.BETA)),
        where_missing="the API server drops the field",
    ),
    KubernetesFeature(
        name="JobPodFailurePolicy",
        used_by="operator: Jobs of `hostctl`",
        purpose="the Job keeps the exit code of `hostctl` after its pod is gone",
        states=(
            _state(25, FeatureStage.ALPHA, is_on=False),
            _state(26, FeatureStage.BETA),
            _state(31, FeatureStage.STABLE),
        ),
    ),
    KubernetesFeature(
        name="JobPodReplacementPolicy",
        used_by="`manifests/admission-operator.yaml`",
        purpose="the API server adds the field to Jobs, so the admission policy lets it pass",
        states=(
            _state(28, FeatureStage.ALPHA, is_on=False),
            _state(29, FeatureStage.BETA),
            _state(34, FeatureStage.STABLE),
        ),
    ),
    KubernetesFeature(
        name="PDBUnhealthyPodEvictionPolicy",
        used_by="`manifests/disruption-budget.yaml`",
        purpose="a pod of gpushare that is not ready does not block the drain of its node",
        states=(
            _state(26, FeatureStage.ALPHA, is_on=False),
            _state(27, FeatureStage.BETA),
            _state(31, FeatureStage.STABLE),
        ),
    ),
)

_OF_THE_SCHEDULER = (
    KubernetesFeature(
        name="KubeSchedulerConfiguration",
        used_by="`gpushare-hostctl`",
        purpose="names the extender; `gpushare-hostctl render` refuses a kube-scheduler that cannot read it",
        states=(_state(SCHEDULER_CONFIGURATION.minor, FeatureStage.STABLE, "v1"),),
    ),
    KubernetesFeature(
        name="Extender by mutual TLS and HTTP/2",
        used_by="extender",
        purpose="filter, prioritize, preempt and bind, with names of nodes only",
        states=_THROUGHOUT,
    ),
    KubernetesFeature(
        name="`/livez` and `/readyz` of kube-scheduler",
        used_by="`gpushare-hostctl`; backend `Dedicated`",
        purpose="check that it serves after an edit",
        states=(_state(31, FeatureStage.STABLE),),
    ),
    KubernetesFeature(
        name="SchedulerPopFromBackoffQ",
        used_by="backend `Dedicated`, extender",
        purpose="while no other pod waits, kube-scheduler tries a refused pod before its backoff ends",
        states=(_state(33, FeatureStage.BETA),),
        where_missing="after room becomes free, a pod that was refused often may wait up to five minutes"
        " with `Dedicated`, ten seconds with other backends",
    ),
    KubernetesFeature(
        name="SchedulerAsyncPreemption",
        used_by="extender: evictions",
        purpose="kube-scheduler evicts in the background; the extender holds the card meanwhile",
        states=(_state(32, FeatureStage.ALPHA, is_on=False), _state(33, FeatureStage.BETA)),
        where_missing="kube-scheduler handles no other pod until it has evicted; the extender does the same",
    ),
    KubernetesFeature(
        name="End of a nomination",
        used_by="extender: nominations",
        purpose="when a nomination ends, kube-scheduler tries the pods again that lacked its units",
        states=(_state(33, FeatureStage.STABLE),),
        where_missing="it tries them again after up to five minutes",
    ),
    KubernetesFeature(
        name="NominatedNodeNameForExpectation",
        used_by="extender: nominations",
        purpose="a pod whose volumes are being prepared also has a nominated node, and keeps it if it fits"
        " there",
        states=(_state(34, FeatureStage.ALPHA, is_on=False), _state(35, FeatureStage.BETA)),
        where_missing="only preemption nominates nodes",
    ),
    KubernetesFeature(
        name="OpportunisticBatching",
        used_by="extender: filter, prioritize",
        purpose="of several equal pods, kube-scheduler tries the next one on the next best node of the"
        " one before; it asks the extender only whether the pod fits there, not for scores",
        states=(_state(35, FeatureStage.BETA),),
        where_missing="the extender scores nodes for each pod",
    ),
    KubernetesFeature(
        name="TaintTolerationComparisonOperators",
        used_by="`kubectl gpushare why` and `simulate`",
        purpose="tolerations with `Lt` and `Gt`, which count as not matching",
        states=(_state(35, FeatureStage.ALPHA, is_on=False),),
        where_missing="the API server refuses them",
    ),
)

_OF_THE_KUBELET = (
    KubernetesFeature(
        name="Device plugin API",
        used_by="plugin",
        purpose="offers units, chooses a card's units for a container, injects what the container needs",
        states=(_state(OLDEST.minor, FeatureStage.STABLE, "v1beta1"),),
    ),
    KubernetesFeature(
        name="Several connections for a resource",
        used_by="plugin",
        purpose="plugins of two policies may be connected at once while a node moves from one to the other;"
        " the kubelet tells them apart by their sockets' names, so the plugin registers each time under a new"
        " name",
        states=(_state(37, FeatureStage.STABLE),),
        where_missing="the newest registration counts; when an older plugin leaves, the kubelet disconnects"
        " the newest, which registers again",
    ),
    KubernetesFeature(
        name="DevicePluginCDIDevices",
        used_by="plugin, with `injection: CDI`",
        purpose="the plugin names CDI devices instead of paths",
        states=(
            _state(28, FeatureStage.ALPHA, is_on=False),
            _state(29, FeatureStage.BETA),
            _state(31, FeatureStage.STABLE),
        ),
    ),
    KubernetesFeature(
        name="PodResources: List",
        used_by="plugin",
        purpose="which units the kubelet has given to which container",
        states=(_state(OLDEST.minor, FeatureStage.STABLE, "v1"),),
    ),
    KubernetesFeature(
        name="KubeletPodResourcesListUseActivePods",
        used_by="plugin",
        purpose="List omits pods that have ended",
        states=(_state(34, FeatureStage.STABLE),),
        where_missing="List shows ended pods without devices; the plugin asks the API server which pods"
        " have ended",
    ),
    KubernetesFeature(
        name="Checkpoint of the device manager",
        used_by="plugin, `kubectl gpushare audit`",
        purpose="has UIDs of pods and ordinary init containers, which List lacks; the file is internal,"
        " so the plugin also works without it",
        states=_THROUGHOUT,
    ),
    KubernetesFeature(
        name="Restarted containers at a kubelet's start",
        used_by="plugin",
        purpose="a kubelet that starts before the plugin accepts running containers, also those that had"
        " restarted before",
        states=(_state(35, FeatureStage.STABLE),),
        where_missing="the kubelet may end such a pod with `UnexpectedAdmissionError`, as it may with every"
        " device plugin: [robustness.md](robustness.md#what-is-the-kubelets-own)",
    ),
    KubernetesFeature(
        name="ResourceHealthStatus",
        used_by="plugin, extender",
        purpose="a pod's status lists each of its units, so a pod may have 65,536 at most, and the plugin"
        " watches pods without their status",
        states=(_state(31, FeatureStage.ALPHA, is_on=False), _state(36, FeatureStage.BETA)),
        where_missing="the same limit",
    ),
    KubernetesFeature(
        name="SidecarContainers",
        used_by="extender, plugin",
        purpose="an init container with `restartPolicy: Always` keeps its units while the other containers"
        " run",
        states=(
            _state(28, FeatureStage.ALPHA, is_on=False),
            _state(29, FeatureStage.BETA),
            _state(33, FeatureStage.STABLE),
        ),
    ),
    KubernetesFeature(
        name="PreventStaticPodAPIReferences",
        used_by="`gpushare-hostctl`",
        purpose="static pods must not refer to API objects: kube-scheduler's pod gets host files",
        states=(_state(34, FeatureStage.BETA), _state(37, FeatureStage.STABLE)),
        where_missing="the same files",
    ),
)

FEATURES: Mapping[str, Sequence[KubernetesFeature]] = {
    "API server and controllers": _OF_THE_SERVER,
    "kube-scheduler": _OF_THE_SCHEDULER,
    "kubelet": _OF_THE_KUBELET,
}
"""By the program whose minor counts."""
