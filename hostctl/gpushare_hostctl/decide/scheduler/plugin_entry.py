"""The plugin of our own kube-scheduler in a profile of its KubeSchedulerConfiguration.

``scheduler/config.yaml`` says the same, with the reasons.
"""

from dataclasses import dataclass

from gpushare_core.dialects.table import SHARED_RESOURCES
from gpushare_core.text.json_object import Json

PLUGIN = "GPUShare"
FIRST = ("preFilter", "filter", "postFilter", "bind")
"""The extension points at which it comes before all others."""


@dataclass(frozen=True, kw_only=True)
class PluginEntry:
    """What a profile is told of the plugin."""

    lease_namespace: str
    """Where the extenders have their Lease: the plugin binds no pod while one of them holds it."""
    resources: tuple[str, ...]
    """Those that pods ask for, whether or not nodes offer them."""
    weight: int
    """Of its scores."""

    @property
    def decided_by_plugin(self) -> list[str]:
        """Returns the resources of which the plugin alone decides what is free. Others' plugins offer the
        shared names, too: of these the scheduler counts the sums of each node as ever."""
        return [name for name in self.resources if name not in SHARED_RESOURCES]

    def profile(self) -> Json:
        """Returns what a profile has to say: fields ``plugins`` and ``pluginConfig``."""
        return {
            "plugins": {
                "multiPoint": {"enabled": [{"name": PLUGIN, "weight": self.weight}]},
                **{point: {"enabled": [{"name": PLUGIN}]} for point in FIRST},
            },
            "pluginConfig": [
                {"name": PLUGIN, "args": {"extenderLeaseNamespace": self.lease_namespace}},
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "apiVersion": "kubescheduler.config.k8s.io/v1",
                        "kind": "NodeResourcesFitArgs",
                        "ignoredResources": self.decided_by_plugin,
                    },
                },
            ],
        }
