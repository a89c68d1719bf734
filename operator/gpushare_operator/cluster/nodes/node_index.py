"""What pure functions find in the states of nodes, kept node by node.

A cluster has thousands of nodes, and one of them changes. A function that looks at the state of one node, and
at nothing else that may change, is asked again only for a node whose state is another one; what it says of
all nodes together is kept as sums, as results of the few that are in some way special, and as the names of
those of which the same is to be said.
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
    """None for a node of which there is nothing to say."""
    amounts: Mapping[Hashable, int] = field(default_factory=dict)
    """What it adds to the sums."""
    common: Hashable | None = None
    """A result that thousands of nodes may have in common, in place of one of its own."""


class NodeFunction(Protocol[R_co]):
    """Looks at one node. Equal looks say the same of the same state."""

    def __call__(self, state: ObservedState) -> Entry[R_co]: ...


NOTHING: Entry[Any] = Entry()


@dataclass(slots=True)
class NodeIndex(Generic[R]):
    """What ``function`` says of all nodes."""

    function: NodeFunction[R]
    results: dict[str, R] = field(default_factory=dict)
    """Node name -> what is to be said of it, of those of which there is something."""
    groups: dict[Any, dict[str, None]] = field(default_factory=dict)
    """What several nodes have in common -> their names."""
    sums: dict[Hashable, int] = field(default_factory=dict)
    """Without those that are 0."""
    defects: dict[str, str] = field(default_factory=dict)
    """Node name -> how the look at it failed: a defect of ours. Of such a node nothing is known."""
    _states: Mapping[str, ObservedState] = field(default_factory=dict)
    _entries: dict[str, Entry[R]] = field(default_factory=dict)

    def update(self, states: Mapping[str, ObservedState]) -> None:
        """Looks at those nodes whose state is not the one that was looked at last."""
        if states is self._states:
            return
        before = self._states
        for name in _changed(before, states):
            state = states.get(name)
            if state is None:
                self.defects.pop(name, None)
                self._replace(name, None)
            elif before.get(name) is not state:
                self._replace(name, self._ask(state))
        self._states = states

    def _ask(self, state: ObservedState) -> Entry[R]:
        """A defect at one node must not keep the others from what is due to them."""
        self.defects.pop(state.name, None)
        try:
            return self.function(state)
        except Exception as error:
            _log.exception("cannot say anything about node %s", state.name)
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
    """Returns the nodes whose state may be another one. One node changes and thousands do not: they are
    compared only where nobody has kept which."""
    known = states.changed_since(before) if isinstance(states, ObservedStates) else None
    if known is not None:
        return known
    return [
        *(name for name, each in states.items() if before.get(name) is not each),
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
    """The indexes that are in use. One is begun anew when its look is another one."""

    _indexes: dict[tuple[type, str], NodeIndex[Any]] = field(default_factory=dict)

    def find(
        self, function: NodeFunction[R], states: Mapping[str, ObservedState], *, subject: str = ""
    ) -> NodeIndex[R]:
        """Returns what ``function`` says of ``states``; ``subject`` tells apart looks of one type. It is right
        until the next call."""
        key = (type(function), subject)
        index = self._indexes.get(key)
        if index is None or index.function != function:
            index = self._indexes[key] = NodeIndex(function)
        index.update(states)
        return index

    def forget(self, subject: str) -> None:
        """Nobody asks about it any more."""
        for key in [key for key in self._indexes if key[1] == subject]:
            del self._indexes[key]
