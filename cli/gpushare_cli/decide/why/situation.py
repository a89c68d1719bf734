"""All that is known of a pod and of the cards that it could get: facts alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

import msgspec

from gpushare_cli.decide.objects.pod_event import ObservedEvent
from gpushare_cli.decide.objects.share_node import ObservedShareNode
from gpushare_cli.decide.scheduling.node_rules import obstacles
from gpushare_cli.decide.scheduling.written_pod import written_pod
from gpushare_cli.decide.why.cluster_facts import ClusterFacts
from gpushare_core.api.conditions import FALSE
from gpushare_core.api.names import ISOLATION_READY
from gpushare_core.dialects.annotation_room import lack_of_room, worst_size
from gpushare_core.placement.modes.table import crowded_container_reason, too_many_units_reason
from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.scheduling.preemption.bound_pods import BoundPod, OwnedPod
from gpushare_core.scheduling.preemption.disruption_budgets import Budget
from gpushare_core.text.json_object import Json

SHARE_NODES_NAME = "GPUShareNodes"
"""As ``unread`` has them."""


@dataclass(frozen=True, kw_only=True)
class PodSituation:
    """None stands for what was not read."""

    pod: Json
    kube_pod: KubePod
    """The same pod, as core reads it."""
    request: PodRequest
    """By the names of extended resources that are ours, in any dialect."""
    exists: bool
    """False for a manifest, which the API server does not have yet."""
    now: datetime
    ledger: Ledger
    """Of the GPUShareNodes, of the bound pods that have not started, and of all bound pods of the nodes that
    come closest; of a pod that is bound only of its node."""
    share_nodes: Mapping[str, ObservedShareNode]
    """By name; as the ledger."""
    waiting: Sequence[OwnedPod] = ()
    """Other pods that are bound to no node."""
    neighbours: Mapping[str, Sequence[BoundPod]] = field(default_factory=dict)
    """Node -> its pods that have not ended; only of the few nodes that come closest."""
    budgets: Sequence[Budget] | None = None
    """All PodDisruptionBudgets."""
    events: Sequence[ObservedEvent] | None = None
    """About the pod, the latest first."""
    evictions: Sequence[ObservedEvent] = ()
    """About pods of its namespace that were evicted because they had more memory than they asked for."""
    cluster: ClusterFacts = field(default_factory=ClusterFacts)
    unread: Mapping[str, str] = field(default_factory=dict)
    """What could not be read -> why."""

    @cached_property
    def allowed_nodes(self) -> list[str]:
        """The nodes with cards to which taints, selectors and the like let the pod, sorted; those of which
        nothing is known as well."""
        return [name for name in self._permitted_nodes if name not in self.unable_nodes]

    @cached_property
    def unable_nodes(self) -> dict[str, ObservedShareNode]:
        """The others of them: they take no new pods, because they cannot have the isolation asked for."""
        nodes = (self.share_nodes[name] for name in self._permitted_nodes if name in self.share_nodes)
        ready = ((node, node.condition(ISOLATION_READY)) for node in nodes)
        return {node.name: node for node, said in ready if said and said.status == FALSE}

    @cached_property
    def _permitted_nodes(self) -> list[str]:
        known, spec = self.cluster.nodes or {}, written_pod(self.pod).spec
        return [
            name
            for name in self.ledger.node_names()
            if name not in known or not any(obstacles(spec, known[name]))
        ]

    def reasons_against(self, request: PodRequest) -> dict[str, str]:
        """Returns why no node takes the pod with ``request``, whatever is free there, by code."""
        size = self.kube_pod.version.annotations_size
        reasons = {
            "CrowdedContainer": crowded_container_reason(request),
            "TooManyUnits": too_many_units_reason(request),
            "AnnotationsFull": lack_of_room(size, worst_size(request)) if request.resources else "",
        }
        return {code: reason for code, reason in reasons.items() if reason}

    @property
    def shares_nothing(self) -> bool:
        """Whether it is known that no node shares its cards."""
        return not self.share_nodes and SHARE_NODES_NAME not in self.unread

    @cached_property
    def is_impossible(self) -> bool:
        return bool(self.reasons_against(self.request))

    @property
    def namespace(self) -> str:
        return self.kube_pod.metadata.namespace or "default"

    @property
    def name(self) -> str:
        return self.kube_pod.metadata.name

    @property
    def generate_name(self) -> str:
        """With which its name begins, and those of the other pods of what made it; empty for others."""
        return str(self.pod.get("metadata", {}).get("generateName") or "")

    @property
    def node(self) -> str:
        """To which the pod is bound; empty for one that is not."""
        return self.kube_pod.spec.node_name


def read_kube_pod(pod: Json) -> KubePod:
    """Raises ``msgspec.ValidationError`` for what is no pod."""
    return msgspec.convert(pod, KubePod)
