"""ResourceQuotas of the namespace, which keep pods from being created."""

from collections.abc import Iterator
from fractions import Fraction

from gpushare_cli.decide.objects.pod_surroundings import KnownQuota
from gpushare_cli.decide.scheduling.written_pod import written_pod
from gpushare_cli.decide.why.finding import Finding, decisive
from gpushare_cli.decide.why.pod_amounts import pod_amounts
from gpushare_cli.decide.why.situation import PodSituation
from gpushare_core.placement.quantity import read_amount

REQUESTS = "requests."
QUOTA_EXCEEDED = "QuotaExceeded"


def quotas_exceeded(situation: PodSituation) -> Iterator[Finding]:
    """Of a pod that is not there yet: one that is there has passed."""
    if situation.exists:
        return
    amounts = pod_amounts(written_pod(situation.pod).spec)
    for quota in situation.cluster.quotas or ():
        for key, hard in (quota.status.hard or {}).items():
            if finding := _finding(situation, quota, key, read_amount(hard), amounts):
                yield finding


def _finding(
    situation: PodSituation, quota: KnownQuota, key: str, hard: Fraction, amounts: dict[str, Fraction]
) -> Finding | None:
    """``key``: such as ``requests.gpushare.io/memory``, the only way to bound an extended resource."""
    name = key.removeprefix(REQUESTS)
    asked = amounts.get(name, Fraction(0)) if key.startswith(REQUESTS) and "/" in name else Fraction(0)
    used = read_amount((quota.status.used or {}).get(key))
    if not asked or used + asked <= hard:
        return None
    return decisive(
        QUOTA_EXCEEDED,
        (
            f"ResourceQuota {quota.metadata.name} lets namespace {situation.namespace} have {hard} of {name}:"
            f" {used} are used, and the pod asks for {asked}."
        ),
        f"Ask for {hard - used} at most, end pods of the namespace, or ask for a larger quota."
        if hard > used
        else "End pods of the namespace, or ask for a larger quota.",
        f"kubectl describe quota {quota.metadata.name} -n {situation.namespace}",
    )
