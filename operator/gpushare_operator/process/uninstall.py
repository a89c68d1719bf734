"""``gpushare-operator uninstall``: deletes all policies and waits until their changes are undone.

Without the operator nothing is undone. So the chart runs this before ``helm uninstall`` deletes anything, and
a failure keeps the operator.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpushare_core.kube import paths
from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError, asked_to_wait
from gpushare_core.kube.follow import Changed, Collection, Listed, follow
from gpushare_core.text.json_object import Json

Report = Callable[[str], None]
"""Takes a line for people."""

ADVICE = (
    "Nothing was uninstalled. Check that the operator runs, which undoes everything: kubectl get deployments"
    " --all-namespaces -l app.kubernetes.io/name=gpushare. To wait longer, try again. To wait no longer"
    " for a control-plane node that is lost for good, annotate the policy with"
    " gpushare.io/let-go; for pods that have to keep running, with gpushare.io/leave-isolation-files=true:"
    " see docs/policy.md"
)


class StillThereError(Exception):
    """Policies are left after the timeout; the text says which, what they wait for, and what to do."""


async def uninstall(client: KubeClient, *, timeout: float, report: Report) -> None:
    """Deletes all policies, new ones too, and returns when none is left.

    Raises StillThereError: after ``timeout`` seconds.
    """
    policies = _RemainingPolicies(client, report)
    try:
        async with asyncio.timeout(timeout):
            if await _is_kind_known(client):
                await policies.until_none_is_left()
    except TimeoutError:
        raise StillThereError(f"after {timeout:g} s not everything is undone: {policies}. {ADVICE}") from None
    report("no policy is left, and everything is undone")


async def _is_kind_known(client: KubeClient) -> bool:
    """Returns False when the API server does not know the kind: following it would never end."""
    try:
        await client.get(paths.POLICIES)
    except (ApiError, UnreachableError) as error:
        return not (isinstance(error, ApiError) and error.is_not_found)
    return True


@dataclass(slots=True)
class _RemainingPolicies:
    client: KubeClient
    report: Report
    present: dict[str, Json] = field(default_factory=dict)
    """By name."""
    deleted: set[str] = field(default_factory=set)
    """UIDs of policies whose deletion has begun; watch events report its end."""

    def __str__(self) -> str:
        said = (f"policy {name}: {_message(policy)}" for name, policy in self.present.items())
        return "; ".join(said) or "it is not known which policies there are"

    async def until_none_is_left(self) -> None:
        async for event in follow(self.client, Collection(paths.POLICIES)):
            before = str(self)
            self._take(event)
            for policy in list(self.present.values()):
                await self._delete(policy)
            if not self.present:
                return
            if str(self) != before:
                self.report(f"waiting for {self}")

    def _take(self, event: Listed[Json] | Changed[Json]) -> None:
        if isinstance(event, Listed):
            self.present = {item["metadata"]["name"]: item for item in event.items}
        elif event.kind == "DELETED":
            self.present.pop(event.item["metadata"]["name"], None)
        else:
            self.present[event.item["metadata"]["name"]] = event.item

    async def _delete(self, policy: Json) -> None:
        name, uid, backoff = policy["metadata"]["name"], policy["metadata"]["uid"], Backoff()
        while uid not in self.deleted:
            try:
                await self.client.delete(f"{paths.POLICIES}/{name}", uid=uid)
                self.deleted.add(uid)
            except (ApiError, UnreachableError) as error:
                if isinstance(error, ApiError) and (error.is_not_found or error.is_conflict):
                    return  # it is gone, or another policy has its name
                self.report(f"cannot delete policy {name} yet: {error}")
                await backoff.wait(asked_to_wait(error))


def _message(policy: Json) -> str:
    """Returns the message of Ready, which says what a deleted policy still waits for."""
    conditions: list[dict[str, Any]] = policy.get("status", {}).get("conditions") or []
    said = [condition["message"] for condition in conditions if condition["type"] == "Ready"]
    return said[0] if said else "the operator has not reported on it"
