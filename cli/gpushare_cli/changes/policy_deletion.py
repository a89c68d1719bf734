"""Deletes policies, and waits until the operator has undone what they did."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from gpushare_cli.decide.undo.objects import UndoPolicy
from gpushare_cli.errors import CannotLookError
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.follow import Collection, Listed, follow
from gpushare_core.kube.paths import POLICIES

SILENT = "the operator has not reported on it yet"


@dataclass(slots=True)
class PolicyDeletion:
    """Tells what it waits for by ``doing``, whenever that changes."""

    client: KubeClient
    policies: Sequence[UndoPolicy]
    doing: Callable[[str], None]
    waiting_for: dict[str, str] = field(default_factory=dict)
    """Policy that is still there -> what its condition Ready says."""
    is_begun: bool = field(default=False, init=False)

    async def delete(self) -> None:
        """Asks the API server to delete each. Raises ``CannotLookError`` at the first one that it refuses."""
        self.is_begun = True
        for policy in self.policies:
            before = f"; deleted before it: {', '.join(self.waiting_for)}" if self.waiting_for else ""
            try:
                await self.client.delete(f"{POLICIES}/{policy.name}", uid=policy.metadata.uid)
            except ApiError as error:
                if not (error.is_not_found or error.is_conflict):
                    raise CannotLookError(
                        f"the API server does not delete policy {policy.name}: {error}{before}"
                    ) from error
            except UnreachableError as error:
                raise CannotLookError(
                    f"it is not known whether policy {policy.name} was deleted: {error}{before};"
                    " run this again"
                ) from error
            self.waiting_for[policy.name] = SILENT

    async def until_gone(self) -> None:
        """Waits without a deadline."""
        uids = {policy.metadata.uid for policy in self.policies}
        present: dict[str, UndoPolicy] = {}
        async for event in follow(self.client, Collection(POLICIES), _read):
            if isinstance(event, Listed):
                present = {item.metadata.uid: item for item in event.items}
            elif event.kind == "DELETED":
                present.pop(event.item.metadata.uid, None)
            else:
                present[event.item.metadata.uid] = event.item
            self.waiting_for = {item.name: _message(item) for uid, item in present.items() if uid in uids}
            if not self.waiting_for:
                return
            self.doing("; ".join(f"{name}: {_short(text)}" for name, text in self.waiting_for.items()))


def _read(raw: msgspec.Raw) -> UndoPolicy:
    return msgspec.json.decode(raw, type=UndoPolicy)


def _short(message: str) -> str:
    return message.removeprefix("everything is being undone: ")


def _message(policy: UndoPolicy) -> str:
    """Returns what Ready says, once it is about the deletion."""
    ready = policy.condition("Ready")
    return ready.message if ready and ready.reason == "Deleting" else SILENT
