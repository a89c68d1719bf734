"""What a policy gets on one of its nodes: the GPUShareNode and the node's labels."""

from gpushare_core.api.names import (
    API_VERSION,
    DIALECT_LABEL,
    MANAGED_BY_LABEL,
    MODE_LABEL,
    NODE_KIND,
    PLUGIN_NODE_LABEL,
    POLICY_KIND,
    POLICY_LABEL,
    VERSION_LABEL,
)
from gpushare_core.api.policy import NodeRule
from gpushare_core.api.share_node import NodeSpec
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.labels import HASH_ANNOTATION, MANAGER
from gpushare_operator.cluster.managed_fields import Path
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.desired.drift import differences


def policy_reference(policy: PolicyObject) -> Json:
    """Returns how objects refer to ``policy``. Those that it owns go with a policy that lost its finalizer by
    force."""
    return {"apiVersion": API_VERSION, "kind": POLICY_KIND, "name": policy.name, "uid": policy.uid}


def node_labels(policy: str, mode: str, dialect: Dialect) -> dict[str, str]:
    """Returns the labels of a node, among them those for the tools of ``dialect``."""
    return {
        POLICY_LABEL: policy,
        PLUGIN_NODE_LABEL: policy,
        MODE_LABEL: str(mode),
        DIALECT_LABEL: dialect.name,
        **dialect.node_labels,
    }


def share_node_spec(policy: PolicyObject, rule: NodeRule) -> Json:
    """Returns the spec for every node under ``rule``; a policy without a valid spec has no such nodes."""
    if policy.spec is None:
        raise ValueError(f"policy {policy.name} has no valid spec")
    return policy.spec.of_node(policy.name, rule).to_json()


def share_node(policy: PolicyObject, node: str, spec: Json, spec_hash: str) -> Json:
    """Returns the GPUShareNode; ``spec_hash`` is the digest of ``spec``, which thousands of nodes share."""
    return {
        "apiVersion": API_VERSION,
        "kind": NODE_KIND,
        "metadata": {
            "name": node,
            "labels": {MANAGED_BY_LABEL: MANAGER, POLICY_LABEL: policy.name, VERSION_LABEL: VERSION},
            "annotations": {HASH_ANNOTATION: spec_hash},
            "ownerReferences": [policy_reference(policy)],
        },
        "spec": spec,
    }


def share_node_patch(body: Json, uid: str) -> Json:
    """Returns the merge patch that changes the GPUShareNode with ``uid`` to ``body``.

    It removes fields by name that this version knows and no longer asks for. Unknown fields stay: a newer CRD
    has filled them in.
    """
    metadata = {**body["metadata"], "uid": uid}
    return {**body, "metadata": metadata, "spec": {**_LEFT_OUT, **body["spec"]}}


def is_in_force(actual: Json, desired: Json) -> bool:
    return not spec_differences(actual, desired)


def spec_differences(actual: Json, desired: Json) -> list[Path]:
    """Returns where the spec of a GPUShareNode differs from ``desired``. Fields that this version does not
    know do not count: a newer CRD may have filled them in."""
    added: list[Path] = [("spec", name) for name in _LEFT_OUT if name in actual and name not in desired]
    return differences({"spec": actual}, {"spec": desired}) + added


_LEFT_OUT: Json = dict.fromkeys(NodeSpec.__struct_encode_fields__)
