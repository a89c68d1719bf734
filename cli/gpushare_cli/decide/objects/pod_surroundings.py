"""Objects around a pod, as far as they keep it from running: quotas, claims, our own programs, our Lease."""

from msgspec import Struct, field

from gpushare_core.api.names import ASKING_ANNOTATION, COMPONENT_LABEL


class SurroundingMeta(Struct, rename="camel"):
    name: str
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class QuotaStatus(Struct):
    hard: dict[str, str | int | float] | None = None
    used: dict[str, str | int | float] | None = None


class KnownQuota(Struct):
    """Source: ``v1.ResourceQuota``."""

    metadata: SurroundingMeta
    status: QuotaStatus = field(default_factory=QuotaStatus)


class ClaimSpec(Struct, rename="camel"):
    storage_class_name: str | None = None


class ClaimStatus(Struct):
    phase: str = ""


class KnownClaim(Struct):
    """Source: ``v1.PersistentVolumeClaim``."""

    metadata: SurroundingMeta
    spec: ClaimSpec = field(default_factory=ClaimSpec)
    status: ClaimStatus = field(default_factory=ClaimStatus)


class ProgramScale(Struct):
    replicas: int | None = None


class ProgramCounts(Struct, rename="camel"):
    """Source: ``v1.DeploymentStatus`` and ``v1.DaemonSetStatus``."""

    ready_replicas: int = 0
    desired_number_scheduled: int = 0
    number_ready: int = 0


class KnownProgram(Struct):
    """A Deployment or DaemonSet of gpushare."""

    metadata: SurroundingMeta
    spec: ProgramScale = field(default_factory=ProgramScale)
    status: ProgramCounts = field(default_factory=ProgramCounts)

    @property
    def component(self) -> str:
        return (self.metadata.labels or {}).get(COMPONENT_LABEL, "")

    @property
    def ready(self) -> int:
        return self.status.ready_replicas or self.status.number_ready


class CallsLease(Struct):
    """Our Lease ``gpushare-extender-calls``."""

    metadata: SurroundingMeta

    @property
    def asking(self) -> frozenset[str]:
        """The names of the schedulers that have asked an extender; empty where none is known to have."""
        return frozenset((self.metadata.annotations or {}).get(ASKING_ANNOTATION, "").split())
