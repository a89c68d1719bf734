"""The messages between kubelet and plugin: lists of devices, PodResources."""

from array import array
from collections.abc import Mapping, Sequence

from tests.fakes.books import Given
from tests.simulation.known_pod import KnownPod

from gpushare_plugin.decide.units.unit_ids import known_numbers
from gpushare_plugin.kubelet.proto import deviceplugin_pb2 as api
from gpushare_plugin.kubelet.proto import podresources_pb2 as resources


def listed_pod(pod: KnownPod) -> resources.PodResources:
    spec = pod.body["spec"]
    names = [
        init_container["name"] for init_container in (*spec.get("initContainers", ()), *spec["containers"])
    ]
    shown = [name for name in names if name not in pod.request.init_containers]
    return resources.PodResources(
        namespace=pod.name[0],
        name=pod.name[1],
        containers=[
            resources.ContainerResources(name=name, devices=_devices(pod.held.get(name, ())))
            for name in shown
        ],
    )


def _devices(given: Sequence[Given]) -> list[resources.ContainerDevices]:
    return [resources.ContainerDevices(resource_name=grant.resource, device_ids=grant.ids) for grant in given]


def numbers(ids: Sequence[str]) -> "array[int]":
    return array("I", sorted(known_numbers(ids)))


def listed_devices(message: bytes) -> Mapping[str, str]:
    answer = api.ListAndWatchResponse.FromString(message)
    return {device.ID: device.health for device in answer.devices}
