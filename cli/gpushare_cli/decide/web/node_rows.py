"""The rows of nodes, computed anew only for nodes of which something changed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from gpushare_cli.decide.inspection.cluster_reading import ClusterReading
from gpushare_cli.decide.inspection.node_reader import shared_nodes
from gpushare_cli.decide.inspection.shared_node import UNREADABLE, SharedNode
from gpushare_cli.decide.web.groups import groups_of
from gpushare_cli.decide.web.page_node import page_node
from gpushare_cli.wording import listed
from gpushare_core.scheduling.objects.holder import PodUpdate

NODES_AT_ONCE = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReading:
    """What the rows follow from. ``share_nodes`` of ``cluster`` are those of ``nodes``."""

    cluster: ClusterReading
    nodes: Mapping[str, msgspec.Raw]
    """GPUShareNodes, by name."""
    labels: Mapping[str, Mapping[str, str]]
    """Of Nodes, by name."""
    group_labels: Collection[str] = ()


class RowSource(NamedTuple):
    """All that a row follows from."""

    share_node: msgspec.Raw
    bound: tuple[PodUpdate, ...]
    starting: frozenset[str]
    is_unschedulable: bool
    groups: tuple[tuple[str, str], ...]


class PageRow(NamedTuple):
    source: RowSource
    text: bytes
    """JSON of a ``PageNode``."""
    unread: str = ""
    """Why its cards are not shown; empty: they are."""


def node_rows(reading: PageReading, before: Mapping[str, PageRow]) -> dict[str, PageRow]:
    """Returns the row of each node; those of ``before`` where nothing that they follow from changed."""
    sources = _sources(reading)
    changed = [
        name for name, source in sources.items() if name not in before or before[name].source != source
    ]
    return {name: before[name] for name in sources if name in before} | _made(reading, sources, changed)


def _sources(reading: PageReading) -> dict[str, RowSource]:
    bound, starting = reading.cluster.bound_pods(), reading.cluster.starting_pods()
    return {
        name: RowSource(
            share_node=raw,
            bound=(pods := tuple(bound.get(name, ()))),
            starting=starting.intersection(pod.uid for pod in pods),
            is_unschedulable=name in reading.cluster.unschedulable_nodes,
            groups=tuple(groups_of(reading.labels.get(name, {}), reading.group_labels).items()),
        )
        for name, raw in reading.nodes.items()
    }


def unread_rows(rows: Mapping[str, PageRow]) -> list[str]:
    """Returns a sentence about the nodes whose cards are not shown; none where all are."""
    names = sorted(name for name, row in rows.items() if row.unread)
    if not names:
        return []
    some = "the cards of one node are" if len(names) == 1 else f"the cards of {len(names):,} nodes are"
    return [f"{some.capitalize()} not shown, {listed(names)}: {rows[names[0]].unread}"]


def _unread(node: SharedNode) -> str:
    return next((f"{one.message}. {one.advice}" for one in node.problems if one.reason == UNREADABLE), "")


def _made(reading: PageReading, sources: Mapping[str, RowSource], names: Sequence[str]) -> dict[str, PageRow]:
    """As few nodes at a time as keep memory small: each is many times as large as its row."""
    rows: dict[str, PageRow] = {}
    for begin in range(0, len(names), NODES_AT_ONCE):
        some = [reading.nodes[name] for name in names[begin : begin + NODES_AT_ONCE]]
        for node in shared_nodes(replace(reading.cluster, share_nodes=some)):
            source = sources[node.name]
            text = msgspec.json.encode(page_node(node, dict(source.groups)))
            rows[node.name] = PageRow(source, text, _unread(node))
    return rows
