"""``gpushare-operator check``: whether an installation works. It changes nothing; `helm test` runs it.

An operator is at work when it renews its Lease while this runs: clocks of two hosts need not agree. Dry runs
show that the API server serves policies and checks them.
"""

import asyncio
from collections.abc import Awaitable, Callable

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json
from gpushare_operator.process.leadership import LEASE_NAME

LOOK_SECONDS = 1.0
NAME = "gpushare-check"
"""Of the policies in dry runs."""


class NotWorkingError(Exception):
    """What does not work, and what to do, for people."""


async def check(client: KubeClient, namespace: str, *, timeout: float, report: Callable[[str], None]) -> None:
    """``timeout``: seconds for the operator to renew its Lease; ``report`` takes a line for people. Raises
    NotWorkingError."""
    report(f"an operator is at work: {await _operator_at_work(client, namespace, timeout)}")
    await _answered(client.send(_dry_run({"memoryUnit": "1Gi"})), "create a policy (dry run)")
    report("the API server accepts a valid policy (dry run)")
    await _require_checked_policies(client)
    report("the API server refuses an invalid policy (dry run)")


async def _operator_at_work(client: KubeClient, namespace: str, timeout: float) -> str:
    """Returns its name in the Lease."""
    path = paths.lease_path(namespace, LEASE_NAME)
    try:
        first = await _answered(client.get(path), "read the operator's Lease")
        async with asyncio.timeout(timeout):
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                lease = await _answered(client.get(path), "read the operator's Lease")
                holder = _text(lease, "holderIdentity")
                if holder and _text(lease, "renewTime") != _text(first, "renewTime"):
                    return holder
    except TimeoutError:
        raise NotWorkingError(
            f"no operator is at work: nobody renewed the Lease {LEASE_NAME} within {timeout:g} s; "
            f"kubectl -n {namespace} describe deployment gpushare-operator says why"
        ) from None


async def _require_checked_policies(client: KubeClient) -> None:
    try:
        await client.send(_dry_run({"memoryUnit": "nothing"}))
    except (ApiError, UnreachableError) as error:
        if isinstance(error, ApiError) and error.is_invalid:
            return
        raise NotWorkingError(f"cannot have a policy checked: {error}") from error
    raise NotWorkingError(
        "the API server accepted a policy with an invalid memoryUnit: its CRDs are of another version;"
        " apply crds/ again"
    )


def _dry_run(spec: Json) -> ApiRequest:
    node = {"names": [NAME], "mode": "Memory", "devices": {"source": "NVML"}}
    body = {
        "apiVersion": "gpushare.io/v1alpha1",
        "kind": "GPUSharePolicy",
        "metadata": {"name": NAME},
        "spec": {**spec, "nodes": [node]},
    }
    params = {"dryRun": "All", "fieldValidation": "Strict"}
    return ApiRequest(method="POST", path=paths.POLICIES, params=params, body=body)


async def _answered(call: Awaitable[Json], what: str) -> Json:
    try:
        return await call
    except (ApiError, UnreachableError) as error:
        raise NotWorkingError(f"cannot {what}: {error}") from error


def _text(lease: Json, name: str) -> str:
    return str((lease.get("spec") or {}).get(name) or "")
