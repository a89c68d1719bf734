"""The containers of a node, from the files in which its container runtime records them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class HostPath:
    """A path of the node that a container sees at its own path."""

    host: str
    container: str
    read_only: bool


@dataclass(frozen=True)
class ContainerRecord:
    """A container on a node. `pid` is its PID within the node; `state` is created, running or exited."""

    id: str
    node: str
    namespace: str
    pod: str
    pod_uid: str
    container: str
    attempt: int
    pid: int
    env: Mapping[str, str]
    state: str
    exit_code: int
    started_at: str
    mounts: tuple[HostPath, ...] = ()
    devices: tuple[HostPath, ...] = ()
    cdi_devices: tuple[str, ...] = ()
    """The qualified names that the runtime was given; this runtime ignores them."""

    @classmethod
    def from_json(cls, node: str, content: Mapping[str, Any]) -> "ContainerRecord":
        return cls(
            id=content["id"],
            node=node,
            namespace=content["namespace"],
            pod=content["pod"],
            pod_uid=content["podUID"],
            container=content["container"],
            attempt=content["attempt"],
            pid=content["pid"],
            env=content["env"],
            state=content["state"],
            exit_code=content["exitCode"],
            started_at=content["startedAt"],
            mounts=_paths(content["mounts"]),
            devices=_paths(content["devices"]),
            cdi_devices=tuple(content["cdiDevices"]),
        )


def _paths(content: Sequence[Mapping[str, Any]]) -> tuple[HostPath, ...]:
    return tuple(HostPath(path["host"], path["container"], path["readOnly"]) for path in content)


def read_records(node: str, folder: Path) -> list[ContainerRecord]:
    """Returns the containers recorded in `folder`, without those that are deleted meanwhile."""
    records = []
    for path in sorted(folder.glob("*.json")):
        try:
            content = json.loads(path.read_text())
        except FileNotFoundError:
            continue
        records.append(ContainerRecord.from_json(node, content))
    return records
