"""What the operator writes on behalf of a policy for one node: its GPUShareNode and its labels."""

from typing import Any

from gpushare_core.api.names import (
    API_VERSION,
    MANAGED_BY_LABEL,
    MODE_LABEL,
    NODE_KIND,
    POLICY_KIND,
    POLICY_LABEL,
)
from gpushare_core.api.policy import NodeRule
from gpushare_core.api.share_node import NodeSpec
from gpushare_operator.cluster.objects import PolicyView
from gpushare_operator.desired.names import MANAGER

Json = dict[str, Any]

NODE_LABELS = (POLICY_LABEL, MODE_LABEL)


def owner_reference(policy: PolicyView) -> Json:
    """So that nothing outlives a policy whose finalizer somebody took off by force."""
    return {"apiVersion": API_VERSION, "kind": POLICY_KIND, "name": policy.name, "uid": policy.uid}


def node_labels(policy: PolicyView, rule: NodeRule) -> dict[str, str]:
    return {POLICY_LABEL: policy.name, MODE_LABEL: str(rule.mode)}


def share_node_spec(policy: PolicyView, rule: NodeRule) -> Json:
    """Raises ``ValueError`` for a policy that has no valid spec: it has no enabled nodes either."""
    if policy.spec is None:
        raise ValueError(f"policy {policy.name} has no valid spec")
    return NodeSpec.of_rule(policy.name, policy.spec, rule).to_json()


def share_node(policy: PolicyView, node: str, spec: Json) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": NODE_KIND,
        "metadata": {
            "name": node,
            "labels": {MANAGED_BY_LABEL: MANAGER, POLICY_LABEL: policy.name},
            "ownerReferences": [owner_reference(policy)],
        },
        "spec": spec,
    }
