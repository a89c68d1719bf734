"""Client of the kubelet's PodResources API: which units it has assigned to which containers."""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pod_assignment import PodAssignment, place
from gpushare_plugin.decide.held.pods import PodName
from gpushare_plugin.kubelet.proto import podresources_pb2 as api
from gpushare_plugin.kubelet.wire import PodMessage, pod_messages

LIST = "/v1.PodResourcesLister/List"
MAX_ANSWER = 64 * 2**20
"""Bytes: the kubelet sends some 30 for every unit that is held."""
BUSY_DELAY = 0.05
"""Seconds. The kubelet takes 100 calls a second, of all its clients together, and refuses the others."""

_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_ANSWER),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2000),
)


class PodResourcesUnavailableError(Exception):
    """The kubelet did not answer in time."""


class PodResources:
    """Use as an asynchronous context manager."""

    def __init__(self, socket: Path, resources: Collection[str]) -> None:
        self._socket = socket
        self._reader = AnswerReader(resources)
        self._latest = ""
        """Process that was seen last."""

    async def __aenter__(self) -> "PodResources":
        self._channel = grpc.aio.insecure_channel(f"unix://{self._socket}", options=_OPTIONS)
        self._call: Any = self._channel.unary_unary(
            LIST, request_serializer=api.ListPodResourcesRequest.SerializeToString
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._channel.close()

    async def assigned_devices(self, *, timeout: float) -> AssignedDevices:
        """Returns what all active pods have now, the one that is being admitted included.

        A kubelet that was restarted does not know yet of all: ``AssignedDevices.kubelet`` tells one process
        from the next. Raises ``PodResourcesUnavailableError`` where no answer comes within ``timeout``
        seconds, it is not from one process, or it cannot be decoded.
        """
        try:
            async with asyncio.timeout(timeout):
                before = self._process()
                answer = await self._list()
                if (process := self._process()) != before:
                    raise PodResourcesUnavailableError(f"{self._socket}: the kubelet restarts")
                return replace(self._reader.read(answer), kubelet=process)
        except DecodeError as error:
            raise PodResourcesUnavailableError(
                f"{self._socket}: an answer that is no list of pods: {error}"
            ) from error
        except grpc.aio.AioRpcError as error:
            raise PodResourcesUnavailableError(
                f"{self._socket}: {error.code().name} {error.details()}"
            ) from error
        except TimeoutError as error:
            raise PodResourcesUnavailableError(f"{self._socket}: no answer in {timeout} s") from error

    def _process(self) -> str:
        """Returns a text that is another one for each process: it makes its socket anew. Where somebody took
        the socket away, it is the process whose connection is still there."""
        with suppress(OSError):
            stat = self._socket.stat()
            self._latest = f"{stat.st_ino} {stat.st_mtime_ns}"
        return self._latest

    async def _list(self) -> bytes:
        while True:
            try:
                answer: bytes = await self._call(api.ListPodResourcesRequest())
                return answer
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                    raise
            await asyncio.sleep(BUSY_DELAY)


class AnswerReader:
    """Reads what answers of PodResources say of ``resources``. Each admission brings an answer with all pods
    of the node: those that are listed as before are not decoded again."""

    def __init__(self, resources: Collection[str]) -> None:
        self._resources = frozenset(resources)
        self._known: dict[bytes, PodAssignment] = {}
        """Of the last answer."""

    def read(self, answer: bytes) -> AssignedDevices:
        """Returns what ``answer``, a ``ListPodResourcesResponse``, says. No container has units of two of the
        resources. Two pods can have one name: a static pod, and one that took its name while it had no
        mirror. Raises ``DecodeError``."""
        before, self._known = self._known, {}
        return AssignedDevices(place(self._read(pod_message, before) for pod_message in pod_messages(answer)))

    def _read(self, message: PodMessage, before: Mapping[bytes, PodAssignment]) -> PodAssignment:
        found = before.get(message.content)
        if found is None:
            pod = message.read(self._resources)
            found = PodAssignment.of_devices(PodName(pod.namespace, pod.name), pod.containers)
        if message.content:
            self._known[message.content] = found
        return found


def read_assigned(answer: bytes, resources: Collection[str]) -> AssignedDevices:
    """Returns what a single ``answer`` says, as ``AnswerReader``."""
    return AnswerReader(resources).read(answer)
