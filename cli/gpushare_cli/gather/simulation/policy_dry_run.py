"""Has the API server check a policy that is not applied yet, and reads the policies that there are."""

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError

from gpushare_cli.decide.objects.workload import Document
from gpushare_cli.decide.simulation.policy_effect import PolicyClaim
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import read_list
from gpushare_core.api.names import API_VERSION, POLICY_KIND
from gpushare_core.api.policy import PolicySpec
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import POLICIES
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json

REFUSED = (HTTPStatus.UNPROCESSABLE_ENTITY, HTTPStatus.BAD_REQUEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """A policy as it would be stored, beside the others."""

    name: str
    is_new: bool
    checked_by: str
    remark: str = ""
    refusal: str = ""
    claims: tuple[PolicyClaim, ...] = ()
    """Of all policies, this one as it would be; empty where it is refused."""


def policy_in(documents: list[Document]) -> Json:
    """Returns the one policy of a file. Raises ``CannotLookError``."""
    found = [
        document.content
        for document in documents
        if isinstance(document.content, dict) and document.content.get("kind") == POLICY_KIND
    ]
    if len(found) != 1:
        raise CannotLookError(
            f"--policy takes a file with one {POLICY_KIND}, and there are {len(found)} in it"
        )
    policy: Json = found[0]
    metadata = policy.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise CannotLookError(f"the {POLICY_KIND} has no name")
    return policy


async def dry_run(client: KubeClient, policy: Json) -> DryRun:
    """Nothing is stored. Raises ``CannotLookError`` where the policies cannot be read."""
    name = policy["metadata"]["name"]
    present = await read_list(
        client, POLICIES, shape=dict, advice="see that gpushare is installed, and that you may list them"
    )
    own = next((other for other in present if other["metadata"]["name"] == name), None)
    others = [claim_of(other) for other in present if other is not own and not _is_deleted(other)]
    created = str(own["metadata"].get("creationTimestamp", "")) if own else None
    by_client = DryRun(name=name, is_new=own is None, checked_by="Client")
    if own and _is_deleted(own):
        return replace(by_client, refusal="it is being deleted: apply it when it is gone")
    remark, by_server = "", replace(by_client, checked_by="APIServer")
    try:
        stored = await _stored(client, policy, own)
    except UnreachableError as error:
        raise CannotLookError(str(error)) from error
    except ApiError as error:
        if error.status in REFUSED or (error.is_forbidden and "denied request" in error.message):
            return replace(by_server, refusal=error.message)
        stored = policy
        remark = f"The policy was read by this client, which knows fewer rules: {error}"
    try:
        spec = PolicySpec.model_validate(stored.get("spec"))
    except ValidationError as error:
        return replace(by_client, refusal=_problems(error))
    claim = PolicyClaim(name=name, spec=spec, **({"created": created} if created else {}))
    return replace(by_client if remark else by_server, remark=remark, claims=(*others, claim))


async def _stored(client: KubeClient, policy: Json, own: Json | None) -> Json:
    """Returns the policy as the API server would store it."""
    name = policy["metadata"]["name"]
    metadata = {"name": name}
    if own is not None:
        metadata["resourceVersion"] = own["metadata"]["resourceVersion"]
    request = ApiRequest(
        method="PUT" if own else "POST",
        path=f"{POLICIES}/{name}" if own else POLICIES,
        params={"dryRun": "All", "fieldValidation": "Strict"},
        body={
            "apiVersion": API_VERSION,
            "kind": POLICY_KIND,
            "metadata": metadata,
            "spec": policy.get("spec"),
        },
    )
    return await client.send(request)


def claim_of(policy: Json) -> PolicyClaim:
    metadata = policy["metadata"]
    created = str(metadata.get("creationTimestamp", ""))
    try:
        spec = PolicySpec.model_validate(policy.get("spec"))
    except ValidationError:
        spec = None
    return PolicyClaim(name=str(metadata["name"]), created=created, spec=spec)


def _is_deleted(policy: Json) -> bool:
    return bool(policy["metadata"].get("deletionTimestamp"))


def _problems(error: ValidationError) -> str:
    return "; ".join(f"{_path(problem['loc'])}: {problem['msg']}" for problem in error.errors())


def _path(location: tuple[Any, ...]) -> str:
    return ".".join(["spec", *map(str, location)])
