"""The DaemonSets that the operator wants: a plugin per policy, one extender for all."""

from gpushare_core.api.names import CONTROL_PLANE_LABEL, POLICY_LABEL, SCHEDULER_LABEL
from gpushare_core.json_object import Json
from gpushare_operator.cluster.labels import EXTENDER, PLUGIN, PORT_ANNOTATION
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.desired.names import EXTENDER_NAME, Installation, labels, plugin_name, selector
from gpushare_operator.desired.pod_template import (
    EVERYWHERE,
    confined,
    daemon_set,
    host_path,
    mount,
    on_nodes_with,
    probe,
)
from gpushare_operator.desired.share_nodes import owner_reference

PLUGIN_HEALTH_PORT = 9640
LOOPBACK = "127.0.0.1"
UNPRIVILEGED = 65532
"""User and group of programs that need no rights of their own."""
KEYS_FOLDER = "/etc/kubernetes/gpushare/extender"
"""On the host: where hostctl puts the keys that the extender serves with. They are its group's to read."""
KEYS_MOUNT = "/keys"
KUBELET_FOLDERS = {
    "device-plugins": "/var/lib/kubelet/device-plugins",
    "pod-resources": "/var/lib/kubelet/pod-resources",
}


def plugin_daemon_set(policy: PolicyObject, installation: Installation) -> Json:
    """Returns the DaemonSet of the plugin: it runs on every node that carries the policy's label."""
    return daemon_set(
        plugin_name(policy.name),
        namespace=installation.namespace,
        labels=labels(PLUGIN, policy.name),
        selector=selector(PLUGIN, policy.name),
        owners=[owner_reference(policy)],
        pod={
            "serviceAccountName": "gpushare-plugin",
            "priorityClassName": "system-node-critical",
            "nodeSelector": {POLICY_LABEL: policy.name},
            "tolerations": EVERYWHERE,
            "terminationGracePeriodSeconds": 10,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [_plugin_container(installation)],
            "volumes": [host_path(name, path) for name, path in KUBELET_FOLDERS.items()],
        },
    )


def _plugin_container(installation: Installation) -> Json:
    return {
        "name": "plugin",
        "image": installation.image,
        "command": ["gpushare-plugin"],
        "args": ["--node", "$(NODE_NAME)", "--health-port", str(PLUGIN_HEALTH_PORT)],
        "env": [
            {
                "name": "NODE_NAME",
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
            },
            # It trusts the cluster's authority only; the system's would cost 2 MiB on every node.
            {"name": "SSL_CERT_FILE", "value": "/dev/null"},
        ],
        # The kubelet's sockets belong to root.
        "securityContext": confined(runAsUser=0),
        "volumeMounts": [mount(name, path) for name, path in KUBELET_FOLDERS.items()],
        "livenessProbe": probe("/healthz", PLUGIN_HEALTH_PORT),
        "readinessProbe": probe("/readyz", PLUGIN_HEALTH_PORT, period=5),
        "resources": {"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
    }


def extender_daemon_set(installation: Installation, port: int) -> Json:
    """Returns the DaemonSet of the extender: beside every kube-scheduler, reachable from that host only.

    A host that was edited keeps it also when it is no longer labelled as control plane.
    """
    return daemon_set(
        EXTENDER_NAME,
        namespace=installation.namespace,
        labels=labels(EXTENDER),
        selector=selector(EXTENDER),
        annotations={PORT_ANNOTATION: str(port)},
        pod={
            "serviceAccountName": "gpushare-extender",
            "priorityClassName": "system-cluster-critical",
            "hostNetwork": True,
            "dnsPolicy": "ClusterFirstWithHostNet",
            "affinity": on_nodes_with(CONTROL_PLANE_LABEL, SCHEDULER_LABEL),
            "tolerations": EVERYWHERE,
            # It answers what has come, ends the binds under way (15 s each), gives its Lease back.
            "terminationGracePeriodSeconds": 40,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": UNPRIVILEGED,
                "runAsGroup": UNPRIVILEGED,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_extender_container(installation, port)],
            # The kubelet starts it once hostctl has made the folder: see docs/scheduler-edit.md.
            "volumes": [host_path("keys", KEYS_FOLDER)],
        },
    )


def health_port(port: int) -> int:
    """Returns where the extender answers the kubelet's probes: beside the port that kube-scheduler calls."""
    return port + 1 if port < 65535 else port - 1


def _extender_container(installation: Installation, port: int) -> Json:
    return {
        "name": "extender",
        "image": installation.image,
        "command": ["gpushare-extender"],
        "args": [
            "--listen",
            f"{LOOPBACK}:{port}",
            "--health-listen",
            f"{LOOPBACK}:{health_port(port)}",
            "--tls-cert",
            f"{KEYS_MOUNT}/server.pem",
            "--client-ca",
            f"{KEYS_MOUNT}/authorities.pem",
        ],
        # Why it could not start is shown in the policy's condition.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": confined(),
        "volumeMounts": [{**mount("keys", KEYS_MOUNT), "readOnly": True}],
        "livenessProbe": probe("/healthz", health_port(port), host=LOOPBACK),
        "readinessProbe": probe("/readyz", health_port(port), host=LOOPBACK, period=2),
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
    }
