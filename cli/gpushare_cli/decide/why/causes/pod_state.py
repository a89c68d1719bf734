"""Pods that nobody is to place now: gated, being deleted; or that name their node themselves."""

from collections.abc import Iterator

from gpushare_cli.decide.why.finding import Finding
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_cli.decide.why.written_pod import written_pod
from gpushare_cli.wording import listed

KUEUE = "kueue.x-k8s.io/"


def gated(situation: PodSituation) -> Iterator[Finding]:
    gates = [gate.name for gate in written_pod(situation.pod).spec.scheduling_gates or ()]
    if gates:
        whose = "Whoever put it there has to take it away"
        kueue = "Kueue takes its gate away when it admits the workload: kubectl get workloads -A shows which wait."
        yield Finding(
            code="Gated",
            sentence=f"The pod has the scheduling gate {listed(gates)}: no scheduler looks at it until that is gone.",
            advice=[
                kueue if any(gate.startswith(KUEUE) for gate in gates) else f"{whose}: spec.schedulingGates."
            ],
            is_decisive=True,
        )


def being_deleted(situation: PodSituation) -> Iterator[Finding]:
    meta = written_pod(situation.pod).metadata
    if meta.deletion_timestamp:
        held = f" until finalizer {listed(meta.finalizers)} is taken away" if meta.finalizers else ""
        yield Finding(
            code="BeingDeleted",
            sentence=f"The pod is being deleted: it is placed no more, and stays{held or ' until its kubelet has ended it'}.",
            advice=["Create it anew."],
            is_decisive=True,
        )
