"""The Eviction API: it deletes a pod unless a PodDisruptionBudget protects it."""

from enum import Enum
from http import HTTPStatus

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.paths import pod_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.scheduling.objects.pod_reference import PodReference


class EvictionOutcome(Enum):
    EVICTED = "evicted"
    GONE = "gone already"
    REFUSED = "refused"
    """By the API server, mostly because of a PodDisruptionBudget."""


class ProtectedError(Exception):
    """A PodDisruptionBudget protects the pod now; the text is the API server's."""


async def evict(client: KubeClient, pod: PodReference) -> EvictionOutcome:
    """Evicts ``pod``, and no other one of its name.

    Raises:
        ProtectedError: a PodDisruptionBudget protects it.
        ApiError: the API server refuses for another reason.
        UnreachableError: nobody knows whether it will go.
    """
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.uid}},
    }
    path = f"{pod_path(pod.namespace, pod.name)}/eviction"
    try:
        await client.send(ApiRequest(method="POST", path=path, body=body))
    except ApiError as error:
        if error.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise ProtectedError(error.message) from error
        if error.is_not_found or error.is_conflict:
            return EvictionOutcome.GONE
        raise
    return EvictionOutcome.EVICTED
