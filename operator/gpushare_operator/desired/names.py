"""How the objects that the operator makes are called and labelled."""

import hashlib

from gpushare_core.api.names import COMPONENT_LABEL, GROUP, MANAGED_BY_LABEL, POLICY_LABEL

NAME_LABEL = "app.kubernetes.io/name"
MANAGER = "gpushare-operator"
MANAGED = f"{MANAGED_BY_LABEL}={MANAGER}"
"""Label selector of everything that the operator makes in its namespace."""

PLUGIN = "plugin"
EXTENDER = "extender"
HOSTCTL = "hostctl"

EXTENDER_NAME = "gpushare-extender"

HASH_ANNOTATION = f"{GROUP}/spec-hash"
NODE_ANNOTATION = f"{GROUP}/node"
NODE_UID_ANNOTATION = f"{GROUP}/node-uid"
ACTION_LABEL = f"{GROUP}/action"
SEQUENCE_LABEL = f"{GROUP}/sequence"

NODE_PART = 24
"""Characters of a node's name in the name of a Job; the Job's pods must stay within 63."""


def plugin_name(policy: str) -> str:
    return f"gpushare-plugin-{policy}"


def job_name(action: str, node: str, sequence: int) -> str:
    """At most 63 characters, different for nodes whose names begin alike."""
    return f"gpushare-scheduler-{action}-{_short(node)}-{sequence}"


def labels(component: str, policy: str = "") -> dict[str, str]:
    """Of an object and, with a DaemonSet, of its pods."""
    common = {NAME_LABEL: "gpushare", COMPONENT_LABEL: component, MANAGED_BY_LABEL: MANAGER}
    return {**common, POLICY_LABEL: policy} if policy else common


def selector(component: str, policy: str = "") -> dict[str, str]:
    """The part of ``labels`` that finds the pods of one DaemonSet; it can never be changed later."""
    return {COMPONENT_LABEL: component, POLICY_LABEL: policy} if policy else {COMPONENT_LABEL: component}


def _short(node: str) -> str:
    if len(node) <= NODE_PART:
        return node
    digest = hashlib.sha256(node.encode()).hexdigest()[:8]
    return f"{node[: NODE_PART - 9].rstrip('.-')}-{digest}"
