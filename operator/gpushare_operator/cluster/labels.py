"""Labels and annotations by which the operator finds its own objects again and reads them."""

from collections.abc import Mapping

from gpushare_core.api.names import (
    ADMISSION_LABEL,
    FIELD_MANAGER,
    GROUP,
    MANAGED_BY_LABEL,
    SERVED_ANNOTATION,
)
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.text.whole_number import is_number

MANAGER = FIELD_MANAGER
MANAGED = f"{MANAGED_BY_LABEL}={MANAGER}"
"""Label selector of everything that the operator makes in its namespace."""

PLUGIN = "plugin"
EXTENDER = "extender"
HOSTCTL = "hostctl"
SCHEDULER = "scheduler"
VOLCANO = "volcano"
"""Values of the component label."""

EXTERNAL_MARK = "external"
"""Value of the mark where people connect kube-scheduler by themselves: hostctl was not sent there."""
BACKEND_ANNOTATION = f"{GROUP}/scheduler-backend"
"""On the extender's DaemonSet: the backend, where the operator does not connect kube-schedulers itself."""

JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
"""On pods: the Job that made them. Kubernetes sets it."""

COMMAND_LABEL = f"{GROUP}/action"
"""On Jobs: which of hostctl's commands they run."""
SEQUENCE_LABEL = f"{GROUP}/sequence"
"""On Jobs: the number of the attempt on their node."""
NODE_ANNOTATION = f"{GROUP}/node"
NODE_UID_ANNOTATION = f"{GROUP}/node-uid"
HASH_ANNOTATION = f"{GROUP}/spec-hash"
INPUTS_ANNOTATION = f"{GROUP}/inputs-hash"
"""On Jobs: a hash of all that the operator gave hostctl, the image included."""
ROLLED_BACK_ANNOTATION = f"{GROUP}/rolled-back-inputs"
"""On Jobs: what hostctl called its inputs when it last undid an edit on that host."""
ASKED_ANNOTATION = f"{GROUP}/asked"
"""On Jobs: the values of ``RETRY_ANNOTATION`` at the time, as a JSON list."""
RETRY_ANNOTATION = f"{GROUP}/retry"
"""On policies: a new value asks for another attempt at what has failed."""
LET_GO_ANNOTATION = f"{GROUP}/let-go"
"""On policies: names of nodes, with commas between, that are lost for ever and need not be restored."""
RENEW_ANNOTATION = f"{GROUP}/renew-after"
"""On Jobs: when the host's keys are to be renewed, as far as it was known before."""
RESULT_ANNOTATION = f"{GROUP}/result"
"""On Jobs: the exit code of hostctl, where its pod went on after it."""
DRIFT_ANNOTATION = f"{GROUP}/drift"
"""On Jobs: that kube-scheduler had lost our edit."""
COMPARE_LABEL = f"{GROUP}/compare-with-operator"
"""On a workload that is being written: the admission policy that knows the operator's own Deployment compares
it with that. See manifests/admission-operator.yaml."""
PORT_ANNOTATION = f"{GROUP}/extender-port"
"""On the extender's DaemonSet and pods: the ports that they were made with, the one asked for first. On Jobs:
those of the DaemonSet at the time, which somebody may delete."""

METRICS_PORT_ANNOTATION = f"{GROUP}/metrics-port"
"""On the extender's DaemonSet and pods: where Prometheus reads its metrics on the host's address."""

DIALECT_LABELS = frozenset(key for dialect in DIALECTS.values() for key in dialect.node_labels)
"""On nodes: by what the systems that we replace select them. Administrators may have set them before us."""


def read_ports(text: str) -> tuple[int, ...]:
    """Returns what ``PORT_ANNOTATION`` says; empty when it says nothing."""
    parts = text.split(",")
    return tuple(int(part) for part in parts) if all(map(is_number, parts)) else ()


def read_marks(labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, str]:
    """Returns what a policy with these says to admission policies, by the keys."""
    label, annotation = labels.get(ADMISSION_LABEL), annotations.get(SERVED_ANNOTATION)
    present = {ADMISSION_LABEL: label, SERVED_ANNOTATION: annotation}
    return {key: value for key, value in present.items() if value is not None}
