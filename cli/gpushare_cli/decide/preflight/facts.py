"""What has been read of a cluster to say whether gpushare can be used there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpushare_cli.decide.objects.installed import InstalledDeployment
from gpushare_cli.decide.preflight.objects import (
    BesideObject,
    KubeSchedulerPod,
    ObservedDaemonSet,
    ObservedRuntimeClass,
    PreflightNode,
)
from gpushare_cli.decide.problems.facts import UnreadPart
from gpushare_core.api.names import NAMESPACE

NODES = "nodes"
SCHEDULERS = "pods of kube-scheduler"
ADMISSION_KINDS = "the kinds of admission policies"
DAEMON_SETS = "DaemonSets"
RUNTIME_CLASSES = "RuntimeClasses"
OWN_KINDS = "whether the CRDs are there"
OWN_NAMESPACE = "gpushare's namespace"
OWN_QUOTAS = "the ResourceQuotas of gpushare's namespace"
RIGHTS = "your rights"
"""Names of parts, as people read them, beside those that ``status`` reads as well."""

VALIDATING, MUTATING = "validatingadmissionpolicies", "mutatingadmissionpolicies"
ADMISSION_VERSIONS = ("v1", "v1beta1", "v1alpha1")
"""The best one first; our manifests are written in that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletAnswers:
    """What some kubelets say through the API server: few are asked, and few people may."""

    cgroups: Mapping[str, int] = field(default_factory=dict)
    """Node -> version of its cgroups, as its kubelet has found it."""
    static_pods: Mapping[str, str] = field(default_factory=dict)
    """Node -> folder of its static pods; of nodes with a kube-scheduler."""
    refusal: str = ""
    """Why one of them was not read; empty: all were, or none was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightInstallation:
    """What is there of gpushare, and for it."""

    has_crds: bool = False
    deployment: InstalledDeployment | None = None
    """The operator's."""
    namespace: str = NAMESPACE
    """Where gpushare is installed, as far as its operator is found; else where it would be."""
    namespace_object: BesideObject | None = None
    quotas: Sequence[BesideObject] = ()
    rights: Mapping[str, bool] = field(default_factory=dict)
    """What installing takes, in words -> whether who asks may do it."""

    @property
    def is_whole(self) -> bool:
        return self.has_crds and self.deployment is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightFacts:
    """A part that could not be read is empty, and one of ``unread``."""

    kubernetes: str = ""
    nodes: Sequence[PreflightNode] = ()
    schedulers: Sequence[KubeSchedulerPod] = ()
    admission: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Version of ``admissionregistration.k8s.io`` that is served -> the plurals of its kinds."""
    daemon_sets: Sequence[ObservedDaemonSet] = ()
    runtime_classes: Sequence[ObservedRuntimeClass] = ()
    kubelets: KubeletAnswers = field(default_factory=KubeletAnswers)
    own: PreflightInstallation = field(default_factory=PreflightInstallation)
    unread: Sequence[UnreadPart] = ()

    @property
    def static_schedulers(self) -> Sequence[KubeSchedulerPod]:
        return [pod for pod in self.schedulers if pod.is_static]

    def admission_version(self, plural: str) -> str:
        """Returns the best version in which that kind is served; empty: in none."""
        return next((one for one in ADMISSION_VERSIONS if plural in self.admission.get(one, ())), "")
