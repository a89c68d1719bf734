"""Volumes that keep a pod from being placed."""

from collections.abc import Iterator

from gpushare_cli.decide.scheduling.written_pod import written_pod
from gpushare_cli.decide.why.finding import Finding, decisive, noted
from gpushare_cli.decide.why.situation import PodSituation


def claims_not_bound(situation: PodSituation) -> Iterator[Finding]:
    """A claim whose StorageClass waits for the first pod is pending rightly: it decides nothing."""
    claims = situation.cluster.claims
    if claims is None:
        return
    for name in dict.fromkeys(written_pod(situation.pod).spec.claims):
        claim, get = claims.get(name), f"kubectl get pvc -n {situation.namespace}"
        if claim is None:
            yield decisive(
                "ClaimMissing",
                f"The pod mounts PersistentVolumeClaim {name}, and its namespace has none of that name.",
                "Create it, or correct claimName in the pod's volumes.",
                get,
            )
        elif claim.status.phase != "Bound":
            phase = claim.status.phase or "Pending"
            yield noted(
                "ClaimNotBound",
                f"The pod mounts PersistentVolumeClaim {name}, which is {phase} and has no volume yet.",
                f"kubectl describe pvc {name} -n {situation.namespace}",
                "With WaitForFirstConsumer its volume is created when the pod is placed, otherwise earlier.",
            )
