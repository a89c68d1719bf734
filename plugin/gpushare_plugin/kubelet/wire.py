"""Messages of the kubelet's with very many units in them, read from their bytes without an object for each.

What else is in them is decoded by protobuf. Source: the wire format of protocol buffers.
"""

from array import array
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import NamedTuple

from google.protobuf.message import DecodeError

from gpushare_plugin.decide.admit.preferred_allocation import PreferenceRequest
from gpushare_plugin.decide.held.pod_assignment import ListedDevices
from gpushare_plugin.decide.units.unit_ids import known_numbers
from gpushare_plugin.decide.units.unit_runs import UnitRuns
from gpushare_plugin.kubelet.proto import deviceplugin_pb2, podresources_pb2

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIZES = {_FIXED64: 8, _FIXED32: 4}
_MAX_VARINT, _MAX_TAG = 10, 5
_NUMBERS = range(1, 2**29)
"""Of fields."""
SMALL = 1024
"""Bytes of a pod, some 25 units: up to that protobuf, with all its objects, takes less CPU than we do."""

_PODS, _POD_NAME, _POD_NAMESPACE, _CONTAINERS = 1, 1, 2, 3
"""Numbers of fields of ``ListPodResourcesResponse`` and ``PodResources``."""
_CONTAINER_NAME, _DEVICES = 1, 2
"""Of ``ContainerResources``."""
_CONTAINER_REQUESTS, _AVAILABLE = 1, 1
"""Of ``PreferredAllocationRequest`` and ``ContainerPreferredAllocationRequest``."""
_TAG = bytes([_DEVICES << 3 | _BYTES])


class _Field(NamedTuple):
    """Its tag begins at ``at``; its value is ``content[start:end]``."""

    number: int
    kind: int
    at: int
    start: int
    end: int


class ListedPod(NamedTuple):
    """What PodResources say of one pod."""

    namespace: str
    name: str
    containers: dict[str, dict[str, ListedDevices]]
    """Container -> extended resource of ours -> its devices."""


class PodMessage(NamedTuple):
    """One pod in an answer, not decoded yet."""

    answer: bytes
    field: _Field
    content: bytes
    """All of it where it is short; else empty, for the kubelet lists units in another order each time."""

    def read(self, resources: Collection[str]) -> ListedPod:
        if self.content:
            return _small_pod(self.content, resources)
        return _pod(self.answer, self.field, resources)


def pod_messages(answer: bytes) -> Iterator[PodMessage]:
    """Yields the pods of ``answer``, a ``ListPodResourcesResponse``. Raises ``DecodeError`` if it is none."""
    for message in _messages(answer, _whole(answer), _PODS):
        is_small = message.end - message.start <= SMALL
        yield PodMessage(answer, message, answer[message.start : message.end] if is_small else b"")


def _small_pod(content: bytes, resources: Collection[str]) -> ListedPod:
    read = podresources_pb2.PodResources.FromString(content)
    containers = {container.name: _by_resource(container, resources) for container in read.containers}
    return ListedPod(read.namespace, read.name, containers)


def _by_resource(
    container: podresources_pb2.ContainerResources, resources: Collection[str]
) -> dict[str, ListedDevices]:
    found: dict[str, ListedDevices] = {}
    for device in container.devices:
        if (name := device.resource_name) in resources:
            found.setdefault(name, ListedDevices()).others.extend(device.device_ids)
    return found


def _pod(content: bytes, pod: _Field, resources: Collection[str]) -> ListedPod:
    return ListedPod(
        namespace=_text(content, pod, _POD_NAMESPACE),
        name=_text(content, pod, _POD_NAME),
        containers=dict(
            _container(content, message, resources) for message in _messages(content, pod, _CONTAINERS)
        ),
    )


def preference_requests(content: bytes) -> list[PreferenceRequest]:
    """Returns what a ``PreferredAllocationRequest`` asks for each container. Raises ``DecodeError``."""
    return [
        _preference(content, message) for message in _messages(content, _whole(content), _CONTAINER_REQUESTS)
    ]


def _preference(content: bytes, message: _Field) -> PreferenceRequest:
    """The kubelet names all units that are free, and hardly anything besides."""
    available, rest, at = array("I"), bytearray(), message.start
    while at < message.end:
        numbers, end = _AVAILABLE_UNITS.read(content, at, message.end)
        available += numbers
        if end == at:
            end = _field(content, at, message.end).end
            rest += content[at:end]
        at = end
    other = deviceplugin_pb2.ContainerPreferredAllocationRequest.FromString(bytes(rest))
    available.extend(known_numbers(other.available_deviceIDs))
    included = array("I", known_numbers(other.must_include_deviceIDs))
    return PreferenceRequest(available=available, included=included, units=other.allocation_size)


