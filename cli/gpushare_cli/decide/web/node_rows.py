"""The rows of nodes, computed anew only for nodes of which something changed."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from gpushare_cli.decide.inspection.cluster_reading import ClusterReading
from gpushare_cli.decide.inspection.node_reader import shared_nodes
from gpushare_cli.decide.web.groups import groups_of
from gpushare_cli.decide.web.page_node import page_node
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


def _made(reading: PageReading, sources: Mapping[str, RowSource], names: Sequence[str]) -> dict[str, PageRow]:
    """As few nodes at a time as keep memory small: each is many times as large as its row."""
    rows: dict[str, PageRow] = {}
    for begin in range(0, len(names), NODES_AT_ONCE):
        some = [reading.nodes[name] for name in names[begin : begin + NODES_AT_ONCE]]
        for node in shared_nodes(replace(reading.cluster, share_nodes=some)):
            source = sources[node.name]
            rows[node.name] = PageRow(source, msgspec.json.encode(page_node(node, dict(source.groups))))
    return rows
