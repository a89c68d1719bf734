"""What nodes have in common, or alone, whatever policies ask for."""

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
class _Offered:
    """That a node offers some of a resource by a name of dialects, whoever's it is."""

    resource: str


@dataclass(frozen=True, slots=True)
class Sharer:
    """A policy under which a node shares its cards, as its GPUShareNode names it."""

    policy: str
    owners: tuple[str, ...]
    """UIDs; none where the GPUShareNode has none."""


@dataclass(frozen=True, slots=True)
class _Traits:
    is_host: bool
    is_tainted: bool


@dataclass(frozen=True, slots=True)
class NodeTraits:
    """Looks for what most nodes do not have, and for what many have in common."""

    def __call__(self, state: ObservedState) -> Entry[_Traits]:
        node = state.node
        is_host = node is not None and not HOST_LABELS.isdisjoint(node.labels)
        is_tainted = node is not None and node.startup_taint is not None and not node.deleting
        result = _Traits(is_host, is_tainted) if is_host or is_tainted else None
        sums = (*_dialects(state), *_owners(state), *_offered(state), *_sharers(state))
        return Entry(result, _counted(sums))


@lru_cache(maxsize=256)
def _counted(keys: tuple[Hashable, ...]) -> Mapping[Hashable, int]:
    """Returns the same mapping for nodes with the same ``keys``: nobody may change it."""
    return dict.fromkeys(keys, 1)


def _dialects(state: ObservedState) -> Iterator[Hashable]:
    """Yields dialect and mode of the GPUShareNode, and those that the labels record while the node is a
    policy's: a kubelet may set these labels on any node, and kube-schedulers are edited for what they say."""
    if share := state.share:
        mode = str(share.spec.get("mode", ""))
        yield from (
            _Spoken(each, mode) for each in (str(share.spec.get("dialect", GROUP)), share.dialect) if each
        )
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
    """What ``NodeTraits`` found."""

    hosts: Sequence[NodeObject]
    """Nodes with any of ``HOST_LABELS``, in order of their names."""
    tainted: Sequence[NodeObject]
    """Nodes with our startup taint that stay, in order of their names."""
    dialects: frozenset[tuple[str, str]]
    """Dialect and mode of all GPUShareNodes, and those that the labels of nodes under a policy record."""
    policies: frozenset[str]
    """Those of which a GPUShareNode or a label is there."""
    offered: frozenset[str]
    """Extended resources by the names of dialects of which any node offers some, whoever's they are."""
    sharers: frozenset[Sharer]
    """Those under which nodes share their cards."""

    def shares_node(self, policy: PolicyObject) -> bool:
        """Returns whether a node shares its cards under this very policy; as ``ObservedState.is_in_force``."""
        owned = (sharer.owners for sharer in self.sharers if sharer.policy == policy.name)
        return any(policy.uid in owners or not owners for owners in owned)


def cluster_traits(index: NodeIndex[_Traits], nodes: Mapping[str, NodeObject]) -> ClusterTraits:
    """Returns what ``index`` found in ``nodes``.

    Raises:
        RuntimeError: a node could not be looked at. A host that is not seen must not be taken for one that is
            no host any more: its kube-scheduler would be restored.
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
