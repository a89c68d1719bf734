"""What is observed of each node: its objects side by side, kept as they change."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from gpushare_operator.cluster.labels import PLUGIN
from gpushare_operator.cluster.objects import NodeObject, PodObject, PolicyObject, ShareNodeObject


@dataclass(frozen=True, slots=True)
class ObservedState:
    """The objects of one node. None: there is no such object."""

    name: str
    node: NodeObject | None = None
    share: ShareNodeObject | None = None
    plugins: tuple[PodObject, ...] = ()
    """Pods of plugins on the node, by name in order."""
    unavailable_since: datetime | None = None
    """The last sign of its plugin, where the plugin is unavailable."""

    @property
    def plugin(self) -> PodObject | None:
        """A ready one if there are two."""
        return max(self.plugins, key=lambda pod: pod.ready, default=None)

    @property
    def policies(self) -> set[str]:
        """Policies that have a pod, a GPUShareNode or a label here; capacity does not count."""
        names = {pod.policy for pod in self.plugins}
        if self.share:
            names.add(self.share.policy)
        if self.node:
            names.add(self.node.policy)
        return names - {""}

    def is_in_force(self, policy: PolicyObject) -> bool:
        """Returns whether the GPUShareNode says that the node shares its cards under this very policy."""
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
    """Returns the state of every node with any object, by name."""
    keeper = StateKeeper(unavailable=unavailable)
    for pod in pods:
        keeper.note_pod(None, pod)
    keeper.note([*nodes, *shares])
    return keeper.hand_out(nodes, shares)


MAX_CHANGES = 8192
"""Changes that the journal remembers. After more, comparing all nodes costs little more."""


@dataclass(slots=True)
class Journal:
    """The last changes: names of nodes, in order. Changes are numbered from 0."""

    _names: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_CHANGES))
    end: int = 0
    """The number of the next change."""

    def note(self, names: Collection[str]) -> None:
        self._names.extend(names)
        self.end += len(names)

    def between(self, begin: int, end: int) -> Iterable[str] | None:
        """Returns the nodes in changes ``begin`` to ``end`` (exclusive), without repetition; None where the
        journal no longer remembers them."""
        oldest = self.end - len(self._names)
        if not oldest <= begin <= end:
            return None
        # From the newest back: mostly only the last few are asked for.
        back = islice(reversed(self._names), self.end - end, self.end - begin)
        return dict.fromkeys(reversed([*back]))


class ObservedStates(dict[str, ObservedState]):
    """The states of all nodes at one moment, by name; never changed after ``StateKeeper`` returned it."""

    __slots__ = ("_journal", "_position")

    def __init__(self, states: Mapping[str, ObservedState], journal: Journal) -> None:
        super().__init__(states)
        self._journal = journal
        self._position = journal.end

    def changed_since(self, before: Mapping[str, ObservedState]) -> Iterable[str] | None:
        """Returns the nodes that may differ from ``before``. None where that is not known: ``before`` is too
        old, newer than this, or of another keeper."""
        if not isinstance(before, ObservedStates) or before._journal is not self._journal:
            return None
        return self._journal.between(before._position, self._position)


@dataclass(slots=True)
class StateKeeper:
    """Keeps the states of all nodes. Only states of nodes that have changed are made anew."""

    unavailable: Mapping[str, datetime] = field(default_factory=dict)
    """Node name -> the last sign of its plugin, for unavailable plugins."""
    _journal: Journal = field(default_factory=Journal)
    _states: ObservedStates = field(init=False)
    _plugins: dict[str, dict[str, PodObject]] = field(default_factory=dict)
    """Node name -> pod name -> pod of a plugin on that node."""
    _changed: dict[str, None] = field(default_factory=dict)
    """Names of nodes, in the order of their changes."""

    def __post_init__(self) -> None:
        self._states = ObservedStates({}, self._journal)

    def note(self, names: Iterable[str]) -> None:
        """The Node or GPUShareNode of these names has changed."""
        self._changed.update(dict.fromkeys(names))

    def note_unavailable(self, unavailable: Mapping[str, datetime]) -> None:
        """``unavailable``: all plugins of which this is true now."""
        differing = unavailable.items() ^ self.unavailable.items()
        self.unavailable = unavailable
        self.note(sorted({name for name, _ in differing}))

    def note_pod(self, old: PodObject | None, new: PodObject | None) -> None:
        """A pod was ``old`` and is ``new`` now; None: there is none."""
        for pod in (pod for pod in (old, new) if pod and _is_plugin(pod)):
            self._changed[pod.node] = None
            self._plugins.setdefault(pod.node, {}).pop(pod.name, None)
        if new and _is_plugin(new):
            self._plugins[new.node][new.name] = new

    def hand_out(
        self, nodes: Mapping[str, NodeObject], shares: Mapping[str, ShareNodeObject]
    ) -> Mapping[str, ObservedState]:
        """Returns the states of now; the mapping is never changed afterwards."""
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
