"""One round of reading for the page."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic

from msgspec import Raw

from gpushare_cli.decide.problems.facts import StatusFacts, UnreadPart
from gpushare_cli.decide.web.groups import LabelledNode, group_labels
from gpushare_cli.decide.web.node_rows import PageReading
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import ALL_PODS, PENDING, InScope, PodScope, read_list
from gpushare_cli.gather.shared_cards import read_shared_cards
from gpushare_cli.gather.status_facts import read_status_facts
from gpushare_cli.gather.web.followed_nodes import FollowedNodes
from gpushare_cli.output.progress import Silence
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import NODES

LABELS_SECONDS = 60.0
"""After which labels of Nodes are read again: they seldom change, and those of 5,000 Nodes are megabytes."""


@dataclass(frozen=True, slots=True)
class PageRound:
    """All that was read in a round."""

    reading: PageReading
    facts: StatusFacts
    unread: list[str]
    """Sentences."""


@dataclass(slots=True, kw_only=True)
class PageReader:
    client: KubeClient
    now: Callable[[], datetime]
    rack_label: str = ""
    scope: PodScope = ALL_PODS
    clock: Callable[[], float] = monotonic
    _followed: FollowedNodes = field(init=False)
    _labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    _labels_until: float = float("-inf")
    _unlabelled: str = ""

    def __post_init__(self) -> None:
        self._followed = FollowedNodes(self.client)

    async def read(self) -> PageRound:
        """Raises:
        CannotLookError: the API server is not reached, or does not show GPUShareNodes.
        NoCredentialsError: the login has expired.
        """
        await self._followed.refresh()
        nodes = dict(self._followed.nodes)
        raws = [*nodes.values()]
        pending = await self._pending()
        cluster, facts, _ = await asyncio.gather(
            read_shared_cards(self.client, scope=self.scope, share_nodes=raws, pending=pending),
            self._status_facts(raws, pending),
            self._read_labels(nodes),
        )
        reading = PageReading(
            cluster=cluster,
            nodes=nodes,
            labels=self._labels,
            group_labels=group_labels(self._labels, self.rack_label),
        )
        said = [_unread(part) for part in facts.unread]
        return PageRound(reading, facts, [*cluster.unread, *said, *filter(None, [self._unlabelled])])

    async def _pending(self) -> InScope[list[Raw]] | None:
        """Returns the pods in phase Pending, once for all who need them: where thousands wait these are
        megabytes. None: they cannot be listed, and who needs them says why."""
        with suppress(CannotLookError):
            return await self.scope.listed(self.client, shape=Raw, field_selector=PENDING)
        return None

    async def _status_facts(
        self, share_nodes: Collection[Raw], pending: InScope[list[Raw]] | None
    ) -> StatusFacts:
        return await read_status_facts(
            self.client,
            now=self.now(),
            progress=Silence(),
            scope=self.scope,
            share_nodes=share_nodes,
            pending=pending,
        )

    async def _read_labels(self, nodes: Mapping[str, object]) -> None:
        """Without rights to list Nodes there are no racks, and all else is there."""
        if self.clock() < self._labels_until and nodes.keys() <= self._labels.keys():
            return
        try:
            found = await read_list(self.client, NODES, shape=LabelledNode, metadata_only=True)
        except CannotLookError as error:
            self._unlabelled = f"Labels of nodes are not known: {error}."
            return
        self._unlabelled = ""
        labels = {node.metadata.name: node.metadata.labels or {} for node in found}
        self._labels = {name: labels.get(name, {}) for name in nodes}
        self._labels_until = self.clock() + LABELS_SECONDS

    async def close(self) -> None:
        await self._followed.forget()


def _unread(part: UnreadPart) -> str:
    return f"{part.part[:1].upper()}{part.part[1:]} could not be read: {part.reason.removesuffix('.')}."
