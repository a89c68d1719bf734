"""Nodes to which a pod may not go: taints, selectors, affinity, cordoned nodes, isolation not to be had."""

from collections.abc import Iterator, Mapping

from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.scheduling.node_rules import NodeObstacle, PlacementRule, obstacles
from gpushare_cli.decide.scheduling.written_pod import WrittenAffinity, written_pod
from gpushare_cli.decide.why.causes.policy import named_node
from gpushare_cli.decide.why.finding import Finding, noted
from gpushare_cli.decide.why.nearest import fitting_nodes
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.wording import counted, listed
from gpushare_core.api.names import ISOLATION_READY
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


def isolation_unavailable(situation: PodSituation) -> Iterator[Finding]:
    """Nodes that the pod may go to, and whose cards are closed for it: those of a policy together."""
    by_policy: dict[tuple[str, str], list[str]] = {}
    for name, node in situation.unable_nodes.items():
        by_policy.setdefault((node.spec.isolation.memory, node.spec.policy), []).append(name)
    for (asked, policy), names in by_policy.items():
        ready = situation.unable_nodes[names[0]].condition(ISOLATION_READY)
        takes = "takes" if len(names) == 1 else "take"
        yield Finding(
            code="IsolationUnavailable",
            sentence=f"{listed(names)} cannot have the isolation {asked} that policy {policy} asks for, and"
            f" {takes} no new pods.",
            nodes=len(names),
            advice=[
                *([f"{names[0]}: {ready.message}"] if ready and ready.message else []),
                f"kubectl describe gpusharenode {names[0]}",
            ],
            is_decisive=not fitting_nodes(situation),
        )


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
    return Finding(
        code=f"NodesBy{obstacle.rule}",
        sentence=_SENTENCES[obstacle.rule].format(text=obstacle.text, where=where),
        nodes=len(names),
        advice=[
            *_advice(situation, obstacle, sorted(names, key=lambda name: name not in with_room)),
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


def _advice(situation: PodSituation, obstacle: NodeObstacle, names: list[str]) -> list[str]:
    if obstacle.rule is PlacementRule.CORDON:
        return [f"kubectl uncordon {names[0]}"]
    if obstacle.rule is not PlacementRule.TAINT:
        return _label_advice(situation, obstacle.key, names)
    if obstacle.key.startswith(KUBERNETES_TAINTS):
        return [f"kubectl describe node {names[0]}"]
    effect = obstacle.text.rpartition(":")[2]
    toleration = f"{{key: {obstacle.key}, operator: Exists, effect: {effect}}}"
    return [
        f"If the pod may go there, give it the toleration {toleration}.",
        f"kubectl taint nodes {names[0]} {obstacle.text}-",
    ]


def _label_advice(situation: PodSituation, key: str, names: list[str]) -> list[str]:
    if not key:
        return ["kubectl get nodes --show-labels"]
    known = situation.cluster.nodes or {}
    have = sorted({f"{key}={value}" for name in names if (value := _label(known[name], key))})
    missing = f"No node with cards has the label {key}: remove it from the pod, or label the node."
    return [f"Nodes with cards have {listed(have)}." if have else missing, f"kubectl get nodes -L {key}"]


def _label(node: KubeNode, key: str) -> str:
    return (node.metadata.labels or {}).get(key, "")


_SENTENCES = {
    PlacementRule.CORDON: "kubectl cordon keeps new pods off {where}.",
    PlacementRule.TAINT: "Taint {text} keeps the pod off {where}.",
    PlacementRule.SELECTOR: "The pod's nodeSelector asks for {text}, which leaves out {where}.",
    PlacementRule.AFFINITY: "The pod's node affinity requires {text}, which leaves out {where}.",
}


def not_computed(situation: PodSituation) -> Iterator[Finding]:
    """Rules among pods, which only kube-scheduler knows."""
    spec = written_pod(situation.pod).spec
    affinity = spec.affinity or WrittenAffinity()
    spreads = spec.topology_spread_constraints or ()
    ports = (port for container in spec.all_containers for port in container.ports or ())
    asked = {
        "a topologySpreadConstraint with DoNotSchedule": any(
            each.when_unsatisfiable != "ScheduleAnyway" for each in spreads
        ),
        "podAffinity": affinity.pod_affinity and affinity.pod_affinity.required,
        "podAntiAffinity": affinity.pod_anti_affinity and affinity.pod_anti_affinity.required,
        "a hostPort": any(port.host_port for port in ports),
    }
    rules = [rule for rule, is_there in asked.items() if is_there]
    if rules:
        yield noted(
            "NotComputed",
            f"The pod has {listed(rules)}. This command does not check which nodes that leaves.",
            "See kube-scheduler's own Event of the pod.",
        )
