"""Making known how many pods another scheduler places that ask for our resources: on a Lease of ours.

An extender is asked by the kube-scheduler of its own host alone, and forgets at a restart who has asked. So
the names of schedulers that have asked any of them are kept there, too.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass

from gpushare_core.api.names import ASKING_ANNOTATION, CALLS_LEASE, OTHER_SCHEDULERS_ANNOTATION
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import lease_path
from gpushare_core.text.json_object import Json
from gpushare_extender.cluster.paced_pods import PacedPods
from gpushare_extender.decide.waiting.other_schedulers import asking_for, candidates, is_name, report
from gpushare_extender.ledger.ledger import Ledger

MAX_PODS = 2000
"""Are looked at: with more of them the number is that of the first."""


@dataclass(slots=True)
class OtherSchedulers:
    """``asking``: the names of schedulers that have asked this extender."""

    client: KubeClient
    ledger: Ledger
    namespace: str
    asking: Set[str]
    pods: PacedPods

    async def run(self) -> None:
        """Never returns."""
        await self.pods.keep_looking(self.look, "how many pods other schedulers place")

    async def look(self) -> None:
        """Makes known what has changed. Raises ``ApiError`` or ``UnreachableError``."""
        said = await self._merge({})
        asking = {*filter(is_name, (*said.get(ASKING_ANNOTATION, "").split(), *self.asking))}
        if not asking:
            return
        wanted = {
            ASKING_ANNOTATION: " ".join(sorted(asking)),
            OTHER_SCHEDULERS_ANNOTATION: report(await self._placed_by_others(asking)) or None,
        }
        if any(said.get(key) != value for key, value in wanted.items()):
            await self._merge({"metadata": {"annotations": wanted}})

    async def _placed_by_others(self, asking: Set[str]) -> list[str]:
        names: list[str] = []
        read = 0
        self.pods.field_selector = candidates(asking)
        async for items in self.pods.pages():
            names += asking_for(items, dict(self.ledger.resources))
            read += len(items)
            if read >= MAX_PODS:
                break
        return names

    async def _merge(self, body: Json) -> Mapping[str, str]:
        """Returns the annotations; an empty ``body`` reads them, for which there is no right of its own."""
        lease = await self.client.merge(lease_path(self.namespace, CALLS_LEASE), body)
        annotations: Mapping[str, str] = lease["metadata"].get("annotations") or {}
        return annotations
