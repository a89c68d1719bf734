"""The cluster at one moment, as far as the operator knows it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TypeVar

from gpushare_core.api.names import CONTROL_PLANE_LABEL
from gpushare_core.api.plugin_heartbeat import IsolationFiles
from gpushare_core.kubernetes_minors import KubernetesSupport, support_of
from gpushare_operator.cluster import objects
from gpushare_operator.cluster.labels import EXTENDER, PLUGIN, SCHEDULER
from gpushare_operator.cluster.nodes.node_index import NodeFunction, NodeIndex, NodeIndexes
from gpushare_operator.cluster.nodes.observed_states import ObservedState, observed_states
from gpushare_operator.cluster.nodes.traits import ClusterTraits, NodeTraits, cluster_traits

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class ClusterSnapshot:
    """All mappings are by name, and nobody may change them."""

    policies: Mapping[str, objects.PolicyObject] = field(default_factory=dict)
    nodes: Mapping[str, objects.NodeObject] = field(default_factory=dict)
    share_nodes: Mapping[str, objects.ShareNodeObject] = field(default_factory=dict)
    daemon_sets: Mapping[str, objects.DaemonSetObject] = field(default_factory=dict)
    deployments: Mapping[str, objects.DeploymentObject] = field(default_factory=dict)
    jobs: Mapping[str, objects.JobObject] = field(default_factory=dict)
    pods: Mapping[str, objects.PodObject] = field(default_factory=dict)
    schedulers: Mapping[str, objects.SchedulerObject] = field(default_factory=dict)
    """A node may have more than one."""
    calls: Mapping[str, objects.CallsObject] = field(default_factory=dict)
    volcano_backups: Mapping[str, objects.VolcanoBackupObject] = field(default_factory=dict)
    volcano_configs: Mapping[objects.VolcanoLocation, objects.VolcanoConfigObject] = field(
        default_factory=dict
    )
    """Only configurations that a policy names, or that were edited."""
    kubernetes: str = ""
    """Version of the API server, the lowest one of several: a tag of Kubernetes' images, such as ``v1.36.3``;
    empty where it is not known."""
    server: objects.ServerFacts | None = None
    """None where nobody needs to know."""
    scheduler_rights: objects.ReadResult | None = None
    """Whether the user of the cluster's own kube-schedulers has those of engine Plugin; None where nobody
    needs to know, or it was not asked yet."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Name of a DaemonSet, Deployment or Job of ours -> why its pods are not made."""
    unavailable: Mapping[str, datetime] = field(default_factory=dict)
    """Node name -> the last sign of its plugin, for unavailable plugins."""
    isolation_files: Mapping[str, IsolationFiles | None] | None = None
    """Node name -> the files of isolation there, as its plugin says, or None where it has just started; None
    in place of all before that was read."""

    known_states: Mapping[str, ObservedState] | None = field(default=None, compare=False, repr=False)
    """What the objects above make of ``states``, where a keeper has made it already."""
    indexes: NodeIndexes = field(default_factory=NodeIndexes, compare=False, repr=False)
    """They only save work: what they hold follows from the objects above."""

    @cached_property
    def states(self) -> Mapping[str, ObservedState]:
        """By node name, for every node with any object."""
        if self.known_states is not None:
            return self.known_states
        return observed_states(self.nodes, self.share_nodes, self.pods.values(), self.unavailable)

    def index(self, function: NodeFunction[R], *, subject: str = "") -> NodeIndex[R]:
        """Returns what ``function`` returns for all nodes.

        The index is right until a function of the same type is called for ``subject`` again: from then on it
        may be another snapshot's.
        """
        return self.indexes.find(function, self.states, subject=subject)

    @property
    def is_server_too_old(self) -> bool:
        """A server whose version is not known, or newer than any that is tested, is not."""
        return support_of(self.kubernetes) is KubernetesSupport.TOO_OLD

    @cached_property
    def traits(self) -> ClusterTraits:
        return cluster_traits(self.index(NodeTraits()), self.nodes)

    @cached_property
    def control_planes(self) -> list[objects.NodeObject]:
        """Control-plane nodes that are not being deleted, in order of their names."""
        return [
            node for node in self.traits.hosts if CONTROL_PLANE_LABEL in node.labels and not node.deleting
        ]

    @cached_property
    def extender_pods(self) -> Mapping[str, objects.PodObject]:
        """By node name; a ready one where a node has two."""
        pods = [pod for pod in self._few_pods if pod.component == EXTENDER and pod.node]
        return {pod.node: pod for pod in sorted(pods, key=lambda pod: pod.ready)}

    @cached_property
    def dedicated_pods(self) -> list[objects.PodObject]:
        """Pods of our own kube-scheduler."""
        return [pod for pod in self._few_pods if pod.component == SCHEDULER]

    @cached_property
    def _few_pods(self) -> list[objects.PodObject]:
        """Pods other than plugins, of which every node has one."""
        return [pod for pod in self.pods.values() if pod.component != PLUGIN]

    @cached_property
    def jobs_by_node(self) -> Mapping[str, list[objects.JobObject]]:
        """Node name -> the runs of hostctl there, the oldest first; failed and complete as hostctl ended."""
        jobs: dict[str, list[objects.JobObject]] = {}
        for job in sorted(self.jobs.values(), key=lambda job: job.sequence):
            jobs.setdefault(job.node, []).append(job.as_hostctl_said(self.pod_of_job(job.name)))
        return jobs

    @cached_property
    def let_go(self) -> frozenset[str]:
        """Names of nodes that people have declared lost for ever."""
        return frozenset().union(*(policy.let_go for policy in self.policies.values()))

    def labelled_nodes(self, policy: str) -> list[objects.NodeObject]:
        """Nodes with a label of ``policy``."""
        return [node for node in self.nodes.values() if node.named_policy == policy != ""]

    def share_nodes_of(self, policy: str) -> list[objects.ShareNodeObject]:
        return [share for share in self.share_nodes.values() if share.policy == policy]

    def pod_of_job(self, job: str) -> objects.PodObject | None:
        return next((pod for pod in self._few_pods if pod.job == job), None)


def oldest_first(policies: Iterable[objects.PolicyObject]) -> list[objects.PolicyObject]:
    return sorted(policies, key=lambda policy: policy.precedence)
