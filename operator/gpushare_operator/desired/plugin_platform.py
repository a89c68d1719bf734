"""What a policy's plugins see of their nodes, besides the kubelet's folders."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from gpushare_core.api.enums import Injection, MeasurementScope, MemoryIsolation, Mode, Source
from gpushare_core.api.policy import NodeRule, PolicySpec
from gpushare_core.api.share_node import INVENTORY_FOLDERS, ISOLATION_FOLDER
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
class NodeFolder:
    """A folder of the node that plugins are given at the same path."""

    name: str
    """Of the volume."""
    path: str
    kind: str = "DirectoryOrCreate"
    """The kubelet makes a missing folder: the plugin runs, and says what it misses."""
    is_writable: bool = False

    @property
    def volume(self) -> Json:
        return host_path(self.name, self.path, kind=self.kind)

    @property
    def mount(self) -> Json:
        return {**mount(self.name, self.path), **({} if self.is_writable else {"readOnly": True})}


ISOLATION = NodeFolder(name="isolation", path=ISOLATION_FOLDER, is_writable=True)
"""With isolation Hook: what its containers are given."""
CGROUPS = NodeFolder(name="cgroups", path="/sys/fs/cgroup", kind="")
"""With isolation Driver: the limit of a container is read back by its cgroup."""
CDI_FOLDERS = (
    NodeFolder(name="cdi-etc", path="/etc/cdi"),
    NodeFolder(name="cdi-run", path="/var/run/cdi"),
)
"""With isolation Driver and injection CDI: whether the specification has NVIDIA's hook that sets limits."""
FOLDERS = (
    *(NodeFolder(name=name, path=path) for name, path in INVENTORY_VOLUMES.items()),
    ISOLATION,
    CGROUPS,
    *CDI_FOLDERS,
)
"""All that plugins may be given, in the order in which they have them; as in
manifests/admission-operator.yaml."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginPlatform:
    runtime_class: str = ""
    """Empty: the node's default."""
    folders: tuple[NodeFolder, ...] = ()
    """Some of ``FOLDERS``, in their order."""
    log_folder: str = ""
    """The node's folder for the plugin's log; empty: no log is kept there."""
    host_processes: bool = False
    """Whether plugins see their nodes' processes: NVML names those of its own PID namespace, and their
    cgroups say to which container they belong."""

    @classmethod
    def of_spec(cls, spec: PolicySpec, *, has_isolation_files: bool = False) -> "PluginPlatform":
        """``has_isolation_files``: whether files of isolation may be on a node, although nobody asks for them
        any more."""
        needed = {folder for rule in spec.nodes for folder in _folders(rule)}
        if has_isolation_files:
            needed.add(ISOLATION)
        return cls(
            runtime_class=spec.plugin.runtime_class_name,
            folders=tuple(folder for folder in FOLDERS if folder in needed),
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
            folders=tuple(folder for folder in FOLDERS if volumes.get(folder.name) == folder.path),
            log_folder=volumes.get(LOGS, ""),
            host_processes=pod.get("hostPID", False),
        )

    @property
    def keeps_isolation_files(self) -> bool:
        return ISOLATION in self.folders

    @property
    def pod_fields(self) -> Json:
        runtime_class = {"runtimeClassName": self.runtime_class} if self.runtime_class else {}
        return {**runtime_class, **({"hostPID": True} if self.host_processes else {})}

    @property
    def arguments(self) -> list[str]:
        log = ["--log-folder", LOGS_MOUNT] if self.log_folder else []
        return [*log, *(["--isolation-folder", ISOLATION.path] if self.keeps_isolation_files else [])]

    @property
    def volumes(self) -> list[Json]:
        logs = host_path(LOGS, self.log_folder, kind="DirectoryOrCreate")
        return [*(folder.volume for folder in self.folders), *([logs] if self.log_folder else [])]

    @property
    def mounts(self) -> list[Json]:
        logs = [mount(LOGS, LOGS_MOUNT)] if self.log_folder else []
        return [*(folder.mount for folder in self.folders), *logs]


def _folders(rule: NodeRule) -> Iterator[NodeFolder]:
    """Yields what plugins need for ``rule``; for an inventory also where it leaves its nodes alone."""
    devices = rule.devices
    if devices.source is Source.INVENTORY:
        inventory = PurePosixPath(devices.inventory_path).parent.as_posix()
        yield from (folder for folder in FOLDERS if folder.path == inventory)
    if rule.mode is Mode.OFF:
        return
    if rule.isolation.memory is MemoryIsolation.HOOK:
        yield ISOLATION
    if rule.isolation.memory is MemoryIsolation.DRIVER and devices.source is Source.NVML:
        yield CGROUPS
        if devices.injection is Injection.CDI:
            yield from CDI_FOLDERS


def _looks_at_processes(spec: PolicySpec) -> bool:
    if spec.plugin.measurement.scope is not MeasurementScope.CONTAINERS:
        return False
    return any(rule.mode is not Mode.OFF and rule.devices.source is Source.NVML for rule in spec.nodes)


DEFAULT_PLATFORM = PluginPlatform()
