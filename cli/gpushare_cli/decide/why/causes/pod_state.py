"""Pods that nobody is to place now: gated, being deleted; pods in the place of others that were evicted."""

from collections.abc import Iterator

from gpushare_cli.decide.scheduling.written_pod import written_pod
from gpushare_cli.decide.why.evictions import eviction_sentences
from gpushare_cli.decide.why.finding import Finding, decisive, noted
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.wording import listed

KUEUE = "kueue.x-k8s.io/"


def gated(situation: PodSituation) -> Iterator[Finding]:
    gates = [gate.name for gate in written_pod(situation.pod).spec.scheduling_gates or ()]
    if gates:
        is_kueue = any(gate.startswith(KUEUE) for gate in gates)
        yield decisive(
            "Gated",
            f"The pod has the scheduling gate {listed(gates)}: until it is gone no scheduler looks at it.",
            *(["kubectl get workloads -A"] if is_kueue else ["Whoever added it has to remove it."]),
        )


def being_deleted(situation: PodSituation) -> Iterator[Finding]:
    meta = written_pod(situation.pod).metadata
    if meta.deletion_timestamp:
        until = (
            f"finalizer {listed(meta.finalizers)} is removed"
            if meta.finalizers
            else "its kubelet has ended it"
        )
        yield decisive(
            "BeingDeleted",
            f"The pod is being deleted: it is no longer placed, and stays until {until}.",
            "Create it again.",
        )


def evicted_before(situation: PodSituation) -> Iterator[Finding]:
    """Another pod of the same Deployment, Job or StatefulSet that was evicted lately."""
    for sentence in eviction_sentences(situation):
        yield noted(
            "EvictedBefore", sentence, "Ask for more in its containers, or limit what their programs use."
        )
