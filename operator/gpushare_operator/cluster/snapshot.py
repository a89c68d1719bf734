"""The cluster at one moment, as far as it concerns the operator."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TypeVar

from gpushare_core.api.names import (
    CONTROL_PLANE_LABEL,
    DIALECT_LABEL,
    EXTERNAL_SCHEDULER_LABEL,
    GROUP,
    MODE_LABEL,
    POLICY_LABEL,
    SCHEDULER_LABEL,
)
from gpushare_operator.cluster.labels import EXTENDER, PLUGIN, SCHEDULER
from gpushare_operator.cluster.node_index import Entry, Look, NodeIndex, NodeIndexes
from gpushare_operator.cluster.node_state import NodeState, node_states
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

R = TypeVar("R")

HOST_LABELS = frozenset({CONTROL_PLANE_LABEL, EXTERNAL_SCHEDULER_LABEL, SCHEDULER_LABEL})
"""Of nodes on which a kube-scheduler runs, or may have been edited."""


@dataclass(frozen=True, slots=True)
class _Spoken:
    """That a node speaks a dialect in a mode, or is asked to."""

    dialect: str
    mode: str

    @property
    def pair(self) -> tuple[str, str]:
        return (self.dialect, self.mode)


@dataclass(frozen=True, slots=True)
class _Owned:
    """That something on a node is a policy's."""

    policy: str


@dataclass(frozen=True, slots=True)
class _Traits:
    is_host: bool
    is_tainted: bool


@dataclass(frozen=True, slots=True)
class NodeTraits:
    """Looks for what most nodes do not have, and for what many have in common."""

    def __call__(self, state: NodeState) -> Entry[_Traits]:
        node = state.node
        is_host = node is not None and not HOST_LABELS.isdisjoint(node.labels)
        is_tainted = node is not None and node.startup_taint is not None and not node.deleting
        remark = _Traits(is_host, is_tainted) if is_host or is_tainted else None
        return Entry(remark, _counted((*_dialects(state), *_owners(state))))


@lru_cache(maxsize=256)
def _counted(keys: tuple[Hashable, ...]) -> Mapping[Hashable, int]:
    """Returns the same mapping for nodes with the same ``keys``: nobody may change it."""
    return dict.fromkeys(keys, 1)


def _dialects(state: NodeState) -> Iterator[Hashable]:
    """Yields dialect and mode of the GPUShareNode, and those that the labels record."""
    if share := state.share:
        mode = str(share.spec.get("mode", ""))
        yield from (
            _Spoken(each, mode) for each in (str(share.spec.get("dialect", GROUP)), share.dialect) if each
        )
    if state.node and DIALECT_LABEL in state.node.labels:
        yield _Spoken(state.node.labels[DIALECT_LABEL], state.node.labels.get(MODE_LABEL, ""))


def _owners(state: NodeState) -> Iterator[Hashable]:
    names = {
        state.share.policy if state.share else "",
        state.node.labels.get(POLICY_LABEL, "") if state.node else "",
    }
    yield from (_Owned(name) for name in names - {""})


@dataclass(frozen=True, slots=True)
class ClusterTraits:
    """What ``NodeTraits`` found."""

    hosts: Sequence[NodeObject]
    """Nodes with any of ``HOST_LABELS``, in order of their names."""
    tainted: Sequence[NodeObject]
    """Nodes with our startup taint that stay, in order of their names."""
    dialects: frozenset[tuple[str, str]]
    """Dialect and mode of all GPUShareNodes, and those that the labels of nodes record."""
    policies: frozenset[str]
    """Those of which a GPUShareNode or a label is there."""


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

    known_states: Mapping[str, NodeState] | None = field(default=None, compare=False, repr=False)
    """Made of the objects above where nobody has kept them."""
    indexes: NodeIndexes = field(default_factory=NodeIndexes, compare=False, repr=False)
    """Only spares work: what they say follows from the objects above."""

    @cached_property
    def states(self) -> Mapping[str, NodeState]:
        """Node name -> what is known of it, of every node of which anything is."""
        if self.known_states is not None:
            return self.known_states
        return node_states(self.nodes, self.share_nodes, self.pods.values())

    def index(self, look: Look[R], *, subject: str = "") -> NodeIndex[R]:
        """Returns what ``look`` says of all nodes, right until the next call with a look of the same type
        and ``subject``: then it is another snapshot's."""
        return self.indexes.find(look, self.states, subject=subject)

    @cached_property
    def traits(self) -> "ClusterTraits":
        """What nodes have in common, or alone, whatever policies ask for."""
        index = self.index(NodeTraits())
        hosts = [self.nodes[name] for name, traits in index.remarks.items() if traits.is_host]
        tainted = [self.nodes[name] for name, traits in index.remarks.items() if traits.is_tainted]
        return ClusterTraits(
            hosts=sorted(hosts, key=lambda node: node.name),
            tainted=sorted(tainted, key=lambda node: node.name),
            dialects=frozenset(key.pair for key in index.sums if isinstance(key, _Spoken)),
            policies=frozenset(key.policy for key in index.sums if isinstance(key, _Owned)),
        )

    @cached_property
    def control_planes(self) -> list[NodeObject]:
        """Returns the control-plane nodes that stay, in order of their names."""
        return [
            node for node in self.traits.hosts if CONTROL_PLANE_LABEL in node.labels and not node.deleting
        ]

    @cached_property
    def extender_pods(self) -> Mapping[str, PodObject]:
        """Node name -> its extender, a ready one if there are two."""
        pods = [pod for pod in self._few_pods if pod.component == EXTENDER and pod.node]
        return {pod.node: pod for pod in sorted(pods, key=lambda pod: pod.ready)}

    @cached_property
    def dedicated_pods(self) -> list[PodObject]:
        """Returns the pods of our own kube-scheduler."""
        return [pod for pod in self._few_pods if pod.component == SCHEDULER]

    @cached_property
    def _few_pods(self) -> list[PodObject]:
        """Returns the pods that are no plugins: of those there is one on every node."""
        return [pod for pod in self.pods.values() if pod.component != PLUGIN]

    @cached_property
    def jobs_by_node(self) -> Mapping[str, list[JobObject]]:
        """Node name -> the runs of hostctl on it, the oldest first."""
        jobs: dict[str, list[JobObject]] = {}
        for job in sorted(self.jobs.values(), key=lambda job: job.sequence):
            jobs.setdefault(job.node, []).append(job)
        return jobs

    @cached_property
    def let_go(self) -> frozenset[str]:
        """Returns the nodes that people have said are lost for ever."""
        return frozenset().union(*(policy.let_go for policy in self.policies.values()))

    def labelled_nodes(self, policy: str) -> list[NodeObject]:
        """Returns the nodes that carry the label of ``policy``."""
        return [node for node in self.nodes.values() if node.labels.get(POLICY_LABEL) == policy]

    def share_nodes_of(self, policy: str) -> list[ShareNodeObject]:
        return [share for share in self.share_nodes.values() if share.policy == policy]

    def pod_of_job(self, job: str) -> PodObject | None:
        return next((pod for pod in self._few_pods if pod.job == job), None)


def oldest_first(policies: Iterable[PolicyObject]) -> list[PolicyObject]:
    return sorted(policies, key=lambda policy: policy.precedence)
