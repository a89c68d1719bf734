"""Pods that the API server does not create."""

from collections.abc import Iterator

from gpushare_cli.decide.why.finding import Finding
from gpushare_cli.decide.why.situation import PodSituation

OUR_POLICY = " denied request: "
"""Stands before the message of an admission policy."""


def refused(situation: PodSituation) -> Iterator[Finding]:
    """In its own words. Other causes say what to do."""
    if refusal := situation.cluster.refusal:
        _, _, ours = refusal.partition(OUR_POLICY)
        yield Finding(
            code="Refused",
            sentence=f"The API server refuses the pod: {_whole(ours or refusal)}",
            is_decisive=True,
        )


def _whole(message: str) -> str:
    return message if message.endswith(".") else f"{message}."


def node_by_hand(situation: PodSituation) -> Iterator[Finding]:
    if node := situation.cluster.written_node:
        yield Finding(
            code="NodeByHand",
            sentence=(
                f"The pod has spec.nodeName: {node}. So no scheduler is asked: where no card has room its kubelet"
                " refuses the pod, which has failed then."
            ),
            advice=[
                f"Write nodeSelector: {{kubernetes.io/hostname: {node}}} instead: then it waits for room."
            ],
        )
