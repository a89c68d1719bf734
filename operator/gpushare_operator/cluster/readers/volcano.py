"""How Volcano's configuration, and the backup of it, are read."""

from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.object_parts import is_deleting
from gpushare_operator.cluster.objects import (
    ReadResult,
    VolcanoBackupObject,
    VolcanoConfigObject,
    VolcanoLocation,
)


def read_volcano_backup(body: Json) -> VolcanoBackupObject:
    """A damaged one is read as an empty one."""
    metadata, data = body["metadata"], body.get("data") or {}
    return VolcanoBackupObject(
        name=metadata["name"],
        uid=metadata["uid"],
        location=VolcanoLocation(data.get("namespace", ""), data.get("configMap", ""), data.get("key", "")),
        original=data.get("original", ""),
        written=data.get("written", ""),
        additions=_additions(data.get("additions", "")),
        deleting=is_deleting(body),
    )


def _additions(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (part.partition("=") for part in text.split(",") if part)
    return tuple((plugin, whole) for plugin, _, whole in pairs)


def read_volcano_config(body: Json, key: str) -> VolcanoConfigObject:
    metadata = body["metadata"]
    return VolcanoConfigObject(
        result=ReadResult.FOUND,
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        text=(body.get("data") or {}).get(key),
    )
