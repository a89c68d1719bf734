"""Names, labels and namespace of the objects that the operator makes."""

import hashlib
from dataclasses import dataclass, field

from gpushare_core.api.names import (
    COMPONENT_LABEL,
    MANAGED_BY_LABEL,
    NAMESPACE,
    POLICY_LABEL,
    VERSION_LABEL,
)
from gpushare_core.kubernetes_minors import KubernetesMinor
from gpushare_core.process.version import VERSION
from gpushare_operator.cluster.labels import MANAGER
from gpushare_operator.desired.programs import Programs

NAME_LABEL = "app.kubernetes.io/name"

EXTENDER_NAME = "gpushare-extender"
VOLCANO_BACKUP = "gpushare-volcano-backup"

SCHEDULER_IMAGE = "registry.k8s.io/kube-scheduler"
"""As Kubernetes publishes it; an administrator may name a mirror."""

NODE_PART = 24
"""Characters of a node's name in the name of a Job; the Job's pods must stay within 63."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """This installation's own settings: the arguments of the operator, and the image of its Deployment."""

    namespace: str = NAMESPACE
    image: str
    """One image holds all programs."""
    pull_policy: str = ""
    """Empty: Kubernetes chooses by the image's tag."""
    pull_secrets: tuple[str, ...] = ()
    programs: Programs = field(default_factory=Programs)
    scheduler_image: str = SCHEDULER_IMAGE
    """With backend Dedicated and engine Extender. Without a tag it gets that of the server's version."""
    engine_image: str = ""
    """Repository of our own kube-scheduler's images, without a tag; empty: beside that of ``image``."""

    def scheduler_image_for(self, version: str) -> str:
        """Returns the image of kube-scheduler for a server of ``version``, such as ``v1.36.3``."""
        is_whole = ":" in self.scheduler_image.rpartition("/")[2] or "@" in self.scheduler_image
        return self.scheduler_image if is_whole else f"{self.scheduler_image}:{version}"

    def engine_image_for(self, minor: KubernetesMinor) -> str:
        """Returns the image of our own kube-scheduler of ``minor``."""
        repository = self.engine_image or f"{_repository(self.image)}-scheduler"
        return f"{repository}:{VERSION}-{minor}"


def plugin_name(policy: str) -> str:
    return f"gpushare-plugin-{policy}"


def job_name(command: str, node: str, sequence: int) -> str:
    """Returns at most 63 characters, different for nodes whose names begin alike."""
    return f"gpushare-scheduler-{command}-{_short(node)}-{sequence}"


def labels(component: str, policy: str = "") -> dict[str, str]:
    common = {
        NAME_LABEL: "gpushare",
        COMPONENT_LABEL: component,
        MANAGED_BY_LABEL: MANAGER,
        VERSION_LABEL: VERSION,
    }
    return {**common, POLICY_LABEL: policy} if policy else common


def selector(component: str, policy: str = "") -> dict[str, str]:
    """Returns those of ``labels`` that select the pods of one DaemonSet; they can never be changed later."""
    return {COMPONENT_LABEL: component, POLICY_LABEL: policy} if policy else {COMPONENT_LABEL: component}


def _repository(image: str) -> str:
    """Returns ``image`` without tag and digest. A colon before the last slash is that of a port."""
    tagged = image.partition("@")[0]
    folder, slash, name = tagged.rpartition("/")
    return f"{folder}{slash}{name.partition(':')[0]}"


def _short(node: str) -> str:
    if len(node) <= NODE_PART:
        return node
    digest = hashlib.sha256(node.encode()).hexdigest()[:8]
    return f"{node[: NODE_PART - 9].rstrip('.-')}-{digest}"
