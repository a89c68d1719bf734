"""What few nodes have, and what many have in common, whatever policies ask for."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from gpushare_core.api.names import (
    CONTROL_PLANE_LABEL,
    DIALECT_LABEL,
    EXTERNAL_SCHEDULER_LABEL,
    GROUP,
    MODE_LABEL,
    SCHEDULER_LABEL,
)
from gpushare_operator.cluster.nodes.node_index import Entry, NodeIndex
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import NodeObject, PolicyObject

HOST_LABELS = frozenset({CONTROL_PLANE_LABEL, EXTERNAL_SCHEDULER_LABEL, SCHEDULER_LABEL})
"""On nodes where a kube-scheduler runs, or may have been edited."""


@dataclass(frozen=True, slots=True)
class _Spoken:
    """A node speaks a dialect in a mode, or is asked to."""

    dialect: str
    mode: str

    @property
    def pair(self) -> tuple[str, str]:
        return (self.dialect, self.mode)


@dataclass(frozen=True, slots=True)
class _Owned:
    """Something on a node is this policy's."""

    policy: str


@dataclass(frozen=True, slots=True)
class _Offered:
    """A node offers some of a resource with a name of a dialect, whoever its plugin is."""

    resource: str


@dataclass(frozen=True, slots=True)
class Sharer:
    """A policy under which a node shares its cards, by its GPUShareNode."""

    policy: str
    owners: tuple[str, ...]
    """UIDs; none where the GPUShareNode has none."""


@dataclass(frozen=True, slots=True)
class _Traits:
    is_host: bool
    is_tainted: bool


@dataclass(frozen=True, slots=True)
class NodeTraits:
    def __call__(self, state: ObservedState) -> Entry[_Traits]:
        node = state.node
        is_host = node is not None and not HOST_LABELS.isdisjoint(node.labels)
        is_tainted = node is not None and node.startup_taint is not None and not node.deleting
        result = _Traits(is_host, is_tainted) if is_host or is_tainted else None
        sums = (*_dialects(state), *_owners(state), *_offered(state), *_sharers(state))
        return Entry(result, _counted(sums))


@lru_cache(maxsize=256)
def _counted(keys: tuple[Hashable, ...]) -> Mapping[Hashable, int]:
    """Nodes with the same ``keys`` share one mapping: nobody may change it."""
    return dict.fromkeys(keys, 1)


def _dialects(state: ObservedState) -> Iterator[Hashable]:
    """Yields dialect and mode of the GPUShareNode, and of the labels while the node is a policy's.

    Without a policy labels do not count: a kubelet may set them, and kube-schedulers are edited for them.
    """
    if share := state.share:
        mode, dialects = str(share.spec.get("mode", "")), (share.spec.get("dialect", GROUP), share.dialect)
        yield from (_Spoken(str(dialect), mode) for dialect in dialects if dialect)
    if state.node and state.policies and DIALECT_LABEL in state.node.labels:
        yield _Spoken(state.node.labels[DIALECT_LABEL], state.node.labels.get(MODE_LABEL, ""))


def _owners(state: ObservedState) -> Iterator[Hashable]:
    names = {
        state.share.policy if state.share else "",
        state.node.named_policy if state.node else "",
    }
    yield from (_Owned(name) for name in names - {""})


def _offered(state: ObservedState) -> Iterator[Hashable]:
    if state.node:
        yield from (_Offered(name) for name in state.node.offered if name not in state.node.zeros)


def _sharers(state: ObservedState) -> Iterator[Hashable]:
    if state.share and not state.share.deleting:
        yield Sharer(state.share.policy, state.share.owners)


@dataclass(frozen=True, slots=True)
class ClusterTraits:
    """What ``NodeTraits`` found, nodes in order of their names."""

    hosts: Sequence[NodeObject]
    """Nodes with any of ``HOST_LABELS``."""
    tainted: Sequence[NodeObject]
    """Nodes with our startup taint that are not being deleted."""
    dialects: frozenset[tuple[str, str]]
    """Dialect and mode of all GPUShareNodes, and of the labels of nodes under a policy."""
    policies: frozenset[str]
    """Policies with a GPUShareNode or a label."""
    offered: frozenset[str]
    """Extended resources with names of dialects that any node offers, whoever its plugin is."""
    sharers: frozenset[Sharer]

    def shares_node(self, policy: PolicyObject) -> bool:
        """Returns whether any node shares its cards under this very policy: ``ObservedState.is_in_force``."""
        owned = (sharer.owners for sharer in self.sharers if sharer.policy == policy.name)
        return any(policy.uid in owners or not owners for owners in owned)


def cluster_traits(index: NodeIndex[_Traits], nodes: Mapping[str, NodeObject]) -> ClusterTraits:
    """Raises RuntimeError where a node could not be evaluated.

    A host that is not seen must not count as one that is no host any more: its kube-scheduler would be
    restored.
    """
    if index.defects:
        raise RuntimeError(f"cannot tell hosts from other nodes: {index.defects}")
    results = sorted(index.results.items())
    return ClusterTraits(
        hosts=[nodes[name] for name, traits in results if traits.is_host],
        tainted=[nodes[name] for name, traits in results if traits.is_tainted],
        dialects=frozenset(key.pair for key in index.sums if isinstance(key, _Spoken)),
        policies=frozenset(key.policy for key in index.sums if isinstance(key, _Owned)),
        offered=frozenset(key.resource for key in index.sums if isinstance(key, _Offered)),
        sharers=frozenset(key for key in index.sums if isinstance(key, Sharer)),
    )
