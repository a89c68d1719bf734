"""How GPU sharing is switched on in the ConfigMap of Volcano's scheduler, and off again.

The operator writes a backup before the edit and deletes it after restoring: while the backup is there, the
ConfigMap may be edited. Volcano reads a changed configuration as soon as its kubelet shows it.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from gpushare_core.api.enums import Backend
from gpushare_core.api.policy import VolcanoScheduler
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import (
    Action,
    ApplyVolcanoBackup,
    DeleteVolcanoBackup,
    Plan,
    WriteVolcanoConfig,
)
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.backends.volcano.config_edit import (
    SWITCHES,
    Addition,
    Edit,
    VolcanoConfigError,
    disable,
    enable,
)
from gpushare_operator.cluster.labels import VOLCANO
from gpushare_operator.cluster.objects import (
    ReadResult,
    VolcanoBackupObject,
    VolcanoConfigObject,
    VolcanoLocation,
)
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import VOLCANO_BACKUP, labels
from gpushare_operator.policies.decisive_policy import decisive_policy

FORBIDDEN = "Forbidden"


class VolcanoState(Enum):
    UNREAD = auto()
    MISSING = auto()
    FORBIDDEN = auto()
    NO_KEY = auto()
    UNFIT = auto()
    """People have to change something first."""
    ELSEWHERE = auto()
    """Another ConfigMap has to be restored first."""
    DUE = auto()
    DONE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The configuration, compared with one in which GPU sharing is on."""

    location: VolcanoLocation
    state: VolcanoState
    problem: str = ""
    original: str = ""
    """The configuration without our edit."""
    edit: Edit | None = None


