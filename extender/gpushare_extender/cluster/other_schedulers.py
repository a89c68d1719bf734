"""Making known how many pods another scheduler places that ask for our resources: on a Lease of ours."""

from collections.abc import Set
from dataclasses import dataclass, field

from gpushare_core.api.names import CALLS_LEASE, OTHER_SCHEDULERS_ANNOTATION
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import lease_path
from gpushare_extender.cluster.paced_pods import PacedPods
from gpushare_extender.decide.other_schedulers import placed_by_others, report
from gpushare_extender.ledger.ledger import Ledger

MOST_PODS = 2000
"""Are looked at: with more of them the number is that of the first."""


@dataclass(slots=True)
class OtherSchedulers:
    """``asking``: the names of schedulers that have asked us."""

    client: KubeClient
    ledger: Ledger
    namespace: str
    asking: Set[str]
    pods: PacedPods
    """Those that ``CANDIDATES`` selects."""
    _said: str | None = field(default=None, init=False)

    async def run(self) -> None:
        """Never returns."""
        await self.pods.keep_looking(self.look, "how many pods other schedulers place")

    async def look(self) -> None:
        """Makes known what has changed. Raises ``ApiError`` or ``UnreachableError``."""
        names: list[str] = []
        read = 0
        async for items in self.pods.pages():
            names += placed_by_others(items, asking=self.asking, resources=dict(self.ledger.resources))
            read += len(items)
            if read >= MOST_PODS:
                break
        await self._make_known(report(names))

    async def _make_known(self, text: str) -> None:
        if text == self._said:
            return
        annotations = {OTHER_SCHEDULERS_ANNOTATION: text or None}
        await self.client.merge(
            lease_path(self.namespace, CALLS_LEASE), {"metadata": {"annotations": annotations}}
        )
        self._said = text
