"""Plugins, and the labels that select their nodes: what is left of a policy's, and what takes it away."""

from collections.abc import Iterator

from gpushare_operator.actions import Action, ClearCapacity, LabelNode
from gpushare_operator.backends.teardown_step import (
    Leftover,
    Situation,
    delete_daemon_set,
    leftovers,
    ready_nodes,
)
from gpushare_operator.cluster.objects import POLICY_LABELS, NodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.nodes.dialect_names import own_names, recorded_dialect
from gpushare_operator.desired.names import plugin_name


def plugins_and_labels(snapshot: ClusterSnapshot, policy: str) -> list[Leftover]:
    daemon_set = plugin_name(policy)
    states = snapshot.states.values()
    running_on = [state.name for state in states if any(pod.policy == policy for pod in state.plugins)]
    return [
        *leftovers("DaemonSet", [daemon_set] if daemon_set in snapshot.daemon_sets else []),
        *leftovers("the plugin on", ready_nodes(snapshot, running_on)),
        *leftovers("labels on", (node.name for node in snapshot.labelled_nodes(policy))),
    ]


def remove_plugins_and_labels(situation: Situation) -> Iterator[Action]:
    """The labels of mode and dialect stay until the node's capacity is as before: they say under which names
    it shared its cards.

    Numbers of cards go first: as soon as the label is gone, the plugin of the replaced system may come back,
    and writes its number only once.
    """
    nodes = situation.snapshot.labelled_nodes(situation.policy)
    yield from delete_daemon_set(situation.snapshot, plugin_name(situation.policy))
    for node in nodes:
        yield from clear_counts(node)
    yield from (remove_own_labels(node, situation.policy) for node in nodes)


def clear_counts(node: NodeObject) -> Iterator[ClearCapacity]:
    if counts := tuple(name for name in own_names(node) if name in node.counts):
        yield ClearCapacity(node.name, node.uid, counts)


def remove_own_labels(node: NodeObject, policy: str) -> LabelNode:
    named = [key for key in sorted(POLICY_LABELS) if node.labels.get(key) == policy]
    labels = dict.fromkeys((*named, *sorted(node.own_labels)))
    ours = {recorded_dialect(node).closed_cards_annotation} & node.closed_cards.keys()
    return LabelNode(node.name, node.uid, labels, dict.fromkeys(sorted(ours)))