def connect(situation: Situation) -> Plan:
    """Returns the backup, or the edit once the backup is there."""
    snapshot = situation.snapshot
    found = assess(snapshot)
    if found.state is VolcanoState.ELSEWHERE:
        return Plan(tuple(restore(snapshot)))
    if found.state is not VolcanoState.DUE or found.edit is None:
        return Plan()
    present, config = _backup(snapshot), snapshot.volcano_configs[found.location]
    data = _backup_data(
        found.location,
        original=found.original,
        written=_sum(found.edit.text),
        additions=[(addition.plugin, addition.whole) for addition in found.edit.additions],
    )
    if present and present.deleting:
        return Plan()
    if (
        present is None
        or _backup_data(
            present.location, original=present.original, written=present.written, additions=present.additions
        )
        != data
    ):
        namespace = situation.installation.namespace
        metadata = {"name": VOLCANO_BACKUP, "namespace": namespace, "labels": labels(VOLCANO)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        return Plan((ApplyVolcanoBackup(VOLCANO_BACKUP, body),))
    return Plan((_write(found.location, config, found.edit.text),))


def restore(snapshot: ClusterSnapshot) -> Iterator[Action]:
    """Yields what takes the edit back: the backup is written if nobody else has changed anything since, else
    our part is taken out. Nothing if that is impossible."""
    backup = _backup(snapshot)
    config = snapshot.volcano_configs.get(backup.location) if backup else None
    if backup is None or config is None or config.result is ReadResult.FORBIDDEN:
        return
    try:
        text = restored_text(backup, config.text)
    except VolcanoConfigError:
        return
    if text is not None and text != config.text:
        yield _write(backup.location, config, text)
    elif not backup.deleting:
        yield DeleteVolcanoBackup(backup.name, backup.uid)


def restored_text(backup: VolcanoBackupObject, text: str | None) -> str | None:
    """Returns ``text`` without our edit; None if there is none. Raises VolcanoConfigError: our part cannot be
    taken out."""
    if text is None:
        return None
    if backup.original and _sum(text) == backup.written:
        return backup.original
    return text if text == backup.original else disable(text, _additions(backup))


def assess(snapshot: ClusterSnapshot) -> Assessment:
    """Returns how far the configuration is that the decisive policy names, or else the edited one."""
    backup = _backup(snapshot)
    location = asked_location(snapshot) or (backup and backup.location) or _location(VolcanoScheduler())
    config = snapshot.volcano_configs.get(location)
    if backup and backup.location != location:
        return Assessment(location=location, state=VolcanoState.ELSEWHERE)
    if config is None or config.result is not ReadResult.FOUND:
        return Assessment(location=location, state=_unreadable(config))
    if config.text is None:
        return Assessment(location=location, state=VolcanoState.NO_KEY)
    return _assess_text(location, config.text, backup)


def locations(snapshot: ClusterSnapshot) -> list[VolcanoLocation]:
    asked, backup = asked_location(snapshot), _backup(snapshot)
    return list(dict.fromkeys(location for location in (asked, backup and backup.location) if location))


def asked_location(snapshot: ClusterSnapshot) -> VolcanoLocation | None:
    """Returns the configuration that the decisive policy names; None if it asks for another backend."""
    policy = decisive_policy(snapshot)
    if policy is None or policy.spec is None:
        return None
    scheduler = policy.spec.scheduler
    if scheduler.backend is not Backend.VOLCANO:
        return None
    return _location(scheduler.volcano or VolcanoScheduler())


def edited_location(snapshot: ClusterSnapshot) -> VolcanoLocation | None:
    """Returns the configuration that the operator may have edited."""
    backup = _backup(snapshot)
    return backup.location if backup else None


def why_not_restored(snapshot: ClusterSnapshot) -> str:
    """Returns what prevents restoring, as far as it is known."""
    backup = _backup(snapshot)
    config = snapshot.volcano_configs.get(backup.location) if backup else None
    if backup is None or config is None:
        return ""
    if config.result is ReadResult.FORBIDDEN:
        return FORBIDDEN
    try:
        restored_text(backup, config.text)
    except VolcanoConfigError as error:
        return str(error)
    return ""


def _assess_text(location: VolcanoLocation, text: str, backup: VolcanoBackupObject | None) -> Assessment:
    """Changes of other people stay, even if our part has to be written again."""
    try:
        original = text if backup is None else (restored_text(backup, text) or "")
        edit = enable(original)
        is_done = edit.text == text or _is_in_force(text, backup)
    except VolcanoConfigError as error:
        return Assessment(location=location, state=VolcanoState.UNFIT, problem=str(error))
    state = VolcanoState.DONE if is_done else VolcanoState.DUE
    return Assessment(location=location, state=state, original=original, edit=edit)


def _is_in_force(text: str, backup: VolcanoBackupObject | None) -> bool:
    """Returns whether nothing of our edit is missing, however people have rearranged it since."""
    ours = _additions(backup) if backup else ()
    return not enable(text).additions and all(disable(text, [our]) != text for our in ours)


def _unreadable(config: VolcanoConfigObject | None) -> VolcanoState:
    if config is None:
        return VolcanoState.UNREAD
    return VolcanoState.MISSING if config.result is ReadResult.MISSING else VolcanoState.FORBIDDEN


def _backup(snapshot: ClusterSnapshot) -> VolcanoBackupObject | None:
    return snapshot.volcano_backups.get(VOLCANO_BACKUP)


def _location(volcano: VolcanoScheduler) -> VolcanoLocation:
    return VolcanoLocation(volcano.namespace, volcano.config_map, volcano.key)


def _write(location: VolcanoLocation, config: VolcanoConfigObject, text: str) -> WriteVolcanoConfig:
    return WriteVolcanoConfig(
        location=location, uid=config.uid, resource_version=config.resource_version, text=text
    )


def _backup_data(
    at: VolcanoLocation, *, original: str, written: str, additions: Iterable[tuple[str, str]]
) -> Json:
    return {
        "namespace": at.namespace,
        "configMap": at.config_map,
        "key": at.key,
        "original": original,
        "written": written,
        "additions": ",".join(f"{plugin}={whole}" for plugin, whole in additions),
    }


def _additions(backup: VolcanoBackupObject) -> tuple[Addition, ...]:
    """Additions that are not ours, which somebody has put into the backup, are ignored."""
    return tuple(Addition(plugin, whole) for plugin, whole in backup.additions if plugin in SWITCHES)


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
