"""Asks the API server what somebody may do who wants to install gpushare. It stores nothing."""

import asyncio
from collections.abc import Mapping

from msgspec import Struct, field

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import ACCESS_REVIEWS
from gpushare_core.kube.request import ApiRequest

RBAC = "rbac.authorization.k8s.io"
NEEDED: Mapping[str, tuple[str, str, str]] = {
    "create CustomResourceDefinitions": ("create", "apiextensions.k8s.io", "customresourcedefinitions"),
    "create Namespaces": ("create", "", "namespaces"),
    "create ClusterRoles": ("create", RBAC, "clusterroles"),
    "create ClusterRoleBindings": ("create", RBAC, "clusterrolebindings"),
    "give rights that you do not have (escalate)": ("escalate", RBAC, "clusterroles"),
    "create ValidatingAdmissionPolicies": (
        "create",
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
    ),
    "create Deployments": ("create", "apps", "deployments"),
}
"""In words -> verb, group, resource."""


class _ReviewStatus(Struct):
    allowed: bool = False


class _Review(Struct):
    status: _ReviewStatus = field(default_factory=_ReviewStatus)


async def installing_rights(client: KubeClient, *, namespace: str) -> dict[str, bool]:
    """Raises ``ApiError`` and ``UnreachableError``."""
    allowed = await asyncio.gather(
        *(_may(client, attributes, namespace=namespace) for attributes in NEEDED.values())
    )
    return dict(zip(NEEDED, allowed, strict=True))


async def _may(client: KubeClient, attributes: tuple[str, str, str], *, namespace: str) -> bool:
    verb, group, resource = attributes
    where = {"namespace": namespace} if resource == "deployments" else {}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": verb, "group": group, "resource": resource, **where}},
    }
    review = ApiRequest(method="POST", path=ACCESS_REVIEWS, body=body)
    return (await client.read(review, shape=_Review)).status.allowed
