"""The kubelet's records on its host: PodResources and the checkpoint."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import grpc

from gpushare_cli.errors import CannotLookError
from gpushare_core.audit.readers import read_environment
from gpushare_core.audit.records import (
    ContainerKey,
    HeldUnits,
    HostRecords,
    ListedContainer,
    PodKey,
    SeenCards,
    StoredContainer,
)
from gpushare_core.dialects.table import RESOURCES
from gpushare_plugin.decide.units.foreign_units import sort_ids
from gpushare_plugin.kubelet.checkpoint import FILE, CheckpointUnreadableError, stored_answers
from gpushare_plugin.kubelet.pod_resources import LIST, MAX_ANSWER
from gpushare_plugin.kubelet.proto import podresources_pb2 as api

CALL_SECONDS = 10.0


def read_host(kubelet: Path) -> HostRecords:
    """Reads the kubelet with the folder ``kubelet``. Environments come from its checkpoint, which keeps the
    plugin's responses."""
    return HostRecords(
        resources=listed_containers(pod_resources(kubelet / "pod-resources" / "kubelet.sock")),
        checkpoint=read_checkpoint(kubelet / "device-plugins" / FILE),
    )


def pod_resources(socket: Path) -> api.ListPodResourcesResponse:
    """Lists the devices of all active pods."""
    options = (("grpc.max_receive_message_length", MAX_ANSWER),)
    with grpc.insecure_channel(f"unix:{socket}", options=options) as channel:
        call = channel.unary_unary(
            LIST,
            request_serializer=api.ListPodResourcesRequest.SerializeToString,
            response_deserializer=api.ListPodResourcesResponse.FromString,
        )
        try:
            response: api.ListPodResourcesResponse = call(api.ListPodResourcesRequest(), timeout=CALL_SECONDS)
        except grpc.RpcError as error:
            raise CannotLookError(
                f"the kubelet does not answer at {socket}: {error.code().name}; run this as root on the node,"
                " and see that its kubelet runs"
            ) from error
        return response


def listed_containers(response: api.ListPodResourcesResponse) -> list[ListedContainer]:
    """Returns the containers that have units of gpushare."""
    return [container for pod in response.pod_resources for container in _containers(pod)]


def _containers(pod: api.PodResources) -> Iterator[ListedContainer]:
    for container in pod.containers:
        ids: dict[str, list[str]] = {}
        for devices in container.devices:
            if devices.resource_name in RESOURCES:
                ids.setdefault(devices.resource_name, []).extend(devices.device_ids)
        if units := tuple(_held(name, unit_ids) for name, unit_ids in ids.items()):
            key = ContainerKey(PodKey(pod.namespace, pod.name), container.name)
            yield ListedContainer(key=key, units=units)


def _held(name: str, ids: list[str]) -> HeldUnits:
    numbers, foreign = sort_ids(name, ids)
    return HeldUnits(resource=name, numbers=sorted({*numbers}), foreign=sum(run.count for run in foreign))


def read_checkpoint(path: Path) -> dict[ContainerKey, StoredContainer]:
    """Returns the containers for which the kubelet has stored units of gpushare."""
    found: dict[ContainerKey, StoredContainer] = {}
    try:
        for units, variables in stored_answers(path.read_bytes()):
            key = ContainerKey(PodKey("", "", units.uid), units.container)
            held = HeldUnits(
                resource=units.name,
                numbers=units.numbers,
                foreign=sum(run.count for run in units.foreign),
            )
            before = found.get(key, StoredContainer())
            told: SeenCards | None = read_environment(variables) or before.response
            found[key] = StoredContainer(units=tuple(chain(before.units, (held,))), response=told)
    except (OSError, CheckpointUnreadableError) as error:
        raise CannotLookError(
            f"the kubelet's checkpoint {path} cannot be read: {error}; run this as root on the node"
        ) from error
    return found
