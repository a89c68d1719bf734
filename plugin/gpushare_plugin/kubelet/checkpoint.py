"""Reads the checkpoint of the kubelet's device manager.

It is an internal, unversioned file of the kubelet's: a witness where it can be read, nothing to rely on.
Source: ``pkg/kubelet/cm/devicemanager/checkpoint`` of Kubernetes 1.36.
"""

from array import array
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from google.protobuf.message import DecodeError

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.checkpoint import CheckpointEntry, StoredUnits, read_variables
from gpushare_plugin.decide.unit_ids import known_numbers
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api

FILE = "kubelet_internal_checkpoint"
"""Its name in the kubelet's folder of device plugins."""


class _Resource(msgspec.Struct):
    """Of an entry of any resource: what else it says is its plugin's affair."""

    name: Any = msgspec.field(name="ResourceName")


class _Entry(msgspec.Struct, rename="pascal"):
    pod_uid: str = msgspec.field(name="PodUID")
    container_name: str
    device_ids: msgspec.Raw = msgspec.field(name="DeviceIDs")
    """Decoded one by one: those of a whole node would take some 15 MB for a moment."""
    alloc_resp: bytes = b""


class _Data(msgspec.Struct):
    entries: list[msgspec.Raw] | None = msgspec.field(name="PodDeviceEntries")


class _Checkpoint(msgspec.Struct):
    data: _Data = msgspec.field(name="Data")


_DECODER = msgspec.json.Decoder(_Checkpoint)
_RESOURCE = msgspec.json.Decoder(_Resource)
_ENTRY = msgspec.json.Decoder(_Entry)
_IDS = msgspec.json.Decoder(dict[str, list[str]])
"""NUMA node -> IDs; a device of several nodes is listed with each."""


class CheckpointUnreadableError(Exception):
    """The file is not there, or not in the format that this version knows; the text says which."""


class CheckpointFile:
    """The file in the folder ``device_plugins``; what was read is kept until it changes."""

    def __init__(self, device_plugins: Path, dialect: Dialect) -> None:
        self._file = device_plugins / FILE
        self._dialect = dialect
        self._stamp: tuple[int, int, int] | None = None
        self._entries: tuple[CheckpointEntry, ...] = ()

    def read(self) -> tuple[CheckpointEntry, ...]:
        """Returns the entries of the dialect's resources.

        Raises:
            CheckpointUnreadableError: what pods have is not known from here.
        """
        try:
            stat = self._file.stat()
            stamp = (stat.st_ino, stat.st_mtime_ns, stat.st_size)  # the kubelet writes a new file each time
            if stamp != self._stamp:
                self._entries = tuple(self._decoded(self._file.read_bytes()))
                self._stamp = stamp
        except OSError as error:
            raise CheckpointUnreadableError(f"{self._file}: {error.strerror or error}") from error
        except (msgspec.DecodeError, DecodeError, RecursionError, UnicodeError) as error:
            raise CheckpointUnreadableError(f"{self._file} is in an unknown format: {error}") from error
        return self._entries

    def _decoded(self, content: bytes) -> Iterator[CheckpointEntry]:
        for entry in _DECODER.decode(content).data.entries or ():
            name = _RESOURCE.decode(entry).name
            if isinstance(name, str) and (resource := self._dialect.resources.get(name)):
                yield self._entry(_ENTRY.decode(entry), resource)

    def _entry(self, entry: _Entry, resource: ResourceClass) -> CheckpointEntry:
        ids = chain.from_iterable(_IDS.decode(entry.device_ids).values())
        variables = api.ContainerAllocateResponse.FromString(entry.alloc_resp).envs
        numbers = array("I", sorted(set(known_numbers(ids))))
        units = StoredUnits(entry.pod_uid, entry.container_name, resource, numbers)
        return read_variables(units, variables, self._dialect)
