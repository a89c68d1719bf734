"""What the API server would make of a pod: a dry run, with which nothing is created."""

from dataclasses import dataclass

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import pods
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json

DRY_RUN = {"dryRun": "All", "fieldValidation": "Strict"}
"""Strict: a field that is misspelt is refused, as kubectl has it."""
NO_RIGHT = 'cannot create resource "pods"'
"""In the API server's words for somebody who may create no pods: that says nothing of the pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAdmission:
    """What came of asking."""

    pod: Json
    """With what admission sets: priority, schedulerName, tolerations, limits. As it was where it is"
    " refused."""
    refusal: str = ""
    unread: str = ""
    """Why it could not be asked."""


async def admitted(client: KubeClient, pod: Json) -> PodAdmission:
    metadata = pod.get("metadata") or {}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod.get("spec") or {}}
    try:
        answer = await _created(client, body)
    except ApiError as error:
        if NO_RIGHT in error.message or not error.is_final:
            return PodAdmission(pod=pod, unread=error.message)
        return PodAdmission(pod=pod, refusal=error.message)
    except UnreachableError as error:
        return PodAdmission(pod=pod, unread=str(error))
    return PodAdmission(pod={**pod, "spec": answer["spec"]})


async def _created(client: KubeClient, body: Json) -> Json:
    """Where there is a pod of that name already, another one is asked about."""
    path = pods(body["metadata"].get("namespace") or "default")
    try:
        return await client.send(ApiRequest(method="POST", path=path, body=body, params=DRY_RUN))
    except ApiError as error:
        if not error.is_conflict:
            raise
    named = {key: value for key, value in body["metadata"].items() if key != "name"}
    renamed = {**body, "metadata": {**named, "generateName": f"{body['metadata']['name']}-"}}
    return await client.send(ApiRequest(method="POST", path=path, body=renamed, params=DRY_RUN))