_AVAILABLE_UNITS = UnitRuns(lambda length: bytes([_AVAILABLE << 3 | _BYTES, length]))


def _container(
    content: bytes, container: _Field, resources: Collection[str]
) -> tuple[str, dict[str, ListedDevices]]:
    """Returns its name and its devices.

    The kubelet lists every device in an entry of its own, and all of a container look alike.
    """
    name, found, at = "", dict[str, ListedDevices](), container.start
    while at < container.end:
        field = _field(content, at, container.end)
        at = field.end
        if (field.number, field.kind) == (_DEVICES, _BYTES):
            at = _take_devices(content, field, container.end, resources, found)
        elif (field.number, field.kind) == (_CONTAINER_NAME, _BYTES):
            name = _decoded(content[field.start : field.end])
    return name, found


def _take_devices(
    content: bytes, entry: _Field, stop: int, resources: Collection[str], found: dict[str, ListedDevices]
) -> int:
    """Adds the devices of ``entry`` to what was ``found``, and of those after it that look alike. Returns
    their end."""
    devices = podresources_pb2.ContainerDevices.FromString(content[entry.start : entry.end])
    if devices.resource_name not in resources:
        return entry.end
    listed = found.setdefault(devices.resource_name, ListedDevices())
    runs = _runs_like(content[entry.start : entry.end], devices)
    numbers, end = runs.read(content, entry.at, stop) if runs else (array("I"), entry.at)
    if end == entry.at:
        listed.others.extend(devices.device_ids)
        return entry.end
    listed.numbers.extend(numbers)
    return end


def _runs_like(entry: bytes, devices: podresources_pb2.ContainerDevices) -> UnitRuns | None:
    """Returns how units stand in entries that differ from ``entry`` in the ID alone.

    None where it is not of one unit of ours, or written in an unusual way.
    """
    if len(devices.device_ids) != 1 or not [*known_numbers(devices.device_ids)]:
        return None
    name, unit = devices.resource_name.encode(), devices.device_ids[0].encode()
    begin = _before_id(name, len(unit)) + unit
    tail = entry[len(begin) :]
    # What looks like a unit itself may be taken for one.
    return _runs(name, tail) if entry.startswith(begin) and name not in tail else None


def _before_id(name: bytes, length: int) -> bytes:
    return b"\x0a" + _varint(len(name)) + name + bytes([0x12, length])


@lru_cache(maxsize=32)
def _runs(name: bytes, tail: bytes) -> UnitRuns:
    """``tail``: what follows the ID, such as the NUMA node."""

    def head(length: int) -> bytes:
        begin = _before_id(name, length)
        return _TAG + _varint(len(begin) + length + len(tail)) + begin

    return UnitRuns(head, tail)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _whole(content: bytes) -> _Field:
    return _Field(0, _BYTES, 0, 0, len(content))


def _messages(content: bytes, message: _Field, number: int) -> Iterator[_Field]:
    """Yields the fields ``number`` of ``message`` that have a length."""
    at = message.start
    while at < message.end:
        found = _field(content, at, message.end)
        if (found.number, found.kind) == (number, _BYTES):
            yield found
        at = found.end


def _text(content: bytes, message: _Field, number: int) -> str:
    """Returns the last one of the fields ``number``, as protobuf has it; empty where there is none."""
    found = [_decoded(content[field.start : field.end]) for field in _messages(content, message, number)]
    return found[-1] if found else ""


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(str(error)) from error


def _field(content: bytes, at: int, stop: int) -> _Field:
    """Raises ``DecodeError``."""
    tag, tag_end = _read_varint(content, at, stop)
    number, kind, start = tag >> 3, tag & 7, tag_end
    if kind == _VARINT:
        _, end = _read_varint(content, start, stop)
    elif kind == _BYTES:
        length, start = _read_varint(content, start, stop)
        end = start + length
    elif kind in _SIZES:
        end = start + _SIZES[kind]
    else:
        raise DecodeError(f"a field of kind {kind}")
    if number not in _NUMBERS or tag_end - at > _MAX_TAG or end > stop:
        raise DecodeError("a field without a number, or longer than its message")
    return _Field(number, kind, at, start, end)


def _read_varint(content: bytes, at: int, stop: int) -> tuple[int, int]:
    number = 0
    for place in range(min(_MAX_VARINT, stop - at)):
        byte = content[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return number, at + place + 1
    raise DecodeError("a number without an end")
