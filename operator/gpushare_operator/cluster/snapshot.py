"""The cluster at one moment, as far as it concerns the operator."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from gpushare_core.api.names import CONTROL_PLANE_LABEL, DIALECT_LABEL, GROUP, MODE_LABEL, POLICY_LABEL
from gpushare_operator.cluster.labels import EXTENDER, PLUGIN, SCHEDULER
from gpushare_operator.cluster.objects import (
    CallsObject,
    DaemonSetObject,
    DeploymentObject,
    JobObject,
    NodeObject,
    PodObject,
    PolicyObject,
    SchedulerObject,
    ServerFacts,
    ShareNodeObject,
    VolcanoBackupObject,
    VolcanoConfigObject,
    VolcanoLocation,
)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """All mappings are keyed by name and must not be changed."""

    policies: Mapping[str, PolicyObject] = field(default_factory=dict)
    nodes: Mapping[str, NodeObject] = field(default_factory=dict)
    share_nodes: Mapping[str, ShareNodeObject] = field(default_factory=dict)
    daemon_sets: Mapping[str, DaemonSetObject] = field(default_factory=dict)
    deployments: Mapping[str, DeploymentObject] = field(default_factory=dict)
    jobs: Mapping[str, JobObject] = field(default_factory=dict)
    pods: Mapping[str, PodObject] = field(default_factory=dict)
    schedulers: Mapping[str, SchedulerObject] = field(default_factory=dict)
    """Of every node: there may be more than one on it."""
    calls: Mapping[str, CallsObject] = field(default_factory=dict)
    volcano_backups: Mapping[str, VolcanoBackupObject] = field(default_factory=dict)
    volcano_configs: Mapping[VolcanoLocation, VolcanoConfigObject] = field(default_factory=dict)
    """Only those that a policy names, or that were edited."""
    server: ServerFacts | None = None
    """None where nobody asked."""

    @cached_property
    def control_planes(self) -> list[NodeObject]:
        """Returns the control-plane nodes that stay, in order of their names."""
        labelled = (node for node in self.nodes.values() if CONTROL_PLANE_LABEL in node.labels)
        return sorted((node for node in labelled if not node.deleting), key=lambda node: node.name)

    @cached_property
    def plugin_policies(self) -> Mapping[str, frozenset[str]]:
        """Node name -> the policies whose plugin still runs there."""
        policies: dict[str, set[str]] = {}
        for pod in self.pods.values():
            if pod.component == PLUGIN and pod.node:
                policies.setdefault(pod.node, set()).add(pod.policy)
        return {node: frozenset(names) for node, names in policies.items()}

    @cached_property
    def plugin_pods(self) -> Mapping[str, PodObject]:
        """Node name -> its plugin, a ready one if there are two."""
        return self._ready_first(PLUGIN)

    @cached_property
    def extender_pods(self) -> Mapping[str, PodObject]:
        """Node name -> its extender, a ready one if there are two."""
        return self._ready_first(EXTENDER)

    def _ready_first(self, component: str) -> Mapping[str, PodObject]:
        pods = [pod for pod in self.pods.values() if pod.component == component and pod.node]
        return {pod.node: pod for pod in sorted(pods, key=lambda pod: pod.ready)}

    @cached_property
    def dedicated_pods(self) -> list[PodObject]:
        """Returns the pods of our own kube-scheduler."""
        return [pod for pod in self.pods.values() if pod.component == SCHEDULER]

    @cached_property
    def jobs_by_node(self) -> Mapping[str, list[JobObject]]:
        """Node name -> the runs of hostctl on it, the oldest first."""
        jobs: dict[str, list[JobObject]] = {}
        for job in sorted(self.jobs.values(), key=lambda job: job.sequence):
            jobs.setdefault(job.node, []).append(job)
        return jobs

    @cached_property
    def dialects_on_nodes(self) -> frozenset[tuple[str, str]]:
        """Returns dialect and mode of all GPUShareNodes, and those that the labels of nodes record."""
        shares = [(share.dialect, share.spec) for share in self.share_nodes.values()]
        asked = {(str(spec.get("dialect", GROUP)), str(spec.get("mode", ""))) for _, spec in shares}
        asked |= {(spoken, str(spec.get("mode", ""))) for spoken, spec in shares if spoken}
        labels = (node.labels for node in self.nodes.values())
        shown = {(each[DIALECT_LABEL], each.get(MODE_LABEL, "")) for each in labels if DIALECT_LABEL in each}
        return frozenset(asked | shown)

    @cached_property
    def let_go(self) -> frozenset[str]:
        """Returns the nodes that people have said are lost for ever."""
        return frozenset().union(*(policy.let_go for policy in self.policies.values()))

    def policies_on(self, node: str) -> set[str]:
        """Returns the policies that the node still carries something of, other than capacity."""
        names = set(self.plugin_policies.get(node, ()))
        if share := self.share_nodes.get(node):
            names.add(share.policy)
        if known := self.nodes.get(node):
            names.add(known.labels.get(POLICY_LABEL, ""))
        return names - {""}

    def labelled_nodes(self, policy: str) -> list[NodeObject]:
        """Returns the nodes that carry the label of ``policy``."""
        return [node for node in self.nodes.values() if node.labels.get(POLICY_LABEL) == policy]

    def share_nodes_of(self, policy: str) -> list[ShareNodeObject]:
        return [share for share in self.share_nodes.values() if share.policy == policy]

    def is_in_force(self, policy: PolicyObject, node: str) -> bool:
        """Returns whether a GPUShareNode says that ``node`` shares its cards under this very policy."""
        share = self.share_nodes.get(node)
        return (
            share is not None
            and not share.deleting
            and share.policy == policy.name
            and (policy.uid in share.owners or not share.owners)
        )

    def pod_of_job(self, job: str) -> PodObject | None:
        return next((pod for pod in self.pods.values() if pod.job == job), None)


def oldest_first(policies: Iterable[PolicyObject]) -> list[PolicyObject]:
    return sorted(policies, key=lambda policy: policy.precedence)
