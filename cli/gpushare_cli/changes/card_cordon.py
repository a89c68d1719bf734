"""Cordons or uncordons cards, and waits until the plugin has done it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from gpushare_cli.decide.drain.card_tenants import card_cordons
from gpushare_cli.decide.drain.cordon import (
    changes,
    cordoned_annotations,
    named_cards,
    uncordoned_annotations,
)
from gpushare_cli.decide.drain.cordon_report import CordonReport
from gpushare_cli.decide.ledger import observed_ledger
from gpushare_cli.decide.objects.share_node import ObservedCard, ObservedShareNode
from gpushare_cli.errors import CannotLookError, not_reached
from gpushare_cli.gather.lists import read_list
from gpushare_cli.gather.pod_holders import read_booked
from gpushare_cli.output.progress import ProgressLine
from gpushare_cli.wording import listed
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import SHARE_NODES
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.text.json_object import Json

MAX_TRIES = 10
"""Each conflict is with another writer of the same object, such as the plugin."""
POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CardCordoning:
    """``timeout``: seconds for which the plugin is waited for."""

    client: KubeClient
    progress: ProgressLine
    node: str
    timeout: float
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic

    async def run(
        self, words: Sequence[str], *, is_cordon: bool, reason: str = "", dry_run: bool = False
    ) -> CordonReport:
        """Raises ``CannotLookError`` for a node or a card that is not there, and where it is not allowed."""
        for _ in range(MAX_TRIES):
            raw, share_node = await self.read()
            cards = named_cards(share_node, words)
            present = share_node.metadata.annotations or {}
            wanted = (
                cordoned_annotations(present, cards, reason=reason)
                if is_cordon
                else uncordoned_annotations(present, cards)
            )
            is_changed = changes(present, wanted)
            if not is_changed or await self._write(raw, wanted, dry_run=dry_run):
                break
        else:
            raise CannotLookError(
                f"GPUShareNode {self.node} changed each time it was to be written; try again"
            )
        coming = {key: text for key, text in {**present, **wanted}.items() if text is not None}
        begun = self.clock()
        if not dry_run:
            share_node = await self._until_confirmed(share_node, cards, is_cordon=is_cordon)
        seconds = round(self.clock() - begun, 1)
        unread: list[str] = []
        booked = await self._booked(unread)
        return CordonReport(
            node=self.node,
            is_cordon=is_cordon,
            is_dry_run=dry_run,
            is_changed=is_changed,
            cards=card_cordons(share_node, cards, coming, ledger=observed_ledger(share_node, booked)),
            seconds=seconds,
            unread=unread,
        )

    async def _booked(self, unread: list[str]) -> list[PodUpdate]:
        """Returns what the node's pods have by their annotations. Where they cannot be read, which ``unread``
        then says, the card is closed all the same."""
        try:
            return await read_booked(self.client, [self.node])
        except CannotLookError as error:
            unread.append(f"Pods that the plugin does not report yet are not known: {error}.")
            return []

    @property
    def _path(self) -> str:
        return f"{SHARE_NODES}/{quote(self.node, safe='')}"

    async def read(self) -> tuple[Json, ObservedShareNode]:
        """Returns the GPUShareNode, as it is and as people ask about it."""
        try:
            raw = await self.client.get(self._path)
            return raw, msgspec.convert(raw, ObservedShareNode)
        except ApiError as error:
            if error.is_not_found:
                raise CannotLookError(await self._no_such_node()) from error
            raise CannotLookError(f"GPUShareNode {self.node} cannot be read: {error}") from error
        except UnreachableError as error:
            raise CannotLookError(not_reached(error)) from error
        except msgspec.ValidationError as error:
            raise CannotLookError(f"GPUShareNode {self.node} cannot be read: {error}") from error

    async def _no_such_node(self) -> str:
        others = await read_list(
            self.client, SHARE_NODES, shape=ObservedShareNode, advice="see that gpushare is installed"
        )
        if not others:
            return f"node {self.node} shares no cards, and no other node does: kubectl get gpusharepolicies"
        names = listed(sorted(other.name for other in others), shown=10)
        return f"node {self.node} shares no cards; these do: {names}"

    async def _write(self, raw: Json, wanted: Json, *, dry_run: bool) -> bool:
        """Returns False where somebody else has written the object meanwhile."""
        version = raw["metadata"].get("resourceVersion", "")
        body = {"metadata": {"resourceVersion": version, "annotations": wanted}}
        try:
            await self.client.merge(self._path, body, dry_run=dry_run)
        except ApiError as error:
            if error.is_conflict:
                return False
            may = " (kubectl auth can-i patch gpusharenodes.gpushare.io)" if error.is_forbidden else ""
            raise CannotLookError(f"GPUShareNode {self.node} cannot be changed: {error}{may}") from error
        except UnreachableError as error:
            raise CannotLookError(f"it is not known whether {self.node} was changed: {error}") from error
        return True

    async def _until_confirmed(
        self, share_node: ObservedShareNode, cards: Sequence[ObservedCard], *, is_cordon: bool
    ) -> ObservedShareNode:
        """Returns the GPUShareNode as its plugin has it then, or when the time is up."""
        deadline, uuids = self.clock() + self.timeout, {card.uuid for card in cards}
        while any(card.cordoned is not is_cordon for card in share_node.cards if card.uuid in uuids):
            if self.clock() >= deadline:
                break
            self.progress.doing(f"waiting for the plugin on {self.node}")
            await self.sleep(POLL_SECONDS)
            with suppress(CannotLookError):  # it is written already, and the next look may succeed
                _, share_node = await self.read()
        return share_node
