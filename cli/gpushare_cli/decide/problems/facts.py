"""What has been read of a cluster to say whether all is well."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from msgspec import Struct

from gpushare_cli.decide.objects.installed import InstalledDeployment, InstalledLease, ProgramPod
from gpushare_cli.decide.objects.node_state import NodeState
from gpushare_cli.decide.objects.pod_event import ObservedEvent
from gpushare_cli.decide.objects.policy import ObservedPolicy
from gpushare_cli.decide.objects.unplaced_pod import UnplacedPod
from gpushare_core.api.names import NAMESPACE


class UnreadPart(Struct, frozen=True, kw_only=True, rename="camel"):
    """Something that could not be read, so that nothing is known of it."""

    part: str
    reason: str


POLICIES = "GPUSharePolicies"
SHARE_NODES = "GPUShareNodes"
OPERATOR_DEPLOYMENT = "the operator's Deployment"
OPERATOR_LEASE = "the operator's Lease"
PROGRAM_PODS = "pods of operator and extender"
CALLS = "the Lease of the extender's calls"
PENDING_PODS = "pods that wait"
OTHERS_PENDING_PODS = "pods of other namespaces that wait"
KUBERNETES = "the version of Kubernetes"
HEARTBEATS = "the plugins' Leases"
EVICTIONS = "Events of evicted pods"
"""Names of parts, as people read them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusFacts:
    """A part that could not be read is empty, and one of ``unread``."""

    now: datetime
    client_version: str
    namespace: str = NAMESPACE
    """Where gpushare is installed, as far as its operator is found."""
    policies: Sequence[ObservedPolicy] | None = ()
    """None: the API server does not know their kind."""
    nodes: Sequence[NodeState] | None = ()
    """None: the API server does not know their kind."""
    deployment: InstalledDeployment | None = None
    lease: InstalledLease | None = None
    calls: InstalledLease | None = None
    pods: Sequence[ProgramPod] = ()
    waiting: Sequence[UnplacedPod] = ()
    heartbeats: Mapping[str, InstalledLease] = field(default_factory=dict)
    """Node -> Lease of its plugin; read only where no operator does."""
    evictions: Sequence[ObservedEvent] = ()
    """About pods that were evicted for their excess; read only where a node's policy asks for that."""
    kubernetes: str = ""
    unread: Sequence[UnreadPart] = ()

    def has_read(self, *parts: str) -> bool:
        return all(unread.part not in parts for unread in self.unread)
