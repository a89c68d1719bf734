"""Tools of the systems that gpushare stands in for, written from what those systems publish (peers.md) alone.

They know nothing of gpushare. Each reads strictly: every field, no other, and of the right JSON type.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Fields = Mapping[str, type]

ALIYUN_NODE: Fields = {"name": str, "totalGPU": int, "usedGPU": int, "devs": list}
ALIYUN_DEVICE: Fields = {"id": int, "totalGPU": int, "usedGPU": int, "pods": list}
ALIYUN_POD: Fields = {"name": str, "namespace": str, "usedGPU": int}
GCU_NODE: Fields = {"name": str, "totalGCU": int, "usedGCU": int, "availableGCU": int, "devices": list}
GCU_DEVICE: Fields = {"id": int, "totalGCU": int, "usedGCU": int, "availableGCU": int, "pods": list}
GCU_POD: Fields = {"name": str, "namespace": str, "uid": str, "createTime": str, "usedGCU": int}


class UnknownFormatError(Exception):
    """The system's own tool would not understand this."""


@dataclass(frozen=True, slots=True)
class CardUse:
    """One card as an inspect tool prints it: who uses how much."""

    total: int
    used: int
    pods: Mapping[str, int]


def _object(value: Any, fields: Fields) -> dict[str, Any]:
    if not isinstance(value, dict) or value.keys() != fields.keys():
        raise UnknownFormatError(f"{value!r} has not exactly the fields {sorted(fields)}")
    for name, kind in fields.items():
        if type(value[name]) is not kind:
            raise UnknownFormatError(f"{name} is {value[name]!r}, not of type {kind.__name__}")
    return value


def _nodes(body: str) -> list[Any]:
    answer = json.loads(body)
    if not isinstance(answer, dict) or not {"nodes"} <= answer.keys() <= {"nodes", "error"}:
        raise UnknownFormatError(f"{answer!r} is no answer of inspect")
    if error := answer.get("error"):
        raise LookupError(error)
    nodes: list[Any] = answer["nodes"]
    return nodes


def read_aliyun_inspect(body: str) -> dict[str, dict[int, CardUse]]:
    """Returns node -> index of the card -> its use. Raises ``LookupError`` with the error that it tells."""
    found = {}
    for item in _nodes(body):
        node = _object(item, ALIYUN_NODE)
        devices = [_object(device, ALIYUN_DEVICE) for device in node["devs"]]
        _same(node["totalGPU"], sum(device["totalGPU"] for device in devices))
        _same(node["usedGPU"], sum(device["usedGPU"] for device in devices))
        found[node["name"]] = {
            device["id"]: CardUse(
                device["totalGPU"],
                device["usedGPU"],
                {pod["name"]: pod["usedGPU"] for pod in (_object(pod, ALIYUN_POD) for pod in device["pods"])},
            )
            for device in devices
        }
    return found


def read_gcu_inspect(body: str) -> dict[str, dict[int, CardUse]]:
    """As ``read_aliyun_inspect``, for GCUShare."""
    found = {}
    for item in _nodes(body):
        node = _object(item, GCU_NODE)
        devices = [_object(device, GCU_DEVICE) for device in node["devices"]]
        for sums in (node, *devices):
            _same(sums["availableGCU"], sums["totalGCU"] - sums["usedGCU"])
        _same(node["totalGCU"], sum(device["totalGCU"] for device in devices))
        _same(node["usedGCU"], sum(device["usedGCU"] for device in devices))
        found[node["name"]] = {
            device["id"]: CardUse(
                device["totalGCU"],
                device["usedGCU"],
                {pod["name"]: pod["usedGCU"] for pod in (_object(pod, GCU_POD) for pod in device["pods"])},
            )
            for device in devices
        }
    return found


def _same(one: int, other: int) -> None:
    if one != other:
        raise UnknownFormatError(f"sums do not agree: {one} and {other}")


def _decimal(text: Any) -> int:
    if not isinstance(text, str) or not text.isascii() or not text.isdecimal():
        raise UnknownFormatError(f"{text!r} is no decimal number in a string")
    return int(text)


def _flag(text: Any) -> bool:
    if text not in ("true", "false"):
        raise UnknownFormatError(f"{text!r} is neither true nor false")
    return bool(text == "true")


AnnotationReader = Callable[[Any], Any]

ANNOTATIONS: Mapping[str, Mapping[str, AnnotationReader]] = {
    "aliyun.com": {
        "ALIYUN_COM_GPU_MEM_IDX": _decimal,
        "ALIYUN_COM_GPU_MEM_POD": _decimal,
        "ALIYUN_COM_GPU_MEM_DEV": _decimal,
        "ALIYUN_COM_GPU_MEM_ASSIGNED": _flag,
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": _decimal,
    },
    "volcano.sh": {
        "volcano.sh/gpu-index": lambda text: [_decimal(part) for part in text.split(",")],
        "volcano.sh/predicate-time": _decimal,
    },
    "enflame.com": {
        "enflame.com/gcu-device-id": _decimal,
        "enflame.com/gcu-device-memory": _decimal,
        "enflame.com/gcu-device-memory-request": _decimal,
        "enflame.com/gcu-device-assigned": _flag,
        "enflame.com/gcu-device-assign-time": _decimal,
    },
    "gpushare.io": {},
    "tuya.com": {},
}
"""What each system's scheduler leaves on a pod that it bound."""


def read_annotations(system: str, annotations: Mapping[str, str]) -> dict[str, Any]:
    """Returns what ``system`` reads of a pod after its bind; all of its keys have to be there."""
    readers = ANNOTATIONS[system]
    if missing := readers.keys() - annotations.keys():
        raise UnknownFormatError(f"{sorted(missing)} are missing")
    return {key: read(annotations[key]) for key, read in readers.items()}


def kubectl_inspect_gpushare(nodes: list[Any], pods: list[Any]) -> dict[str, dict[int, int]]:
    """Returns node -> index of the card -> units in use, as Aliyun's plugin of kubectl computes it: from
    the nodes' capacity and the pods' annotations."""
    table = {}
    for node in nodes:
        capacity = node["status"]["capacity"]
        cards = _decimal(capacity["aliyun.com/gpu-count"])
        _same(int(capacity["aliyun.com/gpu-mem"]) % cards, 0)
        table[node["metadata"]["name"]] = dict.fromkeys(range(cards), 0)
    for pod in pods:
        annotations = pod["metadata"].get("annotations") or {}
        if pod["spec"].get("nodeName") in table and "ALIYUN_COM_GPU_MEM_IDX" in annotations:
            read = read_annotations("aliyun.com", annotations)
            table[pod["spec"]["nodeName"]][read["ALIYUN_COM_GPU_MEM_IDX"]] += read["ALIYUN_COM_GPU_MEM_POD"]
    return table
