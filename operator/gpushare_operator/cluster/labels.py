"""Labels and annotations by which the operator finds its own objects again and reads them."""

from gpushare_core.api.names import FIELD_MANAGER, GROUP, MANAGED_BY_LABEL

MANAGER = FIELD_MANAGER
MANAGED = f"{MANAGED_BY_LABEL}={MANAGER}"
"""Label selector of everything that the operator makes in its namespace."""

PLUGIN = "plugin"
EXTENDER = "extender"
HOSTCTL = "hostctl"
"""Values of the component label."""

JOB_NAME_LABEL = "batch.kubernetes.io/job-name"
"""On pods: the Job that made them. Kubernetes sets it."""

COMMAND_LABEL = f"{GROUP}/action"
"""On Jobs: which of hostctl's commands they run."""
SEQUENCE_LABEL = f"{GROUP}/sequence"
"""On Jobs: the number of the attempt on their node."""
NODE_ANNOTATION = f"{GROUP}/node"
NODE_UID_ANNOTATION = f"{GROUP}/node-uid"
HASH_ANNOTATION = f"{GROUP}/spec-hash"
