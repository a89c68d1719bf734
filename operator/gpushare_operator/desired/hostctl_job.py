"""Jobs that run hostctl on a control-plane node."""

from enum import StrEnum
from typing import Any

from gpushare_core.api.names import EXTENDER_PORT
from gpushare_core.books.dialects import GPUSHARE
from gpushare_operator.cluster.objects import NodeView
from gpushare_operator.desired.installation import Installation
from gpushare_operator.desired.names import (
    ACTION_LABEL,
    HASH_ANNOTATION,
    HOSTCTL,
    NODE_ANNOTATION,
    NODE_UID_ANNOTATION,
    SEQUENCE_LABEL,
    job_name,
    labels,
)
from gpushare_operator.desired.pod_template import EVERYWHERE, confined, digest, host_path, mount

Json = dict[str, Any]

DEADLINE = 420
"""Seconds for one run; hostctl itself gives up and rolls back well before."""

ROOT = "/host"
CONFIGURATION = "/etc/kubernetes"


class Action(StrEnum):
    INSTALL = "install"
    RESTORE = "restore"


ARGUMENTS = {
    Action.INSTALL: [
        "--extender-url",
        f"http://127.0.0.1:{EXTENDER_PORT}/gpushare",
        "--managed-resource",
        GPUSHARE.memory_resource,
        "--prioritize-verb",
        "prioritize",
    ],
    Action.RESTORE: [],
}


def arguments(action: Action) -> list[str]:
    return [str(action), "--root", ROOT, *ARGUMENTS[action]]


def work_hash(action: Action) -> str:
    """Changes when the edit itself would change. A new image alone does not edit a scheduler again."""
    return digest({"arguments": arguments(action)})


def host_job(action: Action, node: NodeView, sequence: int, installation: Installation) -> Json:
    """One run of hostctl. It is never repeated by Kubernetes itself: each try is an entry of the journal."""
    marks = {**labels(HOSTCTL), ACTION_LABEL: str(action), SEQUENCE_LABEL: str(sequence)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(action, node.name, sequence),
            "namespace": installation.namespace,
            "labels": marks,
            "annotations": {
                NODE_ANNOTATION: node.name,
                NODE_UID_ANNOTATION: node.uid,
                HASH_ANNOTATION: work_hash(action),
            },
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": DEADLINE,
            "template": {"metadata": {"labels": marks}, "spec": _pod(action, node, installation)},
        },
    }


def _pod(action: Action, node: NodeView, installation: Installation) -> Json:
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
        "containers": [_container(action, installation)],
        "volumes": [host_path("configuration", CONFIGURATION)],
    }


def _container(action: Action, installation: Installation) -> Json:
    return {
        "name": "hostctl",
        "image": installation.image,
        "command": ["gpushare-hostctl"],
        "args": arguments(action),
        # The files of the control plane belong to root.
        # Where SELinux is on, a confined type may write nothing there; elsewhere the option is ignored.
        "securityContext": confined(runAsUser=0, seLinuxOptions={"type": "spc_t"}),
        "volumeMounts": [mount("configuration", ROOT + CONFIGURATION)],
        "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
    }
