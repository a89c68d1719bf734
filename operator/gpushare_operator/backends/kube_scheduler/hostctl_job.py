"""The Jobs that run hostctl on a control-plane node."""

import json
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from gpushare_core.api.names import CONTROL_PLANE_LABEL, EDIT_REVISION, SCHEDULER_LABEL
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.labels import (
    ASKED_ANNOTATION,
    COMMAND_LABEL,
    COMPARE_LABEL,
    DRIFT_ANNOTATION,
    ENGINE_ANNOTATION,
    HASH_ANNOTATION,
    HOSTCTL,
    INPUTS_ANNOTATION,
    NODE_ANNOTATION,
    NODE_UID_ANNOTATION,
    PORT_ANNOTATION,
    RENEW_ANNOTATION,
    ROLLED_BACK_ANNOTATION,
    SEQUENCE_LABEL,
)
from gpushare_operator.cluster.objects import NodeObject
from gpushare_operator.desired.names import Installation, job_name, labels
from gpushare_operator.desired.pod_template import (
    EVERYWHERE,
    NODE_CRITICAL,
    UNPRIVILEGED,
    confined,
    digest,
    host_path,
    mount,
    of_pods,
    on_nodes_with,
    pull_secrets,
    pulled,
)
from gpushare_operator.policies.engine_choice import EngineChoice
from gpushare_operator.policies.scheduler_settings import SchedulerSettings

ROOT = "/host"
IMAGE_CHECK = "scheduler-image"
"""Name of the container that has the kubelet pull the image of our kube-scheduler."""
RESOURCES: Json = {"requests": {"cpu": "20m", "memory": "48Mi"}, "limits": {"memory": "128Mi"}}
CONFIGURATION = "/etc/kubernetes"


class HostctlCommand(StrEnum):
    """What hostctl does to the kube-scheduler of its host."""

    INSTALL = "install"
    RESTORE = "restore"


PULL_SECONDS = 300
"""In which a node has to have pulled the image of our kube-scheduler."""
NEEDS_PERSON = 2
"""Exit code of hostctl: nothing was touched, and trying again will not help by itself."""
ROLLED_BACK = 3
"""Exit code of hostctl: kube-scheduler did not serve with the edit, and the earlier manifest is back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostctlRun:
    """What a run of hostctl is to do, on whatever host."""

    command: HostctlCommand
    settings: SchedulerSettings
    installation: Installation
    choice: EngineChoice = field(default_factory=EngineChoice)

    @property
    def scheduler_image(self) -> str:
        """Returns the image that kube-scheduler gets; empty where it keeps its own."""
        minor = self.choice.minor if self.command is HostctlCommand.INSTALL else None
        return self.installation.engine_image_for(minor) if minor else ""

    @property
    def edit(self) -> list[str]:
        if self.command is HostctlCommand.RESTORE:
            return []
        if not self.scheduler_image:
            return self.settings.extender_arguments
        own = ["--scheduler-image", self.scheduler_image, "--lease-namespace", self.installation.namespace]
        return [*self.settings.plugin_arguments, *own]

    @property
    def arguments(self) -> list[str]:
        return [str(self.command), "--root", ROOT, "--timeout", str(self.settings.timeout), *self.edit]

    @property
    def work_hash(self) -> str:
        """Returns a hash of the edit: a new image alone edits no scheduler again."""
        return digest({"command": self.command, "edit": self.edit, "revision": EDIT_REVISION})

    @property
    def inputs_hash(self) -> str:
        """Returns a hash of the operator's inputs to a run."""
        return digest(
            {**pulled(self.installation), **pull_secrets(self.installation), "arguments": self.arguments}
        )

    @property
    def deadline(self) -> int:
        """Returns the seconds for one run. hostctl waits for kube-scheduler up to three times, and rolls back
        by itself well before that."""
        return 3 * self.settings.timeout + 60 + (PULL_SECONDS if self.scheduler_image else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """What is known of a host when a run begins."""

    rolled_back_inputs: str = ""
    """hostctl touches nothing while it finds these inputs."""
    renew_after: datetime | None = None
    """When the host's keys are to be renewed."""
    has_drifted: bool = False
    """Whether the host's kube-scheduler has lost our edit."""


FIRST_TIME = Occasion()


def hostctl_job(run: HostctlRun, node: NodeObject, sequence: int, occasion: Occasion = FIRST_TIME) -> Json:
    """Returns one run of hostctl. Kubernetes does not repeat it: each attempt is a Job of its own."""
    job_labels = {**labels(HOSTCTL), COMMAND_LABEL: str(run.command), SEQUENCE_LABEL: str(sequence)}
    template = {"metadata": of_pods(job_labels, {}), "spec": _pod(run, node, occasion.rolled_back_inputs)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(run.command, node.name, sequence),
            "namespace": run.installation.namespace,
            "labels": {**job_labels, COMPARE_LABEL: ""},
            "annotations": _annotations(run, node, occasion),
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": run.deadline,
            "podFailurePolicy": {"rules": [_REMEMBER_EXIT_CODE]},
            "template": template,
        },
    }


