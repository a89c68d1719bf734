"""What a policy's plugins see of their nodes, besides the kubelet's folders."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from gpushare_core.api.enums import MeasurementScope, Mode, Source
from gpushare_core.api.policy import PolicySpec
from gpushare_core.api.share_node import INVENTORY_FOLDERS
from gpushare_core.text.json_object import Json
from gpushare_operator.desired.pod_template import host_path, mount

INVENTORY_VOLUMES: Mapping[str, str] = {
    f"inventory{PurePosixPath(folder).parent.as_posix().replace('/', '-')}": folder
    for folder in INVENTORY_FOLDERS
}
"""Name of a volume -> the folder. If only the file were mounted, a plugin would not see another one that is
renamed over it."""

LOGS, LOGS_MOUNT = "logs", "/logs"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginPlatform:
    runtime_class: str = ""
    """Empty: the node's default."""
    inventory_folders: tuple[str, ...] = ()
    """In the order of ``INVENTORY_FOLDERS``."""
    log_folder: str = ""
    """The node's folder for the plugin's log; empty: no log is kept there."""
    host_processes: bool = False
    """Whether plugins see their nodes' processes: NVML names those of its own PID namespace, and their
    cgroups say to which container they belong."""

    @classmethod
    def of_spec(cls, spec: PolicySpec) -> "PluginPlatform":
        devices = (rule.devices for rule in spec.nodes)
        paths = (device.inventory_path for device in devices if device.source is Source.INVENTORY)
        folders = {PurePosixPath(path).parent.as_posix() for path in paths}
        return cls(
            runtime_class=spec.plugin.runtime_class_name,
            inventory_folders=_ordered(folders),
            log_folder=spec.plugin.log_folder,
            host_processes=_looks_at_processes(spec),
        )

    @classmethod
    def of_daemon_set(cls, body: Json) -> "PluginPlatform":
        pod = body.get("spec", {}).get("template", {}).get("spec", {})
        volumes = {
            volume.get("name"): volume.get("hostPath", {}).get("path", "")
            for volume in pod.get("volumes", ())
        }
        return cls(
            runtime_class=pod.get("runtimeClassName", ""),
            inventory_folders=_ordered(set(volumes.values())),
            log_folder=volumes.get(LOGS, ""),
            host_processes=pod.get("hostPID", False),
        )

    @property
    def pod_fields(self) -> Json:
        runtime_class = {"runtimeClassName": self.runtime_class} if self.runtime_class else {}
        return {**runtime_class, **({"hostPID": True} if self.host_processes else {})}

    @property
    def arguments(self) -> list[str]:
        return ["--log-folder", LOGS_MOUNT] if self.log_folder else []

    @property
    def volumes(self) -> list[Json]:
        """The kubelet makes a missing folder: the plugin runs, and says which file it misses."""
        folders = {**self._inventories, **({LOGS: self.log_folder} if self.log_folder else {})}
        return [host_path(name, folder, kind="DirectoryOrCreate") for name, folder in folders.items()]

    @property
    def mounts(self) -> list[Json]:
        inventories = [
            {**mount(name, folder), "readOnly": True} for name, folder in self._inventories.items()
        ]
        return [*inventories, *([mount(LOGS, LOGS_MOUNT)] if self.log_folder else [])]

    @property
    def _inventories(self) -> dict[str, str]:
        volumes = INVENTORY_VOLUMES.items()
        return {name: folder for name, folder in volumes if folder in self.inventory_folders}


def _looks_at_processes(spec: PolicySpec) -> bool:
    if spec.plugin.measurement.scope is not MeasurementScope.CONTAINERS:
        return False
    return any(rule.mode is not Mode.OFF and rule.devices.source is Source.NVML for rule in spec.nodes)


def _ordered(paths: set[str]) -> tuple[str, ...]:
    return tuple(folder for folder in INVENTORY_FOLDERS if folder in paths)


DEFAULT_PLATFORM = PluginPlatform()
