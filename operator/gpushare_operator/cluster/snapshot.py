"""The cluster at one moment, as far as it concerns the operator."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from gpushare_core.api.names import CONTROL_PLANE_LABEL, FINALIZER, POLICY_LABEL
from gpushare_operator.cluster.objects import (
    DaemonSetView,
    JobView,
    NodeView,
    PodView,
    PolicyView,
    ShareNodeView,
)
from gpushare_operator.decide.support import is_served
from gpushare_operator.desired.names import EXTENDER, PLUGIN


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """All mappings are keyed by name and must not be changed."""

    policies: Mapping[str, PolicyView] = field(default_factory=dict)
    nodes: Mapping[str, NodeView] = field(default_factory=dict)
    share_nodes: Mapping[str, ShareNodeView] = field(default_factory=dict)
    daemon_sets: Mapping[str, DaemonSetView] = field(default_factory=dict)
    jobs: Mapping[str, JobView] = field(default_factory=dict)
    pods: Mapping[str, PodView] = field(default_factory=dict)

    @cached_property
    def control_planes(self) -> list[NodeView]:
        every = (node for node in self.nodes.values() if CONTROL_PLANE_LABEL in node.labels)
        return sorted((node for node in every if not node.deleting), key=lambda node: node.name)

    @cached_property
    def scheduler_needed(self) -> bool:
        """Whether a policy wants the cluster's scheduler connected, and is protected by our finalizer."""
        return any(
            not policy.deleting and FINALIZER in policy.finalizers and is_served(policy)
            for policy in self.policies.values()
        )

    @cached_property
    def plugin_hosts(self) -> Mapping[str, frozenset[str]]:
        """Node name -> the policies whose plugin still runs there."""
        hosts: dict[str, set[str]] = {}
        for pod in self.pods.values():
            if pod.component == PLUGIN and pod.node:
                hosts.setdefault(pod.node, set()).add(pod.policy)
        return {node: frozenset(policies) for node, policies in hosts.items()}

    @cached_property
    def extender_hosts(self) -> Mapping[str, PodView]:
        """Node name -> its extender, a ready one if there are two."""
        pods = [pod for pod in self.pods.values() if pod.component == EXTENDER and pod.node]
        return {pod.node: pod for pod in sorted(pods, key=lambda pod: pod.ready)}

    def holders(self, node: str) -> set[str]:
        """Policies that the node still carries something of, other than capacity."""
        held = set(self.plugin_hosts.get(node, ()))
        if share := self.share_nodes.get(node):
            held.add(share.policy)
        if view := self.nodes.get(node):
            held.add(view.labels.get(POLICY_LABEL, ""))
        return held - {""}

    def labelled(self, policy: str) -> list[NodeView]:
        return [node for node in self.nodes.values() if node.labels.get(POLICY_LABEL) == policy]

    def shared_by(self, policy: str) -> list[ShareNodeView]:
        return [share for share in self.share_nodes.values() if share.policy == policy]

    def journal(self, node: str) -> list[JobView]:
        """The runs of hostctl on ``node``, the oldest first."""
        return sorted(self.journals.get(node, ()), key=lambda job: job.sequence)

    @cached_property
    def journals(self) -> Mapping[str, list[JobView]]:
        found: dict[str, list[JobView]] = {}
        for job in self.jobs.values():
            found.setdefault(job.node, []).append(job)
        return found

    def job_pod(self, job: str) -> PodView | None:
        return next((pod for pod in self.pods.values() if pod.job == job), None)


def by_seniority(policies: Iterable[PolicyView]) -> list[PolicyView]:
    return sorted(policies, key=lambda policy: policy.seniority)
