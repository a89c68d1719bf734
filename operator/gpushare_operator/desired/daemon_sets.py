"""The DaemonSets that the operator wants: a plugin per policy, one extender for all."""

from collections.abc import Sequence

from gpushare_core.api.enums import Backend
from gpushare_core.api.names import HOST_ADDRESS_VARIABLE, PLUGIN_NODE_LABEL, SCHEDULER_LABEL
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.labels import (
    BACKEND_ANNOTATION,
    EXTENDER,
    METRICS_PORT_ANNOTATION,
    PLUGIN,
    PORT_ANNOTATION,
)
from gpushare_operator.cluster.objects import DaemonSetObject, PolicyObject
from gpushare_operator.desired.extender_log import NOT_KEPT, ExtenderLog
from gpushare_operator.desired.names import EXTENDER_NAME, Installation, labels, plugin_name, selector
from gpushare_operator.desired.plugin_platform import DEFAULT_PLATFORM, PluginPlatform
from gpushare_operator.desired.pod_template import (
    EVERYWHERE,
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
from gpushare_operator.desired.share_nodes import owner_reference

PLUGIN_HEALTH_PORT = 9640
LOOPBACK = "127.0.0.1"
NODE_CRITICAL = "system-node-critical"
"""Priority class of what its node needs: without it no pod that shares cards starts or is placed there."""
HOST_FOLDER = "/etc/kubernetes/gpushare"
"""On control planes: where hostctl keeps what is ours, kube-scheduler's configuration too."""
KEYS_FOLDER = f"{HOST_FOLDER}/extender"
"""On the host: where hostctl puts the keys that the extender serves with. They are its group's to read."""
KEYS_MOUNT = "/keys"
KUBELET_FOLDERS = {
    "device-plugins": "/var/lib/kubelet/device-plugins",
    "pod-resources": "/var/lib/kubelet/pod-resources",
}


def plugin_daemon_set(
    policy: PolicyObject, installation: Installation, platform: PluginPlatform = DEFAULT_PLATFORM
) -> Json:
    """Returns the DaemonSet of the plugin: it runs on every node that is marked as the policy's."""
    return daemon_set(
        plugin_name(policy.name),
        namespace=installation.namespace,
        labels=labels(PLUGIN, policy.name),
        selector=selector(PLUGIN, policy.name),
        owners=[owner_reference(policy)],
        pod={
            "serviceAccountName": "gpushare-plugin",
            **pull_secrets(installation),
            "priorityClassName": installation.programs.plugin.priority_class_name or NODE_CRITICAL,
            "nodeSelector": {PLUGIN_NODE_LABEL: policy.name},
            "tolerations": EVERYWHERE,
            "terminationGracePeriodSeconds": 10,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [_plugin_container(installation, platform)],
            "volumes": [
                *(host_path(name, path) for name, path in KUBELET_FOLDERS.items()),
                *platform.volumes,
            ],
            **platform.pod_fields,
        },
    )


def _plugin_container(installation: Installation, platform: PluginPlatform) -> Json:
    return {
        "name": "plugin",
        **pulled(installation),
        "command": ["gpushare-plugin"],
        "args": ["--node", "$(NODE_NAME)", "--health-port", str(PLUGIN_HEALTH_PORT), *platform.arguments],
        "env": [
            {
                "name": "NODE_NAME",
                "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
            },
            # It trusts the cluster's authority only; the system's would cost 2 MiB on every node.
            {"name": "SSL_CERT_FILE", "value": "/dev/null"},
            # NVIDIA's container runtime gives it NVML, and all cards to ask about; others take no notice.
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
        ],
        # The kubelet's sockets belong to root.
        "securityContext": confined(runAsUser=0),
        "volumeMounts": [
            *(mount(name, path) for name, path in KUBELET_FOLDERS.items()),
            *platform.mounts,
        ],
        # By its name a PodMonitor finds it.
        "ports": [{"name": "health", "containerPort": PLUGIN_HEALTH_PORT, "protocol": "TCP"}],
        "livenessProbe": probe("/healthz", PLUGIN_HEALTH_PORT),
        "readinessProbe": probe("/readyz", PLUGIN_HEALTH_PORT, period=5),
        "resources": resources_of(
            installation.programs.plugin,
            {"requests": {"cpu": "20m", "memory": "80Mi"}, "limits": {"memory": "256Mi"}},
        ),
    }


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
