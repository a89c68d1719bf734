"""What is read of the objects that deleting policies changes."""

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import Struct, field

from gpushare_cli.decide.objects.share_node import ObservedCondition, ObservedShareNode, condition_of
from gpushare_core.api.enums import Backend
from gpushare_core.api.names import PLUGIN_NODE_LABEL, POLICY_LABEL, SCHEDULER_LABEL, STARTUP_TAINT
from gpushare_core.api.plugin_heartbeat import IsolationFiles, read_isolation_files
from gpushare_core.scheduling.objects.holder import PodUpdate

EXTERNAL = "external"
"""Value of ``SCHEDULER_LABEL`` where people connect kube-scheduler themselves."""
LEAVE_FILES_ANNOTATION = "gpushare.io/leave-isolation-files"
"""On a policy: ``true`` where its isolation files stay on nodes, whoever needs them."""
BACKEND_ANNOTATION = "gpushare.io/scheduler-backend"
"""On the extender's DaemonSet, where people connect kube-scheduler themselves."""


class UndoMeta(Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None

    def label(self, key: str) -> str:
        return (self.labels or {}).get(key, "")


class UndoScheduler(Struct):
    backend: str = Backend.KUBE_SCHEDULER


class UndoPolicySpec(Struct):
    scheduler: UndoScheduler = field(default_factory=UndoScheduler)


class UndoConditions(Struct):
    conditions: list[ObservedCondition] | None = None


class UndoPolicy(Struct):
    metadata: UndoMeta
    spec: UndoPolicySpec = field(default_factory=UndoPolicySpec)
    status: UndoConditions = field(default_factory=UndoConditions)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_deleting(self) -> bool:
        return bool(self.metadata.deletion_timestamp)

    @property
    def leaves_files(self) -> bool:
        return (self.metadata.annotations or {}).get(LEAVE_FILES_ANNOTATION) == "true"

    def condition(self, type_: str) -> ObservedCondition | None:
        return condition_of(self.status.conditions, type_)


class UndoTaint(Struct):
    key: str = ""


class UndoNodeSpec(Struct):
    taints: list[UndoTaint] | None = None


class UndoNode(Struct):
    metadata: UndoMeta
    spec: UndoNodeSpec = field(default_factory=UndoNodeSpec)
    status: UndoConditions = field(default_factory=UndoConditions)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def policy(self) -> str:
        """Whose labels it has; empty for none."""
        return self.metadata.label(PLUGIN_NODE_LABEL) or self.metadata.label(POLICY_LABEL)

    @property
    def scheduler_mark(self) -> str:
        return self.metadata.label(SCHEDULER_LABEL)

    @property
    def is_ready(self) -> bool:
        return any(found.type == "Ready" and found.status == "True" for found in self.status.conditions or ())

    @property
    def has_startup_taint(self) -> bool:
        return any(taint.key == STARTUP_TAINT for taint in self.spec.taints or ())


class UndoLease(Struct):
    """Of a node's plugin."""

    metadata: UndoMeta

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def isolation_files(self) -> IsolationFiles | None:
        return read_isolation_files({"metadata": {"annotations": self.metadata.annotations}})


class UndoAvailability(Struct, rename="camel"):
    available_replicas: int = 0


class UndoObject(Struct):
    """A DaemonSet, a Deployment, a Job or a ConfigMap."""

    metadata: UndoMeta
    status: UndoAvailability = field(default_factory=UndoAvailability)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def path(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoObjects:
    """All that deleting policies may change, as it is before."""

    policies: Sequence[UndoPolicy]
    share_nodes: Sequence[ObservedShareNode]
    nodes: Sequence[UndoNode]
    """Those with a label of ours alone."""
    daemon_sets: Sequence[UndoObject]
    deployments: Sequence[UndoObject]
    """The operator's own among them."""
    jobs: Sequence[UndoObject]
    config_maps: Sequence[UndoObject]
    booked: Sequence[PodUpdate] = ()
    """What bound pods have by their annotations."""
    leases: Sequence[UndoLease] = ()
    """Of the plugins."""
