"""Labels and annotations of the operator's own objects."""

from collections.abc import Mapping

from gpushare_core.api.names import (
    ADMISSION_LABEL,
    FIELD_MANAGER,
    GROUP,
    ISOLATED_ANNOTATION,
    ISOLATION_ADMISSION_LABEL,
    MANAGED_BY_LABEL,
    SERVED_ANNOTATION,
)
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.text.whole_number import is_number

MANAGER = FIELD_MANAGER
MANAGED = f"{MANAGED_BY_LABEL}={MANAGER}"
"""Selects everything that the operator makes in its namespace."""

PLUGIN = "plugin"
EXTENDER = "extender"
HOSTCTL = "hostctl"
SCHEDULER = "scheduler"
VOLCANO = "volcano"
"""Values of the component label."""

EXTERNAL_MARK = "external"
"""Value of the mark on nodes where people connect kube-scheduler themselves: hostctl did not run there."""
BACKEND_ANNOTATION = f"{GROUP}/scheduler-backend"
"""On the extender's DaemonSet: the backend, unless the operator itself connects kube-schedulers."""

JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
"""On pods, set by Kubernetes: their Job."""

COMMAND_LABEL = f"{GROUP}/action"
"""On Jobs: hostctl's command."""
SEQUENCE_LABEL = f"{GROUP}/sequence"
"""On Jobs: the number of the attempt on their node."""
NODE_ANNOTATION = f"{GROUP}/node"
NODE_UID_ANNOTATION = f"{GROUP}/node-uid"
HASH_ANNOTATION = f"{GROUP}/spec-hash"
INPUTS_ANNOTATION = f"{GROUP}/inputs-hash"
"""On Jobs: a hash of everything that the operator gave hostctl, its image included."""
ROLLED_BACK_ANNOTATION = f"{GROUP}/rolled-back-inputs"
"""On Jobs: hostctl's digest of its inputs when it last rolled an edit back on that host."""
ASKED_ANNOTATION = f"{GROUP}/asked"
"""On Jobs: the values of ``RETRY_ANNOTATION`` when the Job was made, as a JSON list."""
RETRY_ANNOTATION = f"{GROUP}/retry"
"""On policies: a new value asks for another attempt at what has failed."""
LET_GO_ANNOTATION = f"{GROUP}/let-go"
"""On policies: names of nodes, separated by commas, that are lost for ever and need not be restored."""
LEAVE_ISOLATION_FILES_ANNOTATION = f"{GROUP}/leave-isolation-files"
"""On policies: with the value true its deletion does not wait for containers that need files of isolation."""
RENEW_ANNOTATION = f"{GROUP}/renew-after"
"""On Jobs: when the host's keys are to be renewed, if that was known when the Job was made."""
RESULT_ANNOTATION = f"{GROUP}/result"
"""On Jobs: hostctl's exit code, where another container of the pod ran on."""
ENGINE_ANNOTATION = f"{GROUP}/engine"
"""On Jobs: the engine that the run connects."""
DRIFT_ANNOTATION = f"{GROUP}/drift"
"""On Jobs: that kube-scheduler had lost our edit."""
COMPARE_LABEL = f"{GROUP}/compare-with-operator"
"""On a workload while it is written: an admission policy then compares it with the operator's own Deployment.
See manifests/admission-operator.yaml."""
PORT_ANNOTATION = f"{GROUP}/extender-port"
"""On the extender's DaemonSet and pods: the ports that they were made with, the requested one first. On Jobs:
the DaemonSet's ports when the Job was made (somebody may delete the DaemonSet)."""

METRICS_PORT_ANNOTATION = f"{GROUP}/metrics-port"
"""On the extender's DaemonSet and pods: the port on the host's address where Prometheus reads metrics."""

MARK_LABELS = (ADMISSION_LABEL, ISOLATION_ADMISSION_LABEL)
MARK_ANNOTATIONS = (SERVED_ANNOTATION, ISOLATED_ANNOTATION)
"""Of the one policy that admission policies look at."""

DIALECT_LABELS = frozenset(key for dialect in DIALECTS.values() for key in dialect.node_labels)
"""On nodes: labels by which replaced systems select nodes. Administrators may have set them before us."""


def read_ports(text: str) -> tuple[int, ...]:
    """``text``: of ``PORT_ANNOTATION``. Returns () for what is no list of ports."""
    parts = text.split(",")
    return tuple(int(part) for part in parts) if all(map(is_number, parts)) else ()


def read_marks(labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, str]:
    """Returns those by which a policy tells admission policies what it asks for."""
    return {
        **{key: labels[key] for key in MARK_LABELS if key in labels},
        **{key: annotations[key] for key in MARK_ANNOTATIONS if key in annotations},
    }
