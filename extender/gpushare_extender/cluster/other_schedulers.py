"""Publishes, on our Lease, the pods that request our resources and are placed by another scheduler.

An extender is asked only by the kube-scheduler of its host, and forgets at a restart who has asked. So the
Lease also has the names of all schedulers that have asked any extender.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from gpushare_core.api.names import ASKING_ANNOTATION, CALLS_LEASE, OTHER_SCHEDULERS_ANNOTATION
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import lease_path
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.text.json_object import Json
from gpushare_extender.cluster.paced_pods import PacedPods
from gpushare_extender.decide.waiting.other_schedulers import asking_for, candidates, is_name, report

MAX_PODS = 2000
"""No more pods are looked at: the published number counts only these."""


@dataclass(slots=True)
class OtherSchedulers:
    """``asking``: the names of schedulers that have asked this extender."""

    client: KubeClient
    ledger: Ledger
    namespace: str
    asking: Set[str]
    pods: PacedPods

    async def run(self) -> None:
        await self.pods.keep_looking(self.look, "which pods other schedulers place")

    async def look(self) -> None:
        """Publishes what has changed. Raises ``ApiError`` or ``UnreachableError``."""
        published = await self._merge({})
        asking = {*filter(is_name, (*published.get(ASKING_ANNOTATION, "").split(), *self.asking))}
        if not asking:
            return
        desired = {
            ASKING_ANNOTATION: " ".join(sorted(asking)),
            OTHER_SCHEDULERS_ANNOTATION: report(await self._placed_by_others(asking)) or None,
        }
        if any(published.get(key) != value for key, value in desired.items()):
            await self._merge({"metadata": {"annotations": desired}})

    async def _placed_by_others(self, asking: Set[str]) -> list[str]:
        names: list[str] = []
        read = 0
        async for items in self.pods.pages(candidates(asking)):
            names += asking_for(items, dict(self.ledger.resources))
            read += len(items)
            if read >= MAX_PODS:
                break
        return names

    async def _merge(self, body: Json) -> Mapping[str, str]:
        """Returns the annotations. An empty ``body`` reads them: the extender has no right to get a Lease."""
        lease = await self.client.merge(lease_path(self.namespace, CALLS_LEASE), body)
        annotations: Mapping[str, str] = lease["metadata"].get("annotations") or {}
        return annotations
