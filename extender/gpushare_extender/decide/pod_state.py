"""What became of a pod, as the API server tells it. Pure."""

import msgspec

from gpushare_extender.decide.pod import PodSpec, PodVersion

FINISHED = ("Succeeded", "Failed")


class _Metadata(msgspec.Struct, rename="camel"):
    uid: str
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class PodStatus(msgspec.Struct):
    """Source: ``v1.PodStatus``."""

    phase: str = ""
    reason: str = ""
    message: str = ""


class PodState(msgspec.Struct):
    """Source: ``v1.Pod``. An answer without a UID is none of the API server's, and cannot be read as this."""

    metadata: _Metadata
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def version(self) -> PodVersion:
        return PodVersion.of(self.metadata.resource_version, self.metadata.annotations)

    @property
    def node(self) -> str:
        """Empty as long as the pod is not bound."""
        return self.spec.node_name

    @property
    def is_finished(self) -> bool:
        return self.status.phase in FINISHED
