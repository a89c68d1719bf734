"""The DaemonSet of the extender on scheduler hosts, for schedulers that hostctl or people connect."""

from collections.abc import Iterator, Sequence

from gpushare_core.api.enums import Backend
from gpushare_core.api.names import HOST_ADDRESS_VARIABLE, SCHEDULER_LABEL
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import ApplyDaemonSet
from gpushare_operator.backends.extender_workload.container import LOOPBACK, extender_container, health_port
from gpushare_operator.backends.extender_workload.log_folder import NOT_KEPT, ExtenderLog
from gpushare_operator.cluster.labels import (
    BACKEND_ANNOTATION,
    EXTENDER,
    METRICS_PORT_ANNOTATION,
    PORT_ANNOTATION,
)
from gpushare_operator.cluster.objects import DaemonSetObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.drift import has_drifted
from gpushare_operator.desired.names import EXTENDER_NAME, Installation, labels, selector
from gpushare_operator.desired.pod_template import (
    EVERYWHERE,
    NODE_CRITICAL,
    daemon_set,
    field_variable,
    host_path,
    mount,
    on_nodes_with,
    pull_secrets,
    unprivileged,
)

HOST_FOLDER = "/etc/kubernetes/gpushare"
"""On control planes: where hostctl keeps our files, kube-scheduler's configuration among them."""
KEYS_FOLDER = f"{HOST_FOLDER}/extender"
"""On the host: where hostctl puts the extender's keys, which the extender's group may read."""
KEYS_MOUNT = "/keys"
EXTENDERS_UNAVAILABLE = "50%"
"""Rounded up, this is more control planes than a cluster can lose and still have its etcd, so hosts that are
away hold up no other one. It is less than all: if an image does not start, some extenders still serve."""


def extender_daemon_set(
    installation: Installation, ports: Sequence[int], log: ExtenderLog = NOT_KEPT
) -> Json:
    """The extender runs on every marked host and is reachable from that host only. It listens on all of
    ``ports``: the desired one, then those that a scheduler may still call."""
    return daemon_set(
        EXTENDER_NAME,
        namespace=installation.namespace,
        labels=labels(EXTENDER),
        selector=selector(EXTENDER),
        annotations={
            PORT_ANNOTATION: ",".join(map(str, ports)),
            METRICS_PORT_ANNOTATION: str(health_port(ports)),
        },
        max_unavailable=EXTENDERS_UNAVAILABLE,
        pod={
            "serviceAccountName": "gpushare-extender",
            **pull_secrets(installation),
            "priorityClassName": installation.programs.extender.priority_class_name or NODE_CRITICAL,
            "hostNetwork": True,
            "dnsPolicy": "ClusterFirstWithHostNet",
            "affinity": on_nodes_with(SCHEDULER_LABEL),
            "tolerations": EVERYWHERE,
            # The extender answers open requests, ends binds under way (15 s each), gives its Lease back.
            "terminationGracePeriodSeconds": 40,
            "securityContext": unprivileged(),
            **log.pod_fields(installation),
            "containers": [_container(installation, ports, log)],
            # The kubelet starts the pod once hostctl has made the folder: see docs/scheduler-edit.md.
            "volumes": [host_path("keys", KEYS_FOLDER), *log.volumes],
        },
    )


def external_extender_daemon_set(
    installation: Installation, ports: Sequence[int], log: ExtenderLog = NOT_KEPT
) -> Json:
    body = extender_daemon_set(installation, ports, log)
    annotations = {**body["metadata"]["annotations"], BACKEND_ANNOTATION: Backend.EXTERNAL}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def is_external(extender: DaemonSetObject | None) -> bool:
    """Returns whether ``extender`` is for kube-schedulers that people connect by themselves."""
    annotations = extender.body.get("metadata", {}).get("annotations") or {} if extender else {}
    return bool(annotations.get(BACKEND_ANNOTATION) == Backend.EXTERNAL)


def apply_extender(snapshot: ClusterSnapshot, desired: Json) -> Iterator[ApplyDaemonSet]:
    """Yields what makes the DaemonSet as ``desired``; one that is being deleted has to go first."""
    present = snapshot.daemon_sets.get(EXTENDER_NAME)
    if present is None or (not present.deleting and has_drifted(present.body, desired)):
        yield ApplyDaemonSet(EXTENDER_NAME, desired)


def _container(installation: Installation, ports: Sequence[int], log: ExtenderLog) -> Json:
    container = extender_container(
        installation,
        ports,
        mounts=[{**mount("keys", KEYS_MOUNT), "readOnly": True}, *log.mounts],
        # A variable, because extenders of earlier versions would not start with an unknown argument.
        variable=field_variable(HOST_ADDRESS_VARIABLE, "status.hostIP"),
        health_host=LOOPBACK,
        # The kubelet asks on the host itself.
        probe_host=LOOPBACK,
    )
    return {**container, "args": [*container["args"], *log.arguments]}
