"""The objects of an installation: the operator's Deployment, pods of programs, Leases."""

from datetime import datetime, timedelta

from msgspec import Struct, field

from gpushare_core.api.names import COMPONENT_LABEL, VERSION_LABEL
from gpushare_core.api.timestamps import read_rfc3339


class InstalledMeta(Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    deletion_timestamp: str = ""

    @property
    def version(self) -> str:
        return (self.labels or {}).get(VERSION_LABEL, "")

    @property
    def component(self) -> str:
        return (self.labels or {}).get(COMPONENT_LABEL, "")


class _ScaleSpec(Struct):
    replicas: int = 1


class _ScaleStatus(Struct, rename="camel"):
    ready_replicas: int = 0


class InstalledDeployment(Struct):
    """Source: ``apps/v1`` Deployment."""

    metadata: InstalledMeta
    spec: _ScaleSpec = field(default_factory=_ScaleSpec)
    status: _ScaleStatus = field(default_factory=_ScaleStatus)


class _HoldingSpec(Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class InstalledLease(Struct):
    """Source: ``coordination.k8s.io/v1`` Lease."""

    metadata: InstalledMeta
    spec: _HoldingSpec = field(default_factory=_HoldingSpec)

    @property
    def holder(self) -> str:
        return self.spec.holder_identity or ""

    @property
    def renewed(self) -> datetime | None:
        """By the clock of its holder."""
        return read_rfc3339(self.spec.renew_time or "")

    def is_held(self, now: datetime, slack: timedelta) -> bool:
        """``slack``: by how much clocks may differ."""
        if not self.holder or self.renewed is None:
            return False
        return now - self.renewed <= timedelta(seconds=self.spec.lease_duration_seconds or 0) + slack


class _WaitingState(Struct):
    reason: str = ""
    message: str = ""


class _ProgramState(Struct):
    waiting: _WaitingState | None = None


class _ProgramContainer(Struct, rename="camel"):
    ready: bool = False
    restart_count: int = 0
    state: _ProgramState = field(default_factory=_ProgramState)


class _ProgramPodStatus(Struct, rename="camel"):
    phase: str = ""
    container_statuses: list[_ProgramContainer] | None = None


class _NamedContainer(Struct):
    name: str = ""


class _ProgramPodSpec(Struct, rename="camel"):
    node_name: str = ""
    containers: list[_NamedContainer] | None = None


class ProgramPod(Struct):
    """A pod of the operator, the extender or our own scheduler."""

    metadata: InstalledMeta
    spec: _ProgramPodSpec = field(default_factory=_ProgramPodSpec)
    status: _ProgramPodStatus = field(default_factory=_ProgramPodStatus)

    @property
    def runs_extender(self) -> bool:
        return any(container.name == "extender" for container in self.spec.containers or ())

    @property
    def is_over(self) -> bool:
        """Whether it ends, or has ended: another one takes its place."""
        return bool(self.metadata.deletion_timestamp) or self.status.phase in ("Succeeded", "Failed")

    @property
    def is_ready(self) -> bool:
        containers = self.status.container_statuses or ()
        return bool(containers) and all(container.ready for container in containers)

    @property
    def trouble(self) -> str:
        """Why it is not ready, as far as Kubernetes says."""
        for container in self.status.container_statuses or ():
            if container.state.waiting and container.state.waiting.reason:
                waiting = container.state.waiting
                return f"{waiting.reason}: {waiting.message}" if waiting.message else waiting.reason
        if self.status.phase == "Running":
            return "it runs, and does not say that it is ready"
        return f"its phase is {self.status.phase or 'Unknown'}"
