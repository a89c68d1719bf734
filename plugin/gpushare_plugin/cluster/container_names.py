"""The names of containers, by the IDs that the container runtime gives them."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import msgspec

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import pod_path
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.use.cgroups import CgroupOwner

TIMEOUT = 5.0
"""Seconds for reading all pods of one look-up."""
ATTEMPTS = 3
"""Reads of a pod for one ID: its status may have the container later than its first process runs."""
RETRY_AFTER = 10.0
"""Seconds between two reads."""
UNLISTED = ""
"""The name of a container that its pod does not list."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ContainerNames:
    """Reads a pod once for each of its containers that uses a card: the status of pods is not watched."""

    client: KubeClient
    clock: Callable[[], float] = time.monotonic
    known: dict[CgroupOwner, str] = field(default_factory=dict, init=False)
    _attempts: Counter[CgroupOwner] = field(default_factory=Counter, init=False)
    _due: dict[CgroupOwner, float] = field(default_factory=dict, init=False)

    async def look_up(self, unnamed: Mapping[CgroupOwner, PodName]) -> None:
        """Adds to ``known`` what the API server answers within ``TIMEOUT``."""
        now = self.clock()
        due = {owner: pod for owner, pod in unnamed.items() if self._due.get(owner, now) <= now}
        self._due.update(dict.fromkeys(due, now + RETRY_AFTER))
        try:
            async with asyncio.timeout(TIMEOUT):
                for pod in dict.fromkeys(due.values()):
                    await self._read(pod, [owner for owner, of_pod in due.items() if of_pod == pod])
        except TimeoutError:
            _log.warning("the API server is too slow: cannot read the containers of this node's pods")

    def forget(self, present: Collection[str]) -> None:
        """Drops the containers of pods other than those with the UIDs in ``present``."""
        self.known = {owner: name for owner, name in self.known.items() if owner.pod_uid in present}
        self._due = {owner: due for owner, due in self._due.items() if owner.pod_uid in present}
        self._attempts = Counter(
            {owner: n for owner, n in self._attempts.items() if owner.pod_uid in present}
        )

    async def _read(self, pod: PodName, owners: Collection[CgroupOwner]) -> None:
        try:
            names = container_ids(await self.client.get(pod_path(*pod)))
        except (ApiError, UnreachableError, ValueError) as error:
            _log.warning("cannot read the containers of a pod: %s", error, extra={"pod": str(pod)})
            return
        for owner in owners:
            self._attempts[owner] += 1
            if owner.container_id in names:
                self.known[owner] = names[owner.container_id]
            elif self._attempts[owner] >= ATTEMPTS:
                self.known[owner] = UNLISTED


class _Terminated(msgspec.Struct):
    id: str | None = msgspec.field(name="containerID", default=None)


class _LastState(msgspec.Struct):
    terminated: _Terminated | None = None


class _ContainerStatus(msgspec.Struct, rename="camel"):
    name: str
    id: str | None = msgspec.field(name="containerID", default=None)
    last_state: _LastState | None = None

    @property
    def ids(self) -> Iterator[str]:
        last = self.last_state.terminated if self.last_state else None
        yield from filter(None, (last.id if last else None, self.id))


class _ContainerStatuses(msgspec.Struct, rename="camel"):
    container_statuses: list[_ContainerStatus] | None = None
    init_container_statuses: list[_ContainerStatus] | None = None


class _PodWithStatus(msgspec.Struct):
    status: _ContainerStatuses | None = None


def container_ids(pod: Json) -> dict[str, str]:
    """Returns ID -> name of the containers that ``pod`` lists, those before a restart too. Raises
    ``ValueError`` where it is no pod of the API server's."""
    status = msgspec.convert(pod, _PodWithStatus).status or _ContainerStatuses()
    listed = [*(status.container_statuses or ()), *(status.init_container_statuses or ())]
    return {text.rpartition("/")[2]: container.name for container in listed for text in container.ids}
