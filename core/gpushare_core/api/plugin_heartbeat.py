"""The Lease by which the plugin of a node shows that it works, as a kubelet does for its node.

The plugin renews it, and the operator looks at its age: a plugin that hangs, or whose node has lost power,
cannot take back what its GPUShareNode says. A Lease costs less than writing the status again and again, for
nobody watches these Leases.

It also says whether files of isolation are on the node: these stay there until the containers have ended that
were given them, and so for longer than the GPUShareNode. As long as they are there the Lease belongs to the
policy, which ends last; otherwise to the GPUShareNode.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.names import API_VERSION, COMPONENT_LABEL, GROUP, NODE_KIND
from gpushare_core.api.timestamps import micro_time
from gpushare_core.text.json_object import Json

COMPONENT = "plugin-heartbeat"
"""Value of the component label of these Leases."""
PREFIX = "plugin."
"""Of their names: whatever a node is called, its Lease has not the name of another one of ours."""
RENEW_SECONDS = 30.0
SILENT_SECONDS = 75
"""After which a plugin without a renewal counts as unavailable: two renewals may fail."""
ISOLATION_FILES_ANNOTATION = f"{GROUP}/isolation-files"
"""Which pods still need files of isolation on the node, as ``namespace/name,namespace/name,+3``. Empty: files
are there, and no pod is known that needs them. Absent: no files are there."""
MAX_NAMED_PODS = 20
"""Pods in that annotation; ``+3`` stands for three more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationFiles:
    """Files of isolation are on a node."""

    pods: tuple[str, ...] = ()
    """Namespaces and names of pods that need them, the first ones by name."""
    more: int = 0
    """How many others need them."""


def isolation_files(pods: Collection[str]) -> IsolationFiles:
    """Returns what to say where files are on the node that these ``pods`` need."""
    named = sorted(pods)
    return IsolationFiles(pods=tuple(named[:MAX_NAMED_PODS]), more=max(0, len(named) - MAX_NAMED_PODS))


def read_isolation_files(lease: Json) -> IsolationFiles | None:
    """Returns what the plugin says in ``lease``, or None where no files are on its node."""
    metadata = lease.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(ISOLATION_FILES_ANNOTATION) if isinstance(annotations, dict) else None
    if not isinstance(text, str):
        return None
    words = [word for word in text.split(",") if word]
    others = [word for word in words if word.startswith("+")]
    digits = others[0][1:] if others else ""
    more = int(digits) if len(digits) <= 6 and digits.isascii() and digits.isdigit() else 0
    pods = tuple(word for word in words if not word.startswith("+"))
    return IsolationFiles(pods=pods[:MAX_NAMED_PODS], more=more)


def _text(files: IsolationFiles) -> str:
    return ",".join([*files.pods, *([f"+{files.more}"] if files.more else [])])


def lease_name(node: str) -> str:
    return f"{PREFIX}{node}"


def heartbeat_lease(
    node: str,
    share_node_uid: str,
    now: datetime,
    *,
    files: IsolationFiles | None = None,
    policy: Json | None = None,
) -> Json:
    """Returns the renewed Lease, which is deleted with its GPUShareNode; with ``files`` on the node, with the
    ``policy`` that an owner reference names.

    An empty ``share_node_uid`` means that there is no GPUShareNode (any more): unless a ``policy`` is known,
    the Lease keeps the owner that it has.
    """
    metadata: Json = {"name": lease_name(node), "labels": {COMPONENT_LABEL: COMPONENT}}
    if files is not None:
        metadata["annotations"] = {ISOLATION_FILES_ANNOTATION: _text(files)}
    if files is not None and policy is not None:
        metadata["ownerReferences"] = [policy]
    elif share_node_uid:
        owner = {"apiVersion": API_VERSION, "kind": NODE_KIND, "name": node, "uid": share_node_uid}
        metadata["ownerReferences"] = [owner]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "holderIdentity": node,
            "leaseDurationSeconds": SILENT_SECONDS,
            "renewTime": micro_time(now),
        },
    }


def heartbeat_patch(lease: Json) -> Json:
    """Returns the merge patch that makes a Lease that exists into ``lease``."""
    annotations = {ISOLATION_FILES_ANNOTATION: None, **lease["metadata"].get("annotations", {})}
    return {**lease, "metadata": {**lease["metadata"], "annotations": annotations}}


def renewal_patch(lease: Json) -> Json:
    """Returns the merge patch that renews a Lease that exists, and leaves what it says of files: a plugin
    that has just started has not looked yet."""
    kept = ("annotations", "ownerReferences")
    metadata = {key: value for key, value in lease["metadata"].items() if key not in kept}
    return {**lease, "metadata": metadata}
