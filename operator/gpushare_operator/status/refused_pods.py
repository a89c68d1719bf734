"""Pods of ours that the API server refuses to create: why, in its own words, and what to do."""

from gpushare_core.api.served import Problem
from gpushare_core.text.printable import printable
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import plugin_name
from gpushare_operator.policies.wording import explained

PODS_REFUSED = "PodsRefused"
"""Reason of Degraded: part of the API."""
MAX_BYTES = 400
"""Of a controller's message: PodSecurity lists every field of a pod that it refuses."""

POD_SECURITY = (
    "kubectl label namespace {namespace} pod-security.kubernetes.io/enforce=privileged --overwrite: plugins"
    " and hostctl need folders of their hosts"
)
LIMITS = "choose resources within the LimitRange (docs/install.md), or remove it from namespace {namespace}"
QUOTA = "raise the ResourceQuota of namespace {namespace}"
OTHERS = "have what refuses them leave namespace {namespace} alone"
AGAIN = "Kubernetes tries again by itself, at the latest after 17 minutes"
ADVICE: tuple[tuple[str, str], ...] = (
    ("violates PodSecurity", POD_SECURITY),
    ("exceeded quota", QUOTA),
    ("limit to request ratio", LIMITS),
    ("usage per Container", LIMITS),
    ("usage per Pod", LIMITS),
)
"""Part of the API server's message -> what to do, the first that applies."""


def refused_pods(snapshot: ClusterSnapshot, policy: PolicyObject, namespace: str) -> list[Problem]:
    """Returns the problem of ``policy``: refusals of its own plugins, and of what all policies share."""
    others = {plugin_name(name) for name in snapshot.policies if name != policy.name}
    refused = {name: why for name, why in snapshot.refusals.items() if name not in others}
    if not refused:
        return []
    what = explained(
        {f"pods of {name}": printable(why, max_bytes=MAX_BYTES) for name, why in refused.items()}
    )
    advice = dict.fromkeys(_advice(why).format(namespace=namespace) for why in refused.values())
    message = f"the API server refuses {what}; {'; '.join(advice)}; {AGAIN}"
    return [Problem(PODS_REFUSED, message)]


def _advice(why: str) -> str:
    return next((advice for words, advice in ADVICE if words in why), OTHERS)
