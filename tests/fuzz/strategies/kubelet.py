"""What the kubelet says: requests for units, PodResources, its checkpoint, also of other versions."""

import base64
from typing import Any

from hypothesis import strategies as st
from tests.fuzz.strategies.odd_json import encoded, mutated, nested
from tests.samples.plugin import RESOURCE, ids

from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as device_api
from gpushare_plugin.kubelet.proto import podresources_pb2 as resources_api

_IDS = (
    *ids(0, 1, 2, 3, 4, 15, 16, 17, 31, 32, 200_000),
    "",
    "x",
    "AAAA",
    "0-1",
    "GPU-0",
    "GPU-0-_-1",
    "\N{SNOWMAN}" * 3,
    "A" * 5000,
    "aa ",
)
unit_ids = st.lists(st.sampled_from(_IDS) | st.text(max_size=4), max_size=20)
"""Known ones, unknown ones, repeated ones."""

preferred: st.SearchStrategy[Any] = st.builds(
    lambda requests: device_api.PreferredAllocationRequest(
        container_requests=[
            device_api.ContainerPreferredAllocationRequest(
                available_deviceIDs=available, must_include_deviceIDs=included, allocation_size=size
            )
            for available, included, size in requests
        ]
    ),
    st.lists(
        st.tuples(
            unit_ids | st.just(ids(*range(32))),
            unit_ids | st.just([]),
            st.integers(-5, 40) | st.just(2**31 - 1),
        ),
        max_size=3,
    ),
)
allocate: st.SearchStrategy[Any] = st.builds(
    lambda requests: device_api.AllocateRequest(
        container_requests=[device_api.ContainerAllocateRequest(devices_ids=request) for request in requests]
    ),
    st.lists(unit_ids | st.just(ids(0, 1)), max_size=3),
)

_NAMES = st.sampled_from(["a", "default", "main", "", "\N{SNOWMAN}", "x" * 300, "a/b"])
_DEVICES = st.builds(
    lambda name, units: resources_api.ContainerDevices(resource_name=name, device_ids=units),
    st.sampled_from(
        [
            RESOURCE,
            "gpushare.io/slice",
            "aliyun.com/gpu-mem",
            "volcano.sh/gpu-memory",
            "nvidia.com/gpu",
            "example.com/x",
            "",
        ]
    ),
    unit_ids,
)
_CONTAINERS = st.builds(
    lambda name, devices: resources_api.ContainerResources(name=name, devices=devices),
    _NAMES,
    st.lists(_DEVICES, max_size=3),
)
pod_resources: st.SearchStrategy[Any] = st.builds(
    lambda pods: resources_api.ListPodResourcesResponse(
        pod_resources=[
            resources_api.PodResources(name=name, namespace=namespace, containers=containers)
            for name, namespace, containers in pods
        ]
    ),
    st.lists(st.tuples(_NAMES, _NAMES, st.lists(_CONTAINERS, max_size=3)), max_size=4),
)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Returns ``number`` as the wire has it."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def _unit_like(name: bytes, unit: bytes, tail: bytes) -> bytes:
    return _field(2, _field(1, name) + _field(2, unit) + tail)


def _tail_like_a_unit(name: bytes, unit: bytes) -> bytes:
    """Returns what may follow an ID, and has in it the beginning of an entry with ``unit``."""
    inner = len(_field(1, name) + _field(2, unit))
    length = 2 + inner + 2
    end = bytes([0x1A, length])
    return end + bytes([0x12, inner + length + 2]) + _field(1, name) + _field(2, unit) + end


def listed_with_units_in_their_tails(units: list[bytes]) -> bytes:
    """Returns an answer of PodResources with ``units`` of one container."""
    tail = _tail_like_a_unit(RESOURCE.encode(), b"07")
    return _field(1, _field(3, b"".join(_unit_like(RESOURCE.encode(), unit, tail) for unit in units)))


_WIRE_IDS = st.sampled_from([b"AAB", b"zz9", b"-_-", b"07", b"0-7", b"007", b"", b"\xff\xfe\xfd", b"AAAA"])
_TAILS = st.sampled_from(
    [
        b"",
        b"\x1a\x00",
        b"\x1a\x04\x0a\x02\x08\x01",
        _tail_like_a_unit(RESOURCE.encode(), b"07"),
        b"\x12\x03AAC",
    ]
)
ODD_FIELDS = (
    b"\x80\x80\x80\x80\x10\x00",  # a number that no field can have
    b"\x8a\x80\x80\x80\x80\x00\x01A",  # the tag of field 1, longer than a tag can be
    b"\x8a\x00\x01A",  # and as long as it can
    b"\x0a\x81\x00A",
    b"\x0a\x01\xff",  # no UTF-8
    b"\x0a\x01A",
    b"\x18" + b"\xff" * 9 + b"\x01",
    b"\x08" + b"\x80" * 10 + b"\x01",
    b"\x22\x7f",
    b"\x0b\x0c",
    b"\x0c",
    b"\x21" + bytes(8),
    b"\x25" + bytes(4),
    b"\x00\x00",
)


