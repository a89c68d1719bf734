"""Reading what preemption has to know and no watch brings: the pods of a node, and PodDisruptionBudgets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import DISRUPTION_BUDGETS, PODS
from gpushare_core.kube.request import ApiRequest
from gpushare_core.scheduling.preemption.bound_pods import BoundPod, PodList
from gpushare_core.scheduling.preemption.disruption_budgets import Budget, BudgetList

NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
FROM_CACHE = {"resourceVersion": "0"}
"""Any version will do: an eviction names the UID, and the API server checks the budgets again."""


@dataclass(frozen=True, slots=True)
class NodePodReader:
    """Methods raise ``ApiError`` or ``UnreachableError``, also without a response in ``timeout`` seconds."""

    client: KubeClient
    timeout: float = 2.0

    async def pods(self, node: str) -> list[BoundPod]:
        """Returns the pods that are bound to ``node`` and have not ended."""
        return await self._pods(node, FROM_CACHE)

    async def pods_now(self, node: str) -> list[BoundPod]:
        """Returns the same, not from a cache: for decisions that no API call checks again."""
        return await self._pods(node, {})

    async def _pods(self, node: str, params: Mapping[str, str]) -> list[BoundPod]:
        params = {"fieldSelector": f"spec.nodeName={node},{NOT_ENDED}", **params}
        request = ApiRequest(path=PODS, params=params, timeout=self.timeout)
        return (await self.client.read(request, shape=PodList)).pods()

    async def budgets(self) -> Sequence[Budget]:
        request = ApiRequest(path=DISRUPTION_BUDGETS, params=FROM_CACHE, timeout=self.timeout)
        return (await self.client.read(request, shape=BudgetList)).items
