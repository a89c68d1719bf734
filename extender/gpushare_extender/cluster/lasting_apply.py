"""Writing an object until the API server has it: nobody else would make known what it says."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError, asked_to_wait
from gpushare_core.text.json_object import Json

FIRST_RETRY = 1.0
MAX_RETRY = 60.0
"""Seconds."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastingApply:
    """Applies what ``body`` returns at ``path``; an object that somebody deleted is made anew. ``purpose``
    ends the sentence ``cannot ...`` of a warning."""

    client: KubeClient
    path: str
    body: Callable[[], Json]
    purpose: str
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def run(self, before_another: Callable[[], object] = lambda: None) -> None:
        """Returns when the server has it. Each attempt asks for the body anew, after ``before_another``."""
        backoff = Backoff(first=FIRST_RETRY, most=MAX_RETRY, sleep=self.sleep)
        while failure := await self._failure():
            await backoff.wait(asked_to_wait(failure))
            before_another()

    async def _failure(self) -> ApiError | UnreachableError | None:
        """Applies once. Returns why the server does not have it, or None."""
        try:
            await self.client.apply(self.path, self.body())
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot %s: %s", self.purpose, error)
            return error
        return None
