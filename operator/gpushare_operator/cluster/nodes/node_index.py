"""What pure functions of one node's state return, kept node by node.

A cluster has thousands of nodes, and one of them changes. Such a function is called again only for a node
whose state has changed. What it returned for all nodes is kept as sums, as results of the few special nodes,
and as the names of nodes that share a result.
"""

import logging
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from gpushare_operator.cluster.nodes.observed_states import ObservedState, ObservedStates

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Entry(Generic[R_co]):
    """What one node adds to an index."""

    result: R_co | None = None
    """None where there is nothing to say about the node."""
    amounts: Mapping[Hashable, int] = field(default_factory=dict)
    """What the node adds to the sums."""
    common: Hashable | None = None
    """In place of ``result``: one that thousands of nodes may share."""


class NodeFunction(Protocol[R_co]):
    """Equal functions return the same for the same state."""

    def __call__(self, state: ObservedState) -> Entry[R_co]: ...


NOTHING: Entry[Any] = Entry()


@dataclass(slots=True)
class NodeIndex(Generic[R]):
    """What ``function`` returned for all nodes."""

    function: NodeFunction[R]
    results: dict[str, R] = field(default_factory=dict)
    """By node name; nodes without a result are left out."""
    groups: dict[Any, dict[str, None]] = field(default_factory=dict)
    """Common result -> names of its nodes."""
    sums: dict[Hashable, int] = field(default_factory=dict)
    """Sums that are 0 are left out."""
    defects: dict[str, str] = field(default_factory=dict)
    """Node name -> the exception that ``function`` raised: a defect. Nothing is known of such a node."""
    _states: Mapping[str, ObservedState] = field(default_factory=dict)
    _entries: dict[str, Entry[R]] = field(default_factory=dict)

    def update(self, states: Mapping[str, ObservedState]) -> None:
        """Calls ``function`` for the nodes whose state has changed since the last update."""
        if states is self._states:
            return
        before = self._states
        for name in _changed(before, states):
            state = states.get(name)
            if state is None:
                self.defects.pop(name, None)
                self._replace(name, None)
            elif before.get(name) is not state:
                self._replace(name, self._call(state))
        self._states = states

    def _call(self, state: ObservedState) -> Entry[R]:
        """A defect at one node must not keep the others from being planned."""
        self.defects.pop(state.name, None)
        try:
            return self.function(state)
        except Exception as error:
            _log.exception("cannot evaluate node %s", state.name)
            self.defects[state.name] = repr(error)
            return NOTHING

    def _replace(self, name: str, new: Entry[R] | None) -> None:
        old = self._entries.pop(name, NOTHING)
        self.results.pop(name, None)
        _add(self.sums, old.amounts, sign=-1)
        self._leave(name, old.common)
        if new is None:
            return
        self._entries[name] = new
        _add(self.sums, new.amounts, sign=1)
        if new.result is not None:
            self.results[name] = new.result
        if new.common is not None:
            self.groups.setdefault(new.common, {})[name] = None

    def _leave(self, name: str, group: Hashable | None) -> None:
        if group is None:
            return
        self.groups[group].pop(name)
        if not self.groups[group]:
            del self.groups[group]


def _changed(before: Mapping[str, ObservedState], states: Mapping[str, ObservedState]) -> Iterable[str]:
    """Returns the nodes whose state may have changed. All nodes are compared only where the journal does not
    know."""
    known = states.changed_since(before) if isinstance(states, ObservedStates) else None
    if known is not None:
        return known
    return [
        *(name for name, state in states.items() if before.get(name) is not state),
        *(before.keys() - states),
    ]


def _add(sums: dict[Hashable, int], amounts: Mapping[Hashable, int], *, sign: int) -> None:
    for key, amount in amounts.items():
        if total := sums.get(key, 0) + sign * amount:
            sums[key] = total
        else:
            sums.pop(key, None)


@dataclass(slots=True)
class NodeIndexes:
    """The indexes in use. An index begins anew when its function is no longer equal to the one before."""

    _indexes: dict[tuple[type, str], NodeIndex[Any]] = field(default_factory=dict)

    def find(
        self, function: NodeFunction[R], states: Mapping[str, ObservedState], *, subject: str = ""
    ) -> NodeIndex[R]:
        """Returns the index of ``states``, which is right until the next call.

        ``subject`` tells apart functions of one type.
        """
        key = (type(function), subject)
        index = self._indexes.get(key)
        if index is None or index.function != function:
            index = self._indexes[key] = NodeIndex(function)
        index.update(states)
        return index

    def forget(self, subject: str) -> None:
        for key in [key for key in self._indexes if key[1] == subject]:
            del self._indexes[key]
