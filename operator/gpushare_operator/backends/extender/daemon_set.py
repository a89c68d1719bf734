"""The DaemonSet of the extender on scheduler hosts, in its two kinds: connected by hostctl or by people."""

from collections.abc import Iterator, Sequence

from gpushare_core.api.enums import Backend
from gpushare_core.api.names import HOST_ADDRESS_VARIABLE, SCHEDULER_LABEL
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import ApplyDaemonSet
from gpushare_operator.backends.extender.log_folder import NOT_KEPT, ExtenderLog
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
    confined,
    daemon_set,
    host_path,
    mount,
    on_nodes_with,
    probe,
    pull_secrets,
    pulled,
    resources_of,
    unprivileged,
)

LOOPBACK = "127.0.0.1"
HOST_FOLDER = "/etc/kubernetes/gpushare"
"""On control planes: where hostctl keeps what is ours, kube-scheduler's configuration too."""
KEYS_FOLDER = f"{HOST_FOLDER}/extender"
"""On the host: where hostctl puts the keys that the extender serves with. They are its group's to read."""
KEYS_MOUNT = "/keys"
EXTENDERS_UNAVAILABLE = "50%"
"""Rounded up, this is more control planes than a cluster can lose and still have its etcd: hosts that are
away hold up no other one. It is not all of them: an image that does not start leaves some that serve."""


def extender_daemon_set(
    installation: Installation, ports: Sequence[int], log: ExtenderLog = NOT_KEPT
) -> Json:
    """Returns the DaemonSet of the extender: on every marked host, reachable from that host only.

    It listens on all of ``ports``: the one that is asked for, then those that a scheduler may still call.
    """
    return daemon_set(
        EXTENDER_NAME,
        namespace=installation.namespace,
        labels=labels(EXTENDER),
        selector=selector(EXTENDER),
        annotations={
            PORT_ANNOTATION: ",".join(map(str, ports)),
            METRICS_PORT_ANNOTATION: str(health_port(ports)),
        },
        most_unavailable=EXTENDERS_UNAVAILABLE,
        pod={
            "serviceAccountName": "gpushare-extender",
            **pull_secrets(installation),
            "priorityClassName": installation.programs.extender.priority_class_name or NODE_CRITICAL,
            "hostNetwork": True,
            "dnsPolicy": "ClusterFirstWithHostNet",
            "affinity": on_nodes_with(SCHEDULER_LABEL),
            "tolerations": EVERYWHERE,
            # It answers what has come, ends the binds under way (15 s each), gives its Lease back.
            "terminationGracePeriodSeconds": 40,
            "securityContext": unprivileged(),
            **log.pod_fields(installation),
            "containers": [_extender_container(installation, ports, log)],
            # The kubelet starts it once hostctl has made the folder: see docs/scheduler-edit.md.
            "volumes": [host_path("keys", KEYS_FOLDER), *log.volumes],
        },
    )


def external_extender_daemon_set(
    installation: Installation, ports: Sequence[int], log: ExtenderLog = NOT_KEPT
) -> Json:
    """Returns the DaemonSet of the extender for kube-schedulers that people connect by themselves."""
    body = extender_daemon_set(installation, ports, log)
    annotations = {**body["metadata"]["annotations"], BACKEND_ANNOTATION: Backend.EXTERNAL}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def is_external(extender: DaemonSetObject | None) -> bool:
    """Returns whether ``extender`` is there for kube-schedulers that people connect by themselves."""
    annotations = extender.body.get("metadata", {}).get("annotations") or {} if extender else {}
    return bool(annotations.get(BACKEND_ANNOTATION) == Backend.EXTERNAL)


def apply_extender(snapshot: ClusterSnapshot, desired: Json) -> Iterator[ApplyDaemonSet]:
    """Yields what makes the DaemonSet as ``desired``; one that is being deleted has to go first."""
    present = snapshot.daemon_sets.get(EXTENDER_NAME)
    if present is None or (not present.deleting and has_drifted(present.body, desired)):
        yield ApplyDaemonSet(EXTENDER_NAME, desired)


def health_port(ports: Sequence[int]) -> int:
    """Returns where the extender answers the kubelet's probes: beside the port that kube-scheduler calls."""
    beside = (ports[0] + step * sign for step in range(1, len(ports) + 2) for sign in (1, -1))
    return next(port for port in beside if port not in ports and _may_be_listened_on(port))


def _may_be_listened_on(port: int) -> bool:
    """Returns whether the extender's user may have it, and no Service takes it over by a NodePort."""
    return 1024 <= port <= 65535 and not 30000 <= port <= 32767


def _extender_container(installation: Installation, ports: Sequence[int], log: ExtenderLog) -> Json:
    health = health_port(ports)
    return {
        "name": "extender",
        **pulled(installation),
        "command": ["gpushare-extender"],
        "args": [
            *(part for port in ports for part in ("--listen", f"{LOOPBACK}:{port}")),
            "--health-listen",
            f"{LOOPBACK}:{health}",
            "--tls-cert",
            f"{KEYS_MOUNT}/server.pem",
            "--client-ca",
            f"{KEYS_MOUNT}/authorities.pem",
            *log.arguments,
        ],
        # No argument: extenders of earlier versions know none for it, and would not start.
        "env": [
            {
                "name": HOST_ADDRESS_VARIABLE,
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.hostIP"}},
            }
        ],
        # Why it could not start is shown in the policy's condition.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": confined(),
        "volumeMounts": [{**mount("keys", KEYS_MOUNT), "readOnly": True}, *log.mounts],
        "livenessProbe": probe("/healthz", health, host=LOOPBACK),
        "readinessProbe": probe("/readyz", health, host=LOOPBACK, period=2),
        "resources": resources_of(
            installation.programs.extender,
            {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        ),
    }
