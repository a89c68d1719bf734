"""The Jobs that run hostctl on a control-plane node."""

from enum import StrEnum

from gpushare_core.api.names import EXTENDER_PORT
from gpushare_core.books.dialects import GPUSHARE
from gpushare_core.json_object import Json
from gpushare_operator.cluster.labels import (
    COMMAND_LABEL,
    HASH_ANNOTATION,
    HOSTCTL,
    NODE_ANNOTATION,
    NODE_UID_ANNOTATION,
    SEQUENCE_LABEL,
)
from gpushare_operator.cluster.objects import NodeObject
from gpushare_operator.desired.names import Installation, job_name, labels
from gpushare_operator.desired.pod_template import EVERYWHERE, confined, digest, host_path, mount

DEADLINE = 420
"""Seconds for one run; hostctl itself gives up and rolls back well before."""

ROOT = "/host"
CONFIGURATION = "/etc/kubernetes"


class HostctlCommand(StrEnum):
    """What hostctl does to the kube-scheduler of its host."""

    INSTALL = "install"
    RESTORE = "restore"


ARGUMENTS = {
    HostctlCommand.INSTALL: [
        "--extender-url",
        f"http://127.0.0.1:{EXTENDER_PORT}/gpushare",
        "--managed-resource",
        GPUSHARE.memory_resource,
        "--prioritize-verb",
        "prioritize",
    ],
    HostctlCommand.RESTORE: [],
}


def arguments(command: HostctlCommand) -> list[str]:
    return [str(command), "--root", ROOT, *ARGUMENTS[command]]


def work_hash(command: HostctlCommand) -> str:
    """Returns a hash that changes when the edit would. A new image alone does not edit a scheduler again."""
    return digest({"arguments": arguments(command)})


def hostctl_job(command: HostctlCommand, node: NodeObject, sequence: int, installation: Installation) -> Json:
    """Returns one run of hostctl. Kubernetes never repeats it by itself: each attempt is a Job of its own."""
    job_labels = {**labels(HOSTCTL), COMMAND_LABEL: str(command), SEQUENCE_LABEL: str(sequence)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(command, node.name, sequence),
            "namespace": installation.namespace,
            "labels": job_labels,
            "annotations": {
                NODE_ANNOTATION: node.name,
                NODE_UID_ANNOTATION: node.uid,
                HASH_ANNOTATION: work_hash(command),
            },
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": DEADLINE,
            "template": {"metadata": {"labels": job_labels}, "spec": _pod(command, node, installation)},
        },
    }


def _pod(command: HostctlCommand, node: NodeObject, installation: Installation) -> Json:
    return {
        "serviceAccountName": "gpushare-hostctl",
        "automountServiceAccountToken": False,
        "restartPolicy": "Never",
        "priorityClassName": "system-node-critical",
        # Not by the scheduler: it is the patient.
        "nodeName": node.name,
        # hostctl asks the scheduler's health on the loopback address.
        "hostNetwork": True,
        "tolerations": EVERYWHERE,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(command, installation)],
        "volumes": [host_path("configuration", CONFIGURATION)],
    }


def _container(command: HostctlCommand, installation: Installation) -> Json:
    return {
        "name": "hostctl",
        "image": installation.image,
        "command": ["gpushare-hostctl"],
        "args": arguments(command),
        # The files of the control plane belong to root.
        "securityContext": confined(runAsUser=0),
        "volumeMounts": [mount("configuration", ROOT + CONFIGURATION)],
        "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
    }
