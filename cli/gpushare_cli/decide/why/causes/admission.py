"""Pods that the API server does not create."""

from collections.abc import Iterator

from gpushare_cli.decide.why.finding import Finding, decisive, noted
from gpushare_cli.decide.why.situation import PodSituation

REFUSES = "The API server refuses the pod: "
OUR_POLICY = " denied request: "
"""Stands before the message of an admission policy."""


def refused(situation: PodSituation) -> Iterator[Finding]:
    """In its own words. Other causes say what to do."""
    if refusal := situation.cluster.refusal:
        _, _, ours = refusal.partition(OUR_POLICY)
        yield decisive(
            "Refused", f"{REFUSES}{_whole(ours or refusal)}", *_advice(refusal, situation.namespace)
        )


_ADVICE = (
    (
        'unknown field "spec.resources',
        ["Write resources into the container: spec.containers[].resources.limits."],
    ),
    ("spec.resources.", ["Write it into the container: spec.containers[].resources.limits."]),
    ('unknown field "spec.containers', ["kubectl explain pod.spec.containers --recursive"]),
    ("unknown field", ["kubectl explain pod.spec --recursive"]),
    ("no PriorityClass", ["kubectl get priorityclasses"]),
    ("serviceaccount", ["kubectl get serviceaccounts -n {namespace}"]),
    ("RuntimeClass", ["kubectl get runtimeclasses"]),
    ("exceeded quota", ["kubectl describe quota -n {namespace}"]),
    ("PodSecurity", ["kubectl get namespace {namespace} --show-labels"]),
    ("namespaces ", ["kubectl get namespaces"]),
)
"""Part of a refusal -> what to do about it; the first that is there."""


def _advice(refusal: str, namespace: str) -> list[str]:
    advice = next((advice for part, advice in _ADVICE if part in refusal), [])
    return [line.replace("{namespace}", namespace) for line in advice]


def _whole(message: str) -> str:
    return message if message.endswith(".") else f"{message}."


def node_by_hand(situation: PodSituation) -> Iterator[Finding]:
    node = situation.cluster.written_node
    if node in situation.share_nodes:
        yield noted(
            "NodeByHand",
            (
                f"The pod has spec.nodeName: {node}, which bypasses the scheduler: if no card there has room,"
                " the kubelet refuses the pod, and it fails."
            ),
            f"Write nodeSelector: {{kubernetes.io/hostname: {node}}} instead: then it waits for room.",
        )
