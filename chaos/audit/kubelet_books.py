"""The kubelet's two books, read without any program of ours."""

import base64
import binascii
import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from google.protobuf.message import DecodeError

from gpushare_core.audit.readers import read_environment
from gpushare_core.audit.records import (
    ContainerKey,
    HeldUnits,
    ListedContainer,
    PodKey,
    SeenCards,
    StoredContainer,
)
from gpushare_core.dialects.table import RESOURCES
from gpushare_plugin.decide.units.unit_ids import UnknownUnitError, decode_id
from gpushare_plugin.kubelet.proto import deviceplugin_pb2, podresources_pb2


def read_resources(answer: podresources_pb2.ListPodResourcesResponse) -> list[ListedContainer]:
    """Returns every container that has units, by PodResources."""
    found = []
    for pod in answer.pod_resources:
        for container in pod.containers:
            ids: dict[str, list[str]] = defaultdict(list)
            for device in container.devices:
                ids[device.resource_name].extend(device.device_ids)
            units = tuple(held(name, ids[name]) for name in ids if name in RESOURCES)
            if units:
                key = ContainerKey(PodKey(pod.namespace, pod.name), container.name)
                found.append(ListedContainer(key=key, units=units))
    return found


def read_checkpoint(path: Path) -> dict[ContainerKey, StoredContainer] | None:
    """Returns the kubelet's checkpoint; None where it cannot be read."""
    try:
        entries = json.loads(path.read_bytes())["Data"]["PodDeviceEntries"] or ()
    except (OSError, ValueError, KeyError):
        return None
    units: dict[ContainerKey, list[HeldUnits]] = defaultdict(list)
    told: dict[ContainerKey, SeenCards | None] = {}
    for entry in entries:
        if entry["ResourceName"] in RESOURCES:
            key = ContainerKey(PodKey("", "", entry["PodUID"]), entry["ContainerName"])
            ids = {identifier for ids in entry["DeviceIDs"].values() for identifier in ids}
            units[key].append(held(entry["ResourceName"], ids))
            told[key] = _told(entry["AllocResp"])
    return {key: StoredContainer(units=tuple(ids), response=told[key]) for key, ids in units.items()}


def held(resource: str, ids: Iterable[str]) -> HeldUnits:
    numbers, foreign = list[int](), 0
    for identifier in ids:
        try:
            numbers.append(decode_id(identifier))
        except UnknownUnitError:
            foreign += 1
    return HeldUnits(resource=resource, numbers=tuple(sorted({*numbers})), foreign=foreign)


def _told(answer: str) -> SeenCards | None:
    try:
        response = deviceplugin_pb2.ContainerAllocateResponse.FromString(base64.b64decode(answer))
    except (binascii.Error, DecodeError):
        return None
    return read_environment(dict(response.envs))
