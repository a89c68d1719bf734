"""What became of a pod, and whether its kubelet did not admit it because of our resource. Pure.

Source: ``pkg/kubelet/lifecycle/predicate.go`` and ``pkg/kubelet/cm/{admission,devicemanager}`` of Kubernetes.
"""

import re

import msgspec

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.scheduling.objects.pod import KubePod, PodMetadata, PodStatus

FINISHED = ("Succeeded", "Failed")
UNEXPECTED = "UnexpectedAdmissionError"
"""The reason of all failures with device plugins, and of much else."""
CALL_FAILED = "rpc error:"
"""In the message when a device plugin did not answer, or refused. Such a message names no resource."""


class KnownMetadata(PodMetadata, kw_only=True):
    """An answer without a UID is none of the API server's, and cannot be read as this."""

    uid: str


class PodOutcome(PodStatus):
    phase: str = ""
    reason: str = ""
    message: str = ""


class PodState(KubePod, kw_only=True):
    """A pod as the API server has it."""

    metadata: KnownMetadata
    status: PodOutcome = msgspec.field(default_factory=PodOutcome)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def node(self) -> str:
        """Empty while the pod is not bound."""
        return self.spec.node_name

    @property
    def is_finished(self) -> bool:
        return self.status.phase in FINISHED


def rejection_for(resource: str, pod: PodState) -> str:
    """Returns why the kubelet did not admit ``pod``, if that concerns ``resource``; else an empty text."""
    reason, message = pod.status.reason, pod.status.message
    if pod.status.phase != "Failed":
        return ""
    concerns = reason == f"OutOf{resource}" or (
        reason == UNEXPECTED
        and (_names(resource, message) or (CALL_FAILED in message and _is_ours_alone(resource, pod)))
    )
    return reason if concerns else ""


def _names(resource: str, message: str) -> bool:
    """Returns whether ``message`` names ``resource``, not just a resource with a longer name."""
    return re.search(rf"(?<![\w./-]){re.escape(resource)}(?![\w/-]|\.\w)", message) is not None


def _is_ours_alone(resource: str, pod: PodState) -> bool:
    """Returns whether the pod asks for ``resource``, and for no other plugin's."""
    asked = _extended_resources(pod)
    return resource in asked and asked <= RESOURCES.keys()


def _extended_resources(pod: PodState) -> set[str]:
    containers = (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))
    resources = (container.resources for container in containers if container.resources)
    return {name for resource in resources for name in resource.limits or () if "/" in name}
