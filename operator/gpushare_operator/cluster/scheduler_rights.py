"""Whether the user of the cluster's own kube-schedulers may do what the plugin of engine Plugin does."""

from gpushare_core.api.names import EXTENDER_LEASE, GROUP, KUBE_SCHEDULER_USER, NODE_PLURAL
from gpushare_core.kube import paths
from gpushare_core.kube.errors import ApiError
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.api_reader import ApiReader
from gpushare_operator.cluster.objects import ReadResult


def needed_rights(namespace: str) -> list[Json]:
    """Returns the rights besides those that Kubernetes gives the user, as ``resourceAttributes``.

    ``namespace`` is that of gpushare.
    """
    lease = {"group": "coordination.k8s.io", "resource": "leases", "name": EXTENDER_LEASE}
    return [
        *({"group": GROUP, "resource": NODE_PLURAL, "verb": verb} for verb in ("list", "watch")),
        {"group": GROUP, "resource": "allocations", "verb": "create"},
        *({**lease, "namespace": namespace, "verb": verb} for verb in ("get", "update", "create")),
    ]


async def read_scheduler_rights(api: ApiReader, namespace: str) -> ReadResult:
    """Returns MISSING when the user lacks a right, FORBIDDEN when the operator may not ask. Raises
    ``ApiError``."""
    try:
        for right in needed_rights(namespace):
            review = await api.create(paths.SUBJECT_REVIEWS, _review(right))
            if (review.get("status") or {}).get("allowed") is not True:
                return ReadResult.MISSING
    except ApiError as error:
        if not error.is_forbidden:
            raise
        return ReadResult.FORBIDDEN
    return ReadResult.FOUND


def _review(right: Json) -> Json:
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": KUBE_SCHEDULER_USER,
            "groups": ["system:authenticated"],
            "resourceAttributes": right,
        },
    }
