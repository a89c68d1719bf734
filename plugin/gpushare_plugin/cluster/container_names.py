"""Which container of its pod has which ID, where that has to be known."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

import msgspec

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import pod_path
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.decide.use.cgroups import CgroupOwner

TIMEOUT = 5.0
"""Seconds for reading all pods that are asked for."""
ATTEMPTS = 3
"""Reads of a pod for one ID: its status may follow later than the container's first process."""
RETRY_AFTER = 10.0
"""Seconds between two of them."""
NOBODYS = ""
"""The name of a container that its pod does not list."""

_log = logging.getLogger(__name__)


class ContainerNames:
    """Reads a pod once for each container that turns up: nothing about pods is watched for it."""

    def __init__(self, client: KubeClient, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._attempts: Counter[CgroupOwner] = Counter()
        self._due: dict[CgroupOwner, float] = {}
        self.known: dict[CgroupOwner, str] = {}

    async def look_up(self, unnamed: Mapping[CgroupOwner, PodName]) -> None:
        """Adds to ``known`` as far as the API server tells within ``TIMEOUT``."""
        now = self._clock()
        due = {owner: pod for owner, pod in unnamed.items() if self._due.get(owner, now) <= now}
        self._due.update(dict.fromkeys(due, now + RETRY_AFTER))
        try:
            async with asyncio.timeout(TIMEOUT):
                for pod in dict.fromkeys(due.values()):
                    await self._read(pod, [owner for owner, each in due.items() if each == pod])
        except TimeoutError:
            _log.warning("the API server is too slow to tell the containers of this node's pods")

    def forget(self, present: Collection[str]) -> None:
        """Drops the containers of pods other than those with the UIDs in ``present``."""
        self.known = {owner: name for owner, name in self.known.items() if owner.pod_uid in present}
        self._due = {owner: due for owner, due in self._due.items() if owner.pod_uid in present}
        self._attempts = Counter({each: n for each, n in self._attempts.items() if each.pod_uid in present})

    async def _read(self, pod: PodName, owners: Collection[CgroupOwner]) -> None:
        try:
            names = container_ids(await self._client.get(pod_path(*pod)))
        except (ApiError, UnreachableError, ValueError) as error:
            _log.warning("cannot read the containers of a pod: %s", error, extra={"pod": str(pod)})
            return
        for owner in owners:
            self._attempts[owner] += 1
            if owner.container_id in names:
                self.known[owner] = names[owner.container_id]
            elif self._attempts[owner] >= ATTEMPTS:
                self.known[owner] = NOBODYS


class _Terminated(msgspec.Struct):
    id: str | None = msgspec.field(name="containerID", default=None)


class _LastState(msgspec.Struct):
    terminated: _Terminated | None = None


class _Container(msgspec.Struct, rename="camel"):
    name: str
    id: str | None = msgspec.field(name="containerID", default=None)
    last_state: _LastState | None = None

    @property
    def ids(self) -> Iterator[str]:
        last = self.last_state.terminated if self.last_state else None
        yield from filter(None, (last.id if last else None, self.id))


class _Status(msgspec.Struct, rename="camel"):
    container_statuses: list[_Container] | None = None
    init_container_statuses: list[_Container] | None = None


class _Pod(msgspec.Struct):
    status: _Status | None = None


def container_ids(pod: Json) -> dict[str, str]:
    """Returns ID -> name of the containers that ``pod`` lists, those before a restart too.

    Raises:
        ValueError: it is no pod of the API server's.
    """
    status = msgspec.convert(pod, _Pod).status or _Status()
    listed = [*(status.container_statuses or ()), *(status.init_container_statuses or ())]
    return {each_id.rpartition("/")[2]: each.name for each in listed for each_id in each.ids}
