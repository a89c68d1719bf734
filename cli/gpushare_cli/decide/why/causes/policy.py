"""Policies that share nothing yet, or not the nodes that a pod may go to."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from gpushare_cli.decide.objects.policy import ObservedPolicy
from gpushare_cli.decide.scheduling.node_rules import HOSTNAME, NODE_NAME
from gpushare_cli.decide.scheduling.written_pod import NodeTerm, written_pod
from gpushare_cli.decide.why.finding import Finding, decisive, noted
from gpushare_cli.decide.why.situation import SHARE_NODES_NAME, PodSituation
from gpushare_cli.wording import listed
from gpushare_core.api.enums import Mode
from gpushare_core.api.names import UNIT_CHANGE_BLOCKED

READY, NODES_READY, SCHEDULER_CONFIGURED = "Ready", "NodesReady", "SchedulerConfigured"


def missing_policy(situation: PodSituation) -> Iterator[Finding]:
    cluster = situation.cluster
    if not cluster.is_installed:
        yield decisive(
            "NotInstalled",
            "Gpushare is not installed in this cluster: its API server knows no GPUSharePolicy.",
            "kubectl apply -k manifests/",
            "docs/install.md says what that does.",
        )
    elif cluster.policies is not None and not cluster.policies:
        yield decisive(
            "NoPolicy",
            "There is no GPUSharePolicy, so no node shares its cards.",
            "Apply one that names the nodes with cards; docs/policy.md has its fields.",
            "kubectl explain gpusharepolicy.spec",
        )


def policies_not_ready(situation: PodSituation) -> Iterator[Finding]:
    """In their own words. Decisive where no node shares its cards at all."""
    for policy in situation.cluster.policies or ():
        ready = policy.condition(READY)
        if policy.metadata.deletion_timestamp:
            yield _being_deleted(situation, policy)
        elif ready is None or not policy.is_seen:
            yield _not_seen(situation, policy)
        elif ready.status != "True":
            yield Finding(
                code="PolicyNotReady",
                sentence=f"Policy {policy.name} is not Ready ({ready.reason}): {_sentence(ready.message)}",
                advice=[f"kubectl describe gpusharepolicy {policy.name}"],
                is_decisive=situation.shares_nothing,
            )


def _sentence(message: str) -> str:
    return message if message.endswith(".") else f"{message}."


def _being_deleted(situation: PodSituation, policy: ObservedPolicy) -> Finding:
    return Finding(
        code="PolicyDeleted",
        sentence=f"Policy {policy.name} is being deleted: its nodes take no new pods that ask for cards.",
        advice=[f"kubectl describe gpusharepolicy {policy.name}"],
        is_decisive=len(situation.cluster.policies or ()) == 1,
    )


def _not_seen(situation: PodSituation, policy: ObservedPolicy) -> Finding:
    operator = situation.cluster.program("operator")
    why = ""
    if situation.cluster.programs is not None and (operator is None or not operator.ready):
        why = ": no operator runs" if operator else ": there is no Deployment of the operator"
    return Finding(
        code="PolicyNotSeen",
        sentence=f"The operator has not looked at policy {policy.name} as it is now{why}.",
        advice=["kubectl get pods -A -l app.kubernetes.io/component=operator"],
        is_decisive=situation.shares_nothing,
    )


def nodes_off(situation: PodSituation) -> Iterator[Finding]:
    """Nodes that the pod names, or all of a policy, which are Off there."""
    for policy in situation.cluster.policies or ():
        rules = policy.spec.nodes or []
        if rules and all(rule.mode == Mode.OFF for rule in rules):
            yield Finding(
                code="PolicyOff",
                sentence=f"Policy {policy.name} shares no node: all entries of its spec.nodes have mode Off.",
                advice=[
                    f"kubectl edit gpusharepolicy {policy.name}",
                    "Write another mode there, such as Memory.",
                ],
                is_decisive=situation.shares_nothing,
            )
    name = named_node(situation)
    if name and name not in situation.share_nodes and SHARE_NODES_NAME not in situation.unread:
        yield from _not_shared(situation, name)


def named_node(situation: PodSituation) -> str:
    """Returns the node that the pod asks for by its name; empty where it asks for none."""
    spec = written_pod(situation.pod).spec
    selected = (spec.node_selector or {}).get(HOSTNAME, "")
    return situation.cluster.written_node or selected or next(_required_names(spec.terms or ()), "")


def _required_names(terms: Sequence[NodeTerm]) -> Iterator[str]:
    """Yields the node that an affinity requires by its name, as that of a DaemonSet's pod does."""
    for term in terms if len(terms) == 1 else ():
        for asked in (*(term.match_fields or ()), *(term.match_expressions or ())):
            if asked.key in (NODE_NAME, HOSTNAME) and asked.operator == "In" and len(asked.values or ()) == 1:
                yield from asked.values or ()


def _not_shared(situation: PodSituation, name: str) -> Iterator[Finding]:
    if situation.cluster.nodes is None:
        return
    node = situation.cluster.nodes.get(name)
    if node is None:
        alike = get_close_matches(name, situation.cluster.nodes, n=1)
        yield decisive(
            "NodeMissing",
            f"The pod asks for node {name}, and there is no node of that name.",
            *(f"Do you mean {other}?" for other in alike),
            "kubectl get nodes",
        )
        return
    policies = situation.cluster.policies or ()
    off = [policy.name for policy in policies if _is_off(policy, name, node.metadata.labels or {})]
    how = f"it is Off in policy {listed(off)}" if off else "no policy selects it"
    shared = listed(sorted(situation.share_nodes))
    yield decisive(
        "NodeOff" if off else "NodeNotShared",
        f"Node {name} shares no cards: {how}.",
        f"Select another node, of those that share their cards: {shared}."
        if shared
        else "Add the node to a policy.",
    )


def _is_off(policy: ObservedPolicy, name: str, labels: dict[str, str]) -> bool:
    """Of selectors only the labels are compared, and a rule with expressions does not count."""
    for rule in policy.spec.nodes or ():
        selector = rule.selector
        if selector and selector.match_expressions:
            return False
        asked = (selector.match_labels if selector else None) or {}
        matches = name in rule.names if rule.names is not None else asked.items() <= labels.items()
        if matches:
            return rule.mode == Mode.OFF
    return False


def unit_changes(situation: PodSituation) -> Iterator[Finding]:
    """Nodes that wait until pods are gone that hold units of the former size."""
    blocked = {
        node.name: condition.message
        for node in situation.share_nodes.values()
        if (condition := node.condition(UNIT_CHANGE_BLOCKED)) and condition.status == "True"
    }
    if blocked:
        first = min(blocked)
        verb = "waits" if len(blocked) == 1 else "wait"
        yield noted(
            "UnitChangeWaits",
            (
                f"{listed(sorted(blocked))} {verb} for another unit or mode. {first}:"
                f" {_sentence(blocked[first])}"
            ),
            "Delete or evict the pods that it names, or write the former unit into the policy again.",
            nodes=len(blocked),
        )


def scheduler_not_connected(situation: PodSituation) -> Iterator[Finding]:
    for policy in situation.cluster.policies or ():
        connected = policy.condition(SCHEDULER_CONFIGURED)
        is_worth_saying = connected is not None and connected.status != "True" and situation.share_nodes
        if connected and is_worth_saying:
            yield noted(
                "SchedulerNotConnected",
                (
                    f"The scheduler of policy {policy.name} is not connected ({connected.reason}):"
                    f" {_sentence(connected.message)}"
                ),
                "docs/scheduler-backends.md says what each backend needs.",
            )
            return
