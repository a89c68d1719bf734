"""The Lease by which the plugin of a node makes known that it works, as kubelets do for their nodes.

The plugin writes it, and the operator judges by its age: a plugin that hangs, or whose node has lost power,
cannot take back what its GPUShareNode says. It costs less than a status that is written again and again:
nobody watches these Leases.
"""

from datetime import datetime

from gpushare_core.api.names import API_VERSION, COMPONENT_LABEL, NODE_KIND
from gpushare_core.api.timestamps import micro_time
from gpushare_core.text.json_object import Json

COMPONENT = "plugin-heartbeat"
"""Value of the component label of these Leases."""
PREFIX = "plugin."
"""Of their names; no other Lease of ours may be taken for one, whatever a node is called."""
RENEW_SECONDS = 30.0
SILENT_SECONDS = 75
"""Without a renewal a plugin counts as silent after so long: two may fail."""


def lease_name(node: str) -> str:
    return f"{PREFIX}{node}"


def heartbeat_lease(node: str, share_node_uid: str, now: datetime) -> Json:
    """Returns the Lease renewed. It goes with its GPUShareNode."""
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
