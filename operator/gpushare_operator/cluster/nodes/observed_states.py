"""What is known of each node: its objects side by side, kept as they change."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from gpushare_operator.cluster.labels import PLUGIN
from gpushare_operator.cluster.objects import NodeObject, PodObject, PolicyObject, ShareNodeObject


@dataclass(frozen=True, slots=True)
class ObservedState:
    """The objects of one node. None stands for one that is not there."""

    name: str
    node: NodeObject | None = None
    share: ShareNodeObject | None = None
    plugins: tuple[PodObject, ...] = ()
    """Pods of plugins on it, in order of their names."""
    unavailable_since: datetime | None = None
    """When its plugin was heard of last, where it is not heard of any more."""

    @property
    def plugin(self) -> PodObject | None:
        """Returns its plugin, a ready one if there are two."""
        return max(self.plugins, key=lambda pod: pod.ready, default=None)

    @property
    def policies(self) -> set[str]:
        """Returns the policies that the node still carries something of, other than capacity."""
        names = {pod.policy for pod in self.plugins}
        if self.share:
            names.add(self.share.policy)
        if self.node:
            names.add(self.node.policy)
        return names - {""}

    def is_in_force(self, policy: PolicyObject) -> bool:
        """Returns whether a GPUShareNode says that the node shares its cards under this very policy."""
        share = self.share
        return (
            share is not None
            and not share.deleting
            and share.policy == policy.name
            and (policy.uid in share.owners or not share.owners)
        )


def observed_states(
    nodes: Mapping[str, NodeObject],
    shares: Mapping[str, ShareNodeObject],
    pods: Iterable[PodObject],
    unavailable: Mapping[str, datetime],
) -> Mapping[str, ObservedState]:
    """Returns the state of every node that anything is known of, by its name."""
    keeper = StateKeeper(unavailable=unavailable)
    for pod in pods:
        keeper.note_pod(None, pod)
    keeper.note([*nodes, *shares])
    return keeper.hand_out(nodes, shares)


MAX_CHANGES = 8192
"""That are remembered. Where more happened in between, to compare all nodes costs little more."""


@dataclass(slots=True)
class Journal:
    """Which nodes have changed, in order; numbered from 0 on. Only the last of them are remembered."""

    _names: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_CHANGES))
    end: int = 0
    """The number of the next change."""

    def note(self, names: Collection[str]) -> None:
        self._names.extend(names)
        self.end += len(names)

    def between(self, begin: int, end: int) -> Iterable[str] | None:
        """Returns the nodes that changed from number ``begin`` on and before ``end``, each once; None where
        that is not remembered."""
        oldest = self.end - len(self._names)
        if not oldest <= begin <= end:
            return None
        # From the newest back: mostly the last few are asked for, behind thousands.
        back = islice(reversed(self._names), self.end - end, self.end - begin)
        return dict.fromkeys(reversed([*back]))


class ObservedStates(dict[str, ObservedState]):
    """The states of all nodes at one moment, by name. Never changed once it was handed out."""

    __slots__ = ("_journal", "_position")

    def __init__(self, states: Mapping[str, ObservedState], journal: Journal) -> None:
        super().__init__(states)
        self._journal = journal
        self._position = journal.end

    def changed_since(self, before: Mapping[str, ObservedState]) -> Iterable[str] | None:
        """Returns the nodes of which something may be another than it was ``before``; None where nobody
        knows, because that was too long ago, or later than this, or nothing that was handed out here."""
        if not isinstance(before, ObservedStates) or before._journal is not self._journal:
            return None
        return self._journal.between(before._position, self._position)


@dataclass(slots=True)
class StateKeeper:
    """Keeps the states of all nodes: only those are made anew of which something has changed."""

    unavailable: Mapping[str, datetime] = field(default_factory=dict)
    """Node name -> when its plugin was heard of last, of those that are unavailable."""
    _journal: Journal = field(default_factory=Journal)
    _states: ObservedStates = field(init=False)
    _plugins: dict[str, dict[str, PodObject]] = field(default_factory=dict)
    """Node name -> pods of plugins on it, by name."""
    _changed: dict[str, None] = field(default_factory=dict)
    """Names, in the order in which they changed."""

    def __post_init__(self) -> None:
        self._states = ObservedStates({}, self._journal)

    def note(self, names: Iterable[str]) -> None:
        """Node or GPUShareNode of these names has changed."""
        self._changed.update(dict.fromkeys(names))

    def note_unavailable(self, unavailable: Mapping[str, datetime]) -> None:
        """These plugins are not heard of, and no others."""
        differing = unavailable.items() ^ self.unavailable.items()
        self.unavailable = unavailable
        self.note(sorted({name for name, _ in differing}))

    def note_pod(self, old: PodObject | None, new: PodObject | None) -> None:
        """A pod was ``old`` and is ``new`` now; None: it is not there."""
        for pod in (each for each in (old, new) if each and _is_plugin(each)):
            self._changed[pod.node] = None
            self._plugins.setdefault(pod.node, {}).pop(pod.name, None)
        if new and _is_plugin(new):
            self._plugins[new.node][new.name] = new

    def hand_out(
        self, nodes: Mapping[str, NodeObject], shares: Mapping[str, ShareNodeObject]
    ) -> Mapping[str, ObservedState]:
        """Returns the states as of now: the mapping is never changed afterwards."""
        if not self._changed:
            return self._states
        self._journal.note(self._changed)
        self._states = ObservedStates(self._states, self._journal)
        for name in self._changed:
            known = (nodes.get(name), shares.get(name), self._plugins_on(name))
            self._keep(ObservedState(name, *known, self.unavailable.get(name)))
        self._changed = {}
        return self._states

    def _keep(self, state: ObservedState) -> None:
        if state.node or state.share or state.plugins:
            self._states[state.name] = state
        else:
            self._states.pop(state.name, None)

    def _plugins_on(self, node: str) -> tuple[PodObject, ...]:
        pods = self._plugins.get(node)
        if not pods:
            self._plugins.pop(node, None)
            return ()
        return tuple(pods[name] for name in sorted(pods))


def _is_plugin(pod: PodObject) -> bool:
    return pod.component == PLUGIN and bool(pod.node)
