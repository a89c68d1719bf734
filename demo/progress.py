"""A policy's conditions as they change, from a watch."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

from gpushare_core.api.names import API_VERSION, POLICY_PLURAL
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.follow import Changed, Collection, follow

Condition = dict[str, Any]


class NotInTimeError(Exception):
    """The policy did not get there in time; the text has its last conditions."""


def conditions(kubeconfig: Path, *, seconds: float) -> Iterator[list[Condition]]:
    """Yield the conditions of all policies, again with every change.

    Raises:
        NotInTimeError: after ``seconds``.
    """
    last: list[Condition] = []
    with asyncio.Runner() as runner:
        deadline = runner.get_loop().time() + seconds
        watch = _watch(kubeconfig)
        try:
            while True:
                left = deadline - runner.get_loop().time()
                last = runner.run(_next(watch, left))
                yield last
        except TimeoutError:
            raise NotInTimeError(f"not ready after {seconds:g} s: {last}") from None
        finally:
            runner.run(watch.aclose())


async def _next(watch: AsyncGenerator[list[Condition], None], seconds: float) -> list[Condition]:
    return await asyncio.wait_for(anext(watch), seconds)


async def _watch(kubeconfig: Path) -> AsyncGenerator[list[Condition], None]:
    async with KubeClient(from_kubeconfig(kubeconfig)) as client:
        async for event in follow(client, Collection(f"/apis/{API_VERSION}/{POLICY_PLURAL}")):
            items = [event.item] if isinstance(event, Changed) else event.items
            yield [each for item in items for each in item.get("status", {}).get("conditions", ())]
