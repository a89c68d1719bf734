"""What is known of the cluster beside cards: of nodes, policies, quotas. Facts alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.objects.pod_surroundings import KnownClaim, KnownProgram, KnownQuota
from gpushare_cli.decide.objects.policy import ObservedPolicy, placing_engine
from gpushare_core.api.enums import Backend, Engine

NODES = "Nodes"
"""As ``unread`` has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """None stands for what was not read."""

    nodes: Mapping[str, KubeNode] | None = None
    """By name."""
    policies: Sequence[ObservedPolicy] | None = None
    is_installed: bool = True
    """Whether the API server knows GPUSharePolicies."""
    quotas: Sequence[KnownQuota] | None = None
    """Of the pod's namespace."""
    claims: Mapping[str, KnownClaim] | None = None
    """By name: the PersistentVolumeClaims of the pod's namespace, where the pod mounts any."""
    programs: Sequence[KnownProgram] | None = None
    """The Deployments and DaemonSets of gpushare."""
    asking_schedulers: frozenset[str] | None = None
    """The names of schedulers that are known to ask the extender."""
    refusal: str = ""
    """Why the API server would not create the pod, in its own words; empty where it would, where it was not
    asked, and for a pod that is there."""
    written_node: str = ""
    """The node that a manifest names in ``spec.nodeName``, past every scheduler."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """What could not be read -> why."""

    @property
    def engine(self) -> Engine | None:
        """Returns the engine that places pods; None where none of ours does, or it is not known."""
        return placing_engine(self.policies or ())

    @property
    def extender_log(self) -> str:
        """Returns what makes ``kubectl logs`` show the extender's; empty where there is none."""
        if self.engine is not Engine.EXTENDER:
            return ""
        is_dedicated = any(policy.status.backend == Backend.DEDICATED for policy in self.policies or ())
        where = "scheduler -c extender" if is_dedicated else "extender"
        return f"-l app.kubernetes.io/component={where}"

    def program(self, component: str) -> KnownProgram | None:
        """Returns the first one of a component, such as ``operator`` or ``extender``."""
        programs = self.programs or ()
        return next((program for program in programs if program.component == component), None)
