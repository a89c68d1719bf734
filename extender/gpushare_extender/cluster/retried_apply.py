"""Applying an object until the API server has it, for what only this process knows."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError, asked_to_wait
from gpushare_core.text.json_object import Json

FIRST_RETRY = 1.0
MAX_RETRY = 60.0
"""Seconds."""

_log = logging.getLogger(__name__)


async def apply_until_accepted(
    client: KubeClient,
    path: str,
    body: Callable[[], Json],
    *,
    purpose: str,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    before_retry: Callable[[], object] = lambda: None,
) -> None:
    """Applies ``body``, made anew for every attempt, at ``path``; creates the object if somebody deleted it.
    ``purpose`` ends the sentence ``cannot ...`` of a warning."""
    backoff = Backoff(first=FIRST_RETRY, most=MAX_RETRY, sleep=sleep)
    while True:
        try:
            await client.apply(path, body())
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot %s: %s", purpose, error)
            failure = error
        else:
            return
        await backoff.wait(asked_to_wait(failure))
        before_retry()
