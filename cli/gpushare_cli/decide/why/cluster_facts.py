"""What is known of the cluster beside cards: of nodes, policies, quotas. Facts alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_core.text.json_object import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """None stands for what was not read."""

    nodes: Mapping[str, KubeNode] | None = None
    """By name."""
    policies: Sequence[Json] | None = None
    quotas: Sequence[Json] | None = None
    """Of the pod's namespace."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """What could not be read -> why."""
