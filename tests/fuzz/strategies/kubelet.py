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
        container_requests=[device_api.ContainerAllocateRequest(devices_ids=each) for each in requests]
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
            flat = [{**each, "DeviceIDs": ["x"]} for each in entries if isinstance(each, dict)]
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
