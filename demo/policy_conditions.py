"""A policy's conditions as they change, from a watch."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.follow import Changed, Collection, follow
from gpushare_core.text.json_object import Json


class NotInTimeError(Exception):
    """The policy did not get there in time; the text has its last conditions."""


def follow_conditions(kubeconfig: Path, *, seconds: float) -> Iterator[list[Json]]:
    """Yields the conditions of all policies, again with every change.

    Raises:
        NotInTimeError: after ``seconds``.
    """
    last: list[Json] = []
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


async def _next(watch: AsyncGenerator[list[Json], None], seconds: float) -> list[Json]:
    return await asyncio.wait_for(anext(watch), seconds)


async def _watch(kubeconfig: Path) -> AsyncGenerator[list[Json], None]:
    async with KubeClient(from_kubeconfig(kubeconfig)) as client:
        async for event in follow(client, Collection(paths.POLICIES)):
            items = [event.item] if isinstance(event, Changed) else event.items
            yield [condition for item in items for condition in item.get("status", {}).get("conditions", ())]
