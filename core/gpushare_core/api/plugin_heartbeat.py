"""The Lease by which the plugin of a node shows that it works, as a kubelet does for its node.

The plugin renews it, and the operator looks at its age: a plugin that hangs, or whose node has lost power,
cannot take back what its GPUShareNode says. A Lease costs less than writing the status again and again, for
nobody watches these Leases.
"""

from datetime import datetime

from gpushare_core.api.names import API_VERSION, COMPONENT_LABEL, NODE_KIND
from gpushare_core.api.timestamps import micro_time
from gpushare_core.text.json_object import Json

COMPONENT = "plugin-heartbeat"
"""Value of the component label of these Leases."""
PREFIX = "plugin."
"""Of their names: whatever a node is called, its Lease has not the name of another one of ours."""
RENEW_SECONDS = 30.0
SILENT_SECONDS = 75
"""After which a plugin without a renewal counts as unavailable: two renewals may fail."""


def lease_name(node: str) -> str:
    return f"{PREFIX}{node}"


def heartbeat_lease(node: str, share_node_uid: str, now: datetime) -> Json:
    """Returns the renewed Lease, which is deleted with its GPUShareNode."""
    owner = {"apiVersion": API_VERSION, "kind": NODE_KIND, "name": node, "uid": share_node_uid}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": lease_name(node),
            "labels": {COMPONENT_LABEL: COMPONENT},
            "ownerReferences": [owner],
        },
        "spec": {
            "holderIdentity": node,
            "leaseDurationSeconds": SILENT_SECONDS,
            "renewTime": micro_time(now),
        },
    }
