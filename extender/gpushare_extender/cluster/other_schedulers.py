"""Making known how many pods another scheduler places that ask for our resources: on a Lease of ours."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gpushare_core.api.names import CALLS_LEASE, OTHER_SCHEDULERS_ANNOTATION
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import PODS, lease_path
from gpushare_extender.decide.other_schedulers import CANDIDATES, placed_by_others, report
from gpushare_extender.ledger.ledger import Ledger

LOOK_SECONDS = 30.0
PAGE, PAGE_SECONDS = 100, 1.0
"""So many pods are read at once, and so long nothing is read then."""
MOST_PODS = 2000
"""Are looked at: with more of them the number is that of the first."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class OtherSchedulers:
    """``asking``: the names of schedulers that have asked us."""

    client: KubeClient
    ledger: Ledger
    namespace: str
    asking: set[str]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _said: str | None = field(default=None, init=False)

    async def run(self) -> None:
        """Never returns."""
        while True:
            await self.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot tell how many pods other schedulers place: %s", error)

    async def look(self) -> None:
        """Makes known what has changed. Raises ``ApiError`` or ``UnreachableError``."""
        names: list[str] = []
        read = 0
        async for page in self.client.pages(PODS, limit=PAGE, field_selector=CANDIDATES):
            resources = dict(self.ledger.resources)
            names += placed_by_others(page.items, asking=self.asking, resources=resources)
            read += len(page.items)
            if read >= MOST_PODS:
                break
            await self.sleep(PAGE_SECONDS)
        await self._make_known(report(names))

    async def _make_known(self, text: str) -> None:
        if text == self._said:
            return
        annotations = {OTHER_SCHEDULERS_ANNOTATION: text or None}
        await self.client.merge(
            lease_path(self.namespace, CALLS_LEASE), {"metadata": {"annotations": annotations}}
        )
        self._said = text
