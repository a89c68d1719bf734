"""The DaemonSet of a policy's plugins."""

from gpushare_core.api.names import PLUGIN_NODE_LABEL
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.labels import PLUGIN
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.desired.names import Installation, labels, plugin_name, selector
from gpushare_operator.desired.plugin_platform import DEFAULT_PLATFORM, PluginPlatform
from gpushare_operator.desired.pod_template import (
    EVERYWHERE,
    NODE_CRITICAL,
    confined,
    daemon_set,
    field_variable,
    host_path,
    mount,
    probe,
    pull_secrets,
    pulled,
    resources_of,
)
from gpushare_operator.desired.share_nodes import policy_reference

PLUGIN_HEALTH_PORT = 9640
KUBELET_FOLDERS = {
    "device-plugins": "/var/lib/kubelet/device-plugins",
    "pod-resources": "/var/lib/kubelet/pod-resources",
}


def plugin_daemon_set(
    policy: PolicyObject, installation: Installation, platform: PluginPlatform = DEFAULT_PLATFORM
) -> Json:
    """The plugin runs on every node that is labelled as the policy's."""
    return daemon_set(
        plugin_name(policy.name),
        namespace=installation.namespace,
        labels=labels(PLUGIN, policy.name),
        selector=selector(PLUGIN, policy.name),
        owners=[policy_reference(policy)],
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
            field_variable("NODE_NAME", "spec.nodeName"),
            # The plugin trusts the cluster's authority only; the system's would cost 2 MiB on every node.
            {"name": "SSL_CERT_FILE", "value": "/dev/null"},
            # By these NVIDIA's container runtime gives it NVML and all cards; other runtimes ignore them.
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
