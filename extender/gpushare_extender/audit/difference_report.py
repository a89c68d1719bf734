"""Publishes the differences between the ledger and the other records, which only this process sees.

It writes nothing while nothing differs, except once at the start: that withdraws what an earlier extender of
this host has left.
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
"""Between two writes."""
MAX_RETRY = 60.0

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class DifferenceReport:
    """Writes the annotation of the extender ``identity`` on the Lease for differences in ``namespace``."""

    client: KubeClient
    namespace: str
    identity: str
    differences: Callable[[], Iterable[Difference]]
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _due: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _is_published: bool = field(default=True, init=False)
    """Whether an annotation of this host may be there."""
    _ends: bool = field(default=False, init=False)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Held during a write, so that a withdrawal comes last."""

    def changed(self) -> None:
        self._due.set()

    async def run(self) -> None:
        while True:
            await self._write_at_last()
            await self.sleep(APART_SECONDS)
            await self._until_due()

    async def withdraw(self) -> None:
        """Removes the annotation when this extender ends. Tries once: readers ignore an old annotation."""
        self._ends = True
        try:
            async with self._writing:
                if self._is_published:
                    await self._write(None)
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot withdraw the report on differences: %s", error)

    async def _until_due(self) -> None:
        """Renews what is published in time: readers ignore an old annotation."""
        if not self._is_published:
            await self._due.wait()
            return
        waiting = {asyncio.ensure_future(self._due.wait()), asyncio.ensure_future(self.sleep(RENEW_SECONDS))}
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    async def _write_at_last(self) -> None:
        backoff = Backoff(most=MAX_RETRY, sleep=self.sleep)
        while True:
            self._due.clear()
            found = [*self.differences()]
            if self._ends or (not found and not self._is_published):
                return
            try:
                async with self._writing:
                    report = make_report(found, by=self.identity, at=self.now())
                    await self._write(encode_report(report) if found else None)
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot publish differences: %s", error)
                if not found and isinstance(error, ApiError) and error.is_forbidden:
                    self._is_published = False  # manifests of an earlier version: no extender could write
                    return
                await backoff.wait(asked_to_wait(error))
            else:
                return

    async def _write(self, text: str | None) -> None:
        """Sets the annotation, or removes it (None), and removes old annotations of other extenders."""
        path, key = lease_path(self.namespace, BOOKS_LEASE), report_key(self.identity)
        self._is_published = True
        try:
            lease = await self.client.merge(path, _annotated({key: text}))
        except ApiError as error:
            if not error.is_not_found:
                raise
            lease = await self._write_anew(path, _annotated({key: text})) if text else _lease()
        self._is_published = text is not None
        reports = decode_reports(lease["metadata"].get("annotations") or {})
        if old := [other for other, report in reports.items() if not report.seconds_left(self.now())]:
            await self.client.merge(path, _annotated(dict.fromkeys(old)))

    async def _write_anew(self, path: str, annotations: Json) -> Json:
        """Creates the Lease that somebody has deleted. Only an extender with differences does so: after an
        uninstall nobody would delete the Lease."""
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
