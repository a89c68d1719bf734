"""Making known where the ledger differs from the other books: only this process sees it.

Nothing is written while nothing differs, but for one write at the start: it takes back what an extender of
this host has left behind.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from gpushare_core.api.names import BOOKS_LEASE, CALLS_COMPONENT, COMPONENT_LABEL
from gpushare_core.audit.difference import Difference
from gpushare_core.audit.extender_report import (
    RENEW_SECONDS,
    decode_reports,
    encode_report,
    make_report,
    report_key,
)
from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError, asked_to_wait
from gpushare_core.kube.paths import lease_path
from gpushare_core.text.json_object import Json

APART_SECONDS = 10.0
"""Between two writes, however often differences come and go."""
MAX_RETRY = 60.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class DifferenceReport:
    """Writes the annotation of the extender ``identity`` on the Lease in ``namespace``."""

    client: KubeClient
    namespace: str
    identity: str
    differences: Callable[[], Iterable[Difference]]
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _due: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _stands: bool = field(default=True, init=False)
    """Whether an annotation of this host may be there."""
    _ends: bool = field(default=False, init=False)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Held during a write: what is taken back comes after all that was said."""

    def changed(self) -> None:
        """Other differences are to be made known."""
        self._due.set()

    async def run(self) -> None:
        """Never returns."""
        while True:
            await self._write_at_last()
            await self.sleep(APART_SECONDS)
            await self._until_due()

    async def withdraw(self) -> None:
        """Takes back what was said: this extender ends. Once; what stays is believed for a few minutes."""
        self._ends = True
        try:
            async with self._writing:
                if self._stands:
                    await self._write(None)
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot take back what was said about books: %s", error)

    async def _until_due(self) -> None:
        """What stands is renewed: what nobody renews is believed no longer."""
        if not self._stands:
            await self._due.wait()
            return
        waiting = {asyncio.ensure_future(self._due.wait()), asyncio.ensure_future(self.sleep(RENEW_SECONDS))}
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waiting:
                each.cancel()

    async def _write_at_last(self) -> None:
        """Writes what differs by then, until the API server has it."""
        backoff = Backoff(most=MAX_RETRY, sleep=self.sleep)
        while True:
            self._due.clear()
            found = [*self.differences()]
            if self._ends or (not found and not self._stands):
                return
            try:
                async with self._writing:
                    await self._write(self._text(found) if found else None)
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot make known where books differ: %s", error)
                if not found and isinstance(error, ApiError) and error.is_forbidden:
                    self._stands = False  # manifests of an earlier version: nobody ever wrote there
                    return
                await backoff.wait(asked_to_wait(error))
            else:
                return

    def _text(self, found: Iterable[Difference]) -> str:
        return encode_report(make_report(found, by=self.identity, at=self.now()))

    async def _write(self, text: str | None) -> None:
        """None: nothing is to stand there. What others have left and nobody believes goes with it."""
        path, key = lease_path(self.namespace, BOOKS_LEASE), report_key(self.identity)
        self._stands = True
        try:
            lease = await self.client.merge(path, _annotated({key: text}))
        except ApiError as error:
            if not error.is_not_found:
                raise
            lease = await self._write_anew(path, _annotated({key: text})) if text else _lease()
        self._stands = text is not None
        reports = decode_reports(lease["metadata"].get("annotations") or {})
        if old := [other for other, each in reports.items() if not each.seconds_left(self.now())]:
            await self.client.merge(path, _annotated(dict.fromkeys(old)))

    async def _write_anew(self, path: str, annotations: Json) -> Json:
        """Somebody has deleted the Lease. Only who has something to say makes it again: at an uninstall
        nobody would take it away any more."""
        await self.client.apply(path, _lease())
        return await self.client.merge(path, annotations)


def _annotated(annotations: dict[str, str | None]) -> Json:
    return {"metadata": {"annotations": annotations}}


def _lease() -> Json:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": BOOKS_LEASE, "labels": {COMPONENT_LABEL: CALLS_COMPONENT}},
    }
