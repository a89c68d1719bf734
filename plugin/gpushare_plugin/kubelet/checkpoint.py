"""Reads the checkpoint of the kubelet's device manager.

It is an internal, unversioned file of the kubelet's: evidence where it can be read, nothing to rely on.
Source: ``pkg/kubelet/cm/devicemanager/checkpoint`` of Kubernetes 1.36.
"""

from array import array
from collections.abc import Collection, Iterator, Mapping
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
from google.protobuf.message import DecodeError

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.text.json_object import UNREADABLE_JSON
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry, StoredUnits, read_answer
from gpushare_plugin.decide.units.foreign_units import sort_ids
from gpushare_plugin.decide.units.unit_runs import UnitRuns
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api

FILE = "kubelet_internal_checkpoint"
"""Its name in the kubelet's folder of device plugins."""
MAX_FILE = 64 * 2**20
"""Bytes: that of a node with 256,000 units has 2 MiB."""
DIGEST_SIZE = 16
"""Bytes."""


class _Resource(msgspec.Struct):
    """Of an entry of any resource: what else it says is its plugin's affair."""

    name: Any = msgspec.field(name="ResourceName")


class _DeviceEntry(msgspec.Struct, rename="pascal"):
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
_ENTRY = msgspec.json.Decoder(_DeviceEntry)
_LISTS = msgspec.json.Decoder(dict[str, msgspec.Raw])
"""NUMA node -> IDs; a device of several nodes is listed with each."""
_IDS = msgspec.json.Decoder(list[str])
_RUNS = UnitRuns(lambda _: b'"', b'",')
"""In a list as the kubelet writes it, without blanks, and with a comma after the last one."""


class CheckpointUnreadableError(Exception):
    """The file is not there, or not in the format that this version knows; the text says which."""


class CheckpointFile:
    """The file in the folder ``device_plugins``; what was read is kept until it changes."""

    def __init__(self, device_plugins: Path) -> None:
        self._file = device_plugins / FILE
        self._stamp: tuple[int, int, int, Collection[str]] | None = None
        self._entries: tuple[CheckpointEntry, ...] = ()
        self._known: dict[bytes, CheckpointEntry] = {}
        """By the digest of how they are written: those of the last file."""

    def read(self, names: Collection[str]) -> tuple[CheckpointEntry, ...]:
        """Returns the entries of the extended resources of all dialects. What cannot be read of others than
        ``names`` may be another plugin's, and is left out. Raises ``CheckpointUnreadableError``."""
        try:
            stat = self._file.stat()
            # The kubelet writes a new file each time.
            stamp = (stat.st_ino, stat.st_mtime_ns, stat.st_size, names)
            if stat.st_size > MAX_FILE:
                raise CheckpointUnreadableError(f"{self._file} is larger than {MAX_FILE >> 20} MiB")
            if stamp != self._stamp:
                known = dict(_decoded(self._file.read_bytes(), names, self._known))
                self._known, self._entries = known, tuple(known.values())
                self._stamp = stamp
        except OSError as error:
            raise CheckpointUnreadableError(f"{self._file}: {error.strerror or error}") from error
        except (DecodeError, *UNREADABLE_JSON) as error:
            raise CheckpointUnreadableError(f"{self._file} is in an unknown format: {error}") from error
        return self._entries


def _decoded(
    content: bytes, names: Collection[str], known: Mapping[bytes, CheckpointEntry]
) -> Iterator[tuple[bytes, CheckpointEntry]]:
    """Yields each entry with the digest of its bytes. Entries that are ``known`` by it stand as they were:
    with each admission the kubelet writes all of them."""
    for entry in _DECODER.decode(content).data.entries or ():
        digest = blake2b(entry, digest_size=DIGEST_SIZE).digest()
        if found := known.get(digest) or _ours(entry, names):
            yield digest, found


def _ours(entry: msgspec.Raw, names: Collection[str]) -> CheckpointEntry | None:
    """Returns None for other plugins' resources, and for what cannot be read and need not be."""
    name = _RESOURCE.decode(entry).name
    if not isinstance(name, str) or name not in RESOURCES:
        return None
    try:
        units, answer = _stored(_ENTRY.decode(entry), name)
        nodes = [device.container_path for device in answer.devices]
        mounts = {mount.container_path: mount.host_path for mount in answer.mounts}
        return read_answer(units, answer.envs, nodes, mounts)
    except (DecodeError, *UNREADABLE_JSON):
        if name in names:
            raise
        return None


def _stored(entry: _DeviceEntry, name: str) -> tuple[StoredUnits, api.ContainerAllocateResponse]:
    listed = [_units(ids) for ids in _LISTS.decode(entry.device_ids).values()]
    own, foreign = sort_ids(name, chain.from_iterable(others for _, others in listed))
    answer = api.ContainerAllocateResponse.FromString(entry.alloc_resp)
    numbers = array("I", sorted({*own, *chain.from_iterable(units for units, _ in listed)}))
    return StoredUnits(entry.pod_uid, entry.container_name, name, numbers, foreign), answer


def _units(ids: msgspec.Raw) -> tuple["array[int]", list[str]]:
    """Returns the numbers of the units that the list ``ids`` begins with, and the IDs after them."""
    raw = bytes(ids)
    content = raw[1:-1] + b"," if raw[:1] == b"[" else b""
    numbers, end = _RUNS.read(content, 0, len(content))
    return numbers, _IDS.decode(b"[%b]" % content[end:-1] if end else raw)


def stored_answers(content: bytes) -> Iterator[tuple[StoredUnits, Mapping[str, str]]]:
    """Yields each container's units of ours in a checkpoint with this ``content``, and the environment that
    the plugin answered, as it is: for whoever does not believe the plugin. Raises
    ``CheckpointUnreadableError``."""
    try:
        for raw in _DECODER.decode(content).data.entries or ():
            name = _RESOURCE.decode(raw).name
            if isinstance(name, str) and name in RESOURCES:
                units, answer = _stored(_ENTRY.decode(raw), name)
                yield units, dict(answer.envs)
    except (msgspec.DecodeError, DecodeError, RecursionError, UnicodeError) as error:
        raise CheckpointUnreadableError(
            f"the kubelet's checkpoint is in an unknown format: {error}"
        ) from error
