"""The container of the extender, on a host or beside a kube-scheduler of our own."""

from collections.abc import Sequence

from gpushare_core.text.json_object import Json
from gpushare_operator.desired.names import Installation
from gpushare_operator.desired.pod_template import confined, probe, pulled, resources_of

LOOPBACK = "127.0.0.1"
RESOURCES: Json = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}


def extender_container(
    installation: Installation,
    ports: Sequence[int],
    *,
    mounts: Sequence[Json],
    variable: Json,
    health_host: str,
    probe_host: str = "",
) -> Json:
    """Returns the container; the first of ``mounts`` holds its keys. It answers the kubelet's probes at
    ``health_host``, where the kubelet asks ``probe_host``; empty: the pod's address."""
    folder, health = mounts[0]["mountPath"], health_port(ports)
    return {
        "name": "extender",
        **pulled(installation),
        "command": ["gpushare-extender"],
        "args": [
            *(part for port in ports for part in ("--listen", f"{LOOPBACK}:{port}")),
            "--health-listen",
            f"{health_host}:{health}",
            "--tls-cert",
            f"{folder}/server.pem",
            "--client-ca",
            f"{folder}/authorities.pem",
        ],
        "env": [variable],
        # The policy's condition shows why it could not start.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": confined(),
        "volumeMounts": [*mounts],
        "livenessProbe": probe("/healthz", health, host=probe_host),
        "readinessProbe": probe("/readyz", health, host=probe_host, period=2),
        "resources": resources_of(installation.programs.extender, RESOURCES),
    }


def health_port(ports: Sequence[int]) -> int:
    """Returns the port for the kubelet's probes: the nearest free one to the port that schedulers call, where
    the extender's user may listen and that no Service can claim as a NodePort."""
    beside = (ports[0] + step * sign for step in range(1, len(ports) + 2) for sign in (1, -1))
    allowed = (port for port in beside if 1024 <= port <= 65535 and not 30000 <= port <= 32767)
    return next(port for port in allowed if port not in ports)