_REMEMBER_EXIT_CODE = {
    "action": "FailJob",
    "onExitCodes": {"containerName": "hostctl", "operator": "In", "values": [NEEDS_PERSON, ROLLED_BACK]},
}
"""With this rule the Job keeps the exit code when its pod is gone; nothing is repeated in any case."""


def _annotations(run: HostctlRun, node: NodeObject, occasion: Occasion) -> dict[str, str]:
    renew_after = occasion.renew_after
    return {
        NODE_ANNOTATION: node.name,
        NODE_UID_ANNOTATION: node.uid,
        HASH_ANNOTATION: run.work_hash,
        INPUTS_ANNOTATION: run.inputs_hash,
        **({PORT_ANNOTATION: ",".join(map(str, ports))} if (ports := run.settings.listening) else {}),
        ASKED_ANNOTATION: json.dumps(sorted(run.settings.asked)),
        **({ROLLED_BACK_ANNOTATION: inputs} if (inputs := occasion.rolled_back_inputs) else {}),
        **({RENEW_ANNOTATION: renew_after.isoformat()} if renew_after else {}),
        **({ENGINE_ANNOTATION: str(run.choice.engine)} if run.edit else {}),
        **({DRIFT_ANNOTATION: "yes"} if occasion.has_drifted else {}),
    }


def _pod(run: HostctlRun, node: NodeObject, rolled_back_inputs: str) -> Json:
    return {
        "serviceAccountName": "gpushare-hostctl",
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        # The Job's deadline comes first. The quota knows the pod by this one: manifests/resource-quota.yaml.
        "activeDeadlineSeconds": run.deadline,
        **pull_secrets(run.installation),
        "priorityClassName": run.installation.programs.extender.priority_class_name or NODE_CRITICAL,
        # Without the scheduler: it is what hostctl edits.
        "nodeName": node.name,
        # hostctl asks the scheduler's health on the loopback address.
        "hostNetwork": True,
        "tolerations": EVERYWHERE,
        # The kubelet refuses an edit where no control plane is. A former control plane may have lost every
        # label, and is restored all the same.
        **({"affinity": on_nodes_with(CONTROL_PLANE_LABEL, SCHEDULER_LABEL)} if run.edit else {}),
        # Root without capabilities gives files only to groups that it is in: the extender reads by group.
        "securityContext": {
            "seccompProfile": {"type": "RuntimeDefault"},
            "supplementalGroups": [UNPRIVILEGED],
        },
        **({"initContainers": [_image_check(run)]} if run.scheduler_image else {}),
        "containers": [_container(run, rolled_back_inputs)],
        "volumes": [host_path("configuration", CONFIGURATION)],
    }


def _image_check(run: HostctlRun) -> Json:
    """Has the host's own kubelet pull the image of our kube-scheduler, and run it, before anything is edited.
    The static pod's kubelet finds it there: hostctl refuses one that would be pulled at each start."""
    return {
        "name": IMAGE_CHECK,
        **pulled(run.installation, run.scheduler_image),
        "command": ["kube-scheduler"],
        "args": ["--version"],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": confined(runAsNonRoot=True, runAsUser=UNPRIVILEGED),
        "resources": RESOURCES,
    }


def _container(run: HostctlRun, rolled_back_inputs: str) -> Json:
    unless = ["--rolled-back-inputs", rolled_back_inputs] if rolled_back_inputs else []
    return {
        "name": "hostctl",
        **pulled(run.installation),
        "command": ["gpushare-hostctl"],
        "args": [*run.arguments, *unless],
        # The files of the control plane belong to root. Where SELinux is on, a confined type may write
        # nothing there; elsewhere the option is ignored.
        "securityContext": confined(runAsUser=0, seLinuxOptions={"type": "spc_t"}),
        "volumeMounts": [mount("configuration", ROOT + CONFIGURATION)],
        "resources": RESOURCES,
    }
