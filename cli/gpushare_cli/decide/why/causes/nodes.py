"""Nodes to which a pod may not go: taints, selectors, affinity, cordoned nodes."""

from collections.abc import Iterator, Mapping

from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.scheduling.node_rules import NodeObstacle, PlacementRule, obstacles
from gpushare_cli.decide.scheduling.written_pod import written_pod
from gpushare_cli.decide.why.causes.policy import named_node
from gpushare_cli.decide.why.finding import Finding, noted
from gpushare_cli.decide.why.nearest import fitting_nodes
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.wording import counted, listed
from gpushare_core.scheduling.ledger.fit_index import Fit

NO_ROOM = "That alone does not help: none of these nodes has room for it on its cards now."
KUBERNETES_TAINTS = "node.kubernetes.io/"
"""Begins the keys of taints that say what is wrong with a node."""


def nodes_kept_from(situation: PodSituation) -> Iterator[Finding]:
    """A finding for each rule. They are decisive together where no node with cards is left."""
    sharing = _sharing(situation)
    spec = written_pod(situation.pod).spec
    kept: dict[NodeObstacle, list[str]] = {}
    for name, node in sharing.items():
        for obstacle in obstacles(spec, node):
            kept.setdefault(obstacle, []).append(name)
    is_decisive = bool(sharing) and not situation.allowed_nodes
    if kept and not fitting_nodes(situation):
        for obstacle, names in sorted(kept.items(), key=lambda item: -len(item[1])):
            yield _finding(situation, obstacle, names, sharing, is_decisive=is_decisive)


def _sharing(situation: PodSituation) -> dict[str, KubeNode]:
    """Returns the nodes with cards; of a pod that asks for a node by its name that one alone."""
    known, named = situation.cluster.nodes or {}, named_node(situation)
    names = [name for name in situation.ledger.node_names() if not named or name == named]
    return {name: known[name] for name in names if name in known}


def _finding(
    situation: PodSituation,
    obstacle: NodeObstacle,
    names: list[str],
    sharing: Mapping[str, KubeNode],
    *,
    is_decisive: bool,
) -> Finding:
    named, with_room = named_node(situation), _with_room(situation, names)
    where = f"node {named}, which it asks for" if named else _where(names, len(sharing))
    say, advise = _WORDS[obstacle.rule]
    return Finding(
        code=f"NodesBy{obstacle.rule}",
        sentence=say(obstacle, where),
        nodes=len(names),
        advice=[
            *advise(situation, obstacle, sorted(names, key=lambda name: name not in with_room)),
            *([] if with_room or not situation.request.resources else [NO_ROOM]),
        ],
        is_decisive=is_decisive,
    )


def _with_room(situation: PodSituation, names: list[str]) -> list[str]:
    """Returns those whose cards fit."""
    answers = situation.ledger.answers(names, situation.request) if situation.request.resources else ()
    return [name for name, answer in zip(names, answers, strict=False) if isinstance(answer, Fit)]


def _where(names: list[str], sharing: int) -> str:
    if len(names) == sharing:
        return f"{'the only node' if sharing == 1 else f'all {sharing:,} nodes'} with cards ({listed(names)})"
    return f"{len(names):,} of {counted(sharing, 'node')} with cards ({listed(names)})"


def _say_cordon(_obstacle: NodeObstacle, where: str) -> str:
    return f"The pod does not come to {where}: cordoned by kubectl cordon."


def _advise_cordon(_situation: PodSituation, _obstacle: NodeObstacle, names: list[str]) -> list[str]:
    return [f"kubectl uncordon {names[0]}"]


def _say_taint(obstacle: NodeObstacle, where: str) -> str:
    return f"Taint {obstacle.text} keeps the pod off {where}."


def _advise_taint(_situation: PodSituation, obstacle: NodeObstacle, names: list[str]) -> list[str]:
    if obstacle.key.startswith(KUBERNETES_TAINTS):
        return [f"kubectl describe node {names[0]}"]
    effect = obstacle.text.rpartition(":")[2]
    toleration = f"{{key: {obstacle.key}, operator: Exists, effect: {effect}}}"
    return [
        f"If the pod may go there, give it the toleration {toleration}.",
        f"kubectl taint nodes {names[0]} {obstacle.text}-",
    ]


def _say_selector(obstacle: NodeObstacle, where: str) -> str:
    return f"The pod's nodeSelector asks for {obstacle.text}, which leaves out {where}."


def _say_affinity(obstacle: NodeObstacle, where: str) -> str:
    return f"The pod's node affinity requires {obstacle.text}, which leaves out {where}."


def _advise_label(situation: PodSituation, obstacle: NodeObstacle, names: list[str]) -> list[str]:
    known = situation.cluster.nodes or {}
    have = sorted({value for name in names if (value := _label(known[name], obstacle.key))})
    if obstacle.key and have:
        present = listed([f"{obstacle.key}={value}" for value in have])
        return [f"Nodes with cards have {present}.", f"kubectl get nodes -L {obstacle.key}"]
    if not obstacle.key:
        return ["kubectl get nodes --show-labels"]
    return [
        f"No node with cards has the label {obstacle.key}: take it out of the pod, or label the node.",
        f"kubectl get nodes -L {obstacle.key}",
    ]


def _label(node: KubeNode, key: str) -> str:
    return (node.metadata.labels or {}).get(key, "")


_WORDS = {
    PlacementRule.CORDON: (_say_cordon, _advise_cordon),
    PlacementRule.TAINT: (_say_taint, _advise_taint),
    PlacementRule.SELECTOR: (_say_selector, _advise_label),
    PlacementRule.AFFINITY: (_say_affinity, _advise_label),
}


def not_computed(situation: PodSituation) -> Iterator[Finding]:
    """Rules among pods, which only kube-scheduler knows."""
    spec = written_pod(situation.pod).spec
    affinity = spec.affinity
    spreads = [
        each for each in spec.topology_spread_constraints or () if each.when_unsatisfiable != "ScheduleAnyway"
    ]
    rules = [
        *(["a topologySpreadConstraint with DoNotSchedule"] if spreads else []),
        *(["podAffinity"] if affinity and affinity.pod_affinity and affinity.pod_affinity.required else []),
        *(
            ["podAntiAffinity"]
            if affinity and affinity.pod_anti_affinity and affinity.pod_anti_affinity.required
            else []
        ),
        *(["a hostPort"] if any(p.host_port for c in spec.all_containers for p in c.ports or ()) else []),
    ]
    if rules:
        yield noted(
            "NotComputed",
            f"The pod has {listed(rules)}. Whether that leaves it a node is not looked at here.",
            "kube-scheduler's own Event of the pod says it.",
        )
