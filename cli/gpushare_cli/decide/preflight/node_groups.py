"""Nodes by what they have in common, in words that stay short in a cluster of thousands."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.objects import PreflightNode
from gpushare_cli.wording import counted, listed
from gpushare_core.api.conditions import UNKNOWN

MAX_GROUPS = 4
MAX_NAME = 20
"""Characters of a node's name among values; those of clouds have 40 and more."""


def grouped_nodes(
    nodes: Iterable[PreflightNode], value: Callable[[PreflightNode], str]
) -> Mapping[str, Sequence[str]]:
    """Returns value -> names of its nodes, the most frequent value first."""
    groups: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        groups[value(node) or UNKNOWN].append(node.name)
    return dict(sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])))


def groups_text(groups: Mapping[str, Sequence[str]], *, rest: int = 0) -> str:
    """``rest``: nodes of which nothing is known.

    >>> groups_text({"v1.36.3": ["a", "b", "c"], "v1.35.1": ["d"]})
    'v1.36.3 on 3 nodes, v1.35.1 on d'
    >>> groups_text({"v1.36.3": ["a", "b"]})
    'v1.36.3 on all 2 nodes'
    >>> groups_text({"version 2": ["a", "b"]}, rest=5)
    'version 2 on 2 nodes; unknown on 5 others'
    """
    if len(groups) == 1 and not rest:
        ((value, names),) = groups.items()
        return f"{value} on {_some(names, all_of='all ')}"
    parts = [f"{value} on {_some(names)}" for value, names in groups.items()]
    more = f" and {counted(len(parts) - MAX_GROUPS, 'other')}" if len(parts) > MAX_GROUPS else ""
    return ", ".join(parts[:MAX_GROUPS]) + more + (f"; unknown on {counted(rest, 'other')}" if rest else "")


def known_answer(found: str, silent: Sequence[str]) -> PreflightAnswer:
    """``silent``: nodes whose kubelet has not said it yet."""
    if not silent:
        return PreflightAnswer(verdict=Verdict.OK, found=found)
    return PreflightAnswer(
        verdict=Verdict.UNKNOWN,
        found=found,
        to_do=f"The kubelet of {places(silent)} has not said it: see whether it has ever run.",
        command=f"kubectl describe node {silent[0]}",
        nodes=tuple(sorted(silent)),
    )


def places(names: Sequence[str]) -> str:
    """
    >>> places(["gpu-1"]), places(["a", "b", "c", "d"])
    ('gpu-1', '4 nodes (a, b, c and 1 more)')
    """
    return names[0] if len(names) == 1 else f"{counted(len(names), 'node')} ({listed(names)})"


def _some(names: Sequence[str], *, all_of: str = "") -> str:
    if len(names) == 1:
        return names[0] if len(names[0]) <= MAX_NAME else "1 node"
    return f"{all_of}{counted(len(names), 'node')}"