def odd_messages(field: bytes) -> list[bytes]:
    """Returns ``field`` at each level of a message, beside ordinary ones."""
    container = _field(1, b"main") + _unit_like(RESOURCE.encode(), b"AAB", b"")
    pod = _field(1, b"a") + _field(3, container + field)
    return [
        _field(1, pod) + field,
        _field(1, pod + field),
        _field(1, pod),
        _field(1, _field(1, b"AAB") + field),
    ]


def _messages(number: int, parts: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    """Some ``parts``, at times with something odd between them, in a field of this number."""
    mixed = st.lists(parts, max_size=6) | st.lists(parts | st.sampled_from(ODD_FIELDS), max_size=4)
    return mixed.map(lambda fields: _field(number, b"".join(fields)))


_ENTRIES = st.builds(
    lambda units, tail: b"".join(_unit_like(RESOURCE.encode(), unit, tail) for unit in units),
    st.lists(_WIRE_IDS, max_size=6),
    _TAILS,
)
_WIRE_NAMES = st.sampled_from([_field(1, b"a"), _field(1, b"b"), _field(2, b"default")])
pod_resources_bytes = _messages(1, _messages(3, _ENTRIES | _WIRE_NAMES) | _WIRE_NAMES)
"""An answer of PodResources, byte by byte: also as no program of ours would write it."""
preferred_bytes = _messages(
    1, st.builds(_field, st.sampled_from([1, 1, 1, 2]), _WIRE_IDS) | st.just(b"\x18\x05")
)
"""A request for units, in the same way."""

_NUMBERS = st.sampled_from(
    ["0", "1", "4096", "0,1", "-1", "x", "", "9" * 18, "9" * 5000, "٣", "²", "1e3", ",,,"]
)
_VARIABLES = st.dictionaries(
    st.sampled_from(
        [
            "GPUSHARE_CARD",
            "GPUSHARE_CARD_INDEX",
            "GPUSHARE_UNIT",
            "GPUSHARE_UNITS",
            "GPUSHARE_MEMORY_MIB",
            "GPUSHARE_CARD_MEMORY_MIB",
            "VOLCANO_GPU_ALLOCATED",
            "NVIDIA_VISIBLE_DEVICES",
            "ALIYUN_COM_GPU_MEM_IDX",
            "ALIYUN_COM_GPU_MEM_DEV",
        ]
    ),
    _NUMBERS | st.sampled_from(["GPU-0", "GPU-0,GPU-1", "1Gi"]),
)


@st.composite
def stored_entries(draw: st.DrawFn) -> dict[str, Any]:
    answer = device_api.ContainerAllocateResponse(
        envs=draw(_VARIABLES),
        devices=[
            device_api.DeviceSpec(
                container_path=draw(st.sampled_from(["/dev/gcu0", "/dev/gcu" + "9" * 400, "x"]))
            )
        ],
    ).SerializeToString()
    return {
        "PodUID": draw(st.sampled_from(["uid-a", ""])),
        "ContainerName": draw(_NAMES),
        "ResourceName": draw(
            st.sampled_from(
                [
                    RESOURCE,
                    "gpushare.io/slice",
                    "aliyun.com/gpu-mem",
                    "volcano.sh/gpu-number",
                    "example.com/x",
                ]
            )
        ),
        "DeviceIDs": draw(st.dictionaries(st.sampled_from(["-1", "0", "1"]), unit_ids) | st.just(ids(1))),
        "AllocResp": base64.b64encode(answer + draw(st.binary(max_size=2))).decode(),
    }


def _checkpoint(entries: list[Any], version: str) -> Any:
    data: dict[str, Any] = {"PodDeviceEntries": entries, "RegisteredDevices": {RESOURCE: ids(1, 2)}}
    match version:
        case "before 1.20":
            flat = [{**entry, "DeviceIDs": ["x"]} for entry in entries if isinstance(entry, dict)]
            return {"Data": {**data, "PodDeviceEntries": flat}, "Checksum": 1}
        case "only data":
            return data
        case "lower case":
            return {"data": {"podDeviceEntries": entries}}
        case "no entries":
            return {"Data": {**data, "PodDeviceEntries": None}, "Checksum": -1}
    return {"Data": data, "Checksum": 123, "BootID": "x"}


_SHAPES: st.SearchStrategy[Any] = st.builds(
    _checkpoint,
    st.lists(stored_entries(), min_size=1, max_size=3),
    st.sampled_from(["now", "now", "now", "before 1.20", "only data", "lower case", "no entries"]),
)
checkpoints: st.SearchStrategy[bytes] = (
    encoded(_SHAPES)
    | encoded(_SHAPES.flatmap(mutated))
    | st.binary(max_size=60)
    | st.sampled_from([b"", b"\0" * 4096, nested(100_000), b"null", b'{"Data":' + nested(5000) + b"}"])
)
"""The file's content."""
