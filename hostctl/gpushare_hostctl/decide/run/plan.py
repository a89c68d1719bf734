"""What to write: from what lies on the host to the files of an installation or a restoration.

Files in our folder are named by their content, so none is ever overwritten: a manifest that is put back
finds the configuration it was written for, and the record switches from one set of files to the next.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import urlsplit

from gpushare_core.process.version import VERSION
from gpushare_hostctl.decide.run.own_files import is_configuration
from gpushare_hostctl.decide.run.process_identity import ProcessIdentity
from gpushare_hostctl.decide.run.record import (
    FILE_NAME,
    InstallationRecord,
    Original,
    PendingRestart,
    checksum,
)
from gpushare_hostctl.decide.run.snapshot import SCHEDULER_FOLDER, File, HostSnapshot
from gpushare_hostctl.decide.scheduler import manifest, manifest_edit, scheduler_config
from gpushare_hostctl.decide.scheduler.extender_entry import ClientTls, ExtenderEntry
from gpushare_hostctl.decide.scheduler.key_pairs import Keys
from gpushare_hostctl.decide.scheduler.manifest import SchedulerPod
from gpushare_hostctl.decide.scheduler.scheduler_config import EngineEntry
from gpushare_hostctl.errors import NeedsPersonError

BACKUP = ".backup"
"""How the names of backups end."""


@dataclass(frozen=True)
class InstallPlan:
    """The files of an installation.

    ``base`` is the manifest without us, ``manifest`` the one with us; it equals the current one when nothing
    has to be edited. ``backup_name`` and ``config_name`` are names in our folder, the keys of ``key_files``
    are names in SCHEDULER_FOLDER.
    """

    base: File
    manifest: File
    config: File
    backup_name: str
    config_name: str
    key_files: Mapping[str, File]
    record: InstallationRecord


@dataclass(frozen=True)
class RestorePlan:
    """What a restoration does. ``manifest`` is None when the manifest stays as it is."""

    result: Literal["Restored", "RestoredPartially", "NothingToDo"]
    message: str
    manifest: File | None = None


def base_manifest(snapshot: HostSnapshot) -> File:
    """Returns the manifest without us, which an installation starts from and a restoration ends with:

    1. the exact backup while the manifest is what we wrote;
    2. otherwise the current text less our part, so that changes of others (a kubeadm upgrade, say) stay.

    Raises NeedsPersonError.
    """
    current = snapshot.manifest
    if current is None:
        raise NeedsPersonError(
            f"there is no {snapshot.paths.manifest}: this node runs no kube-scheduler as a static pod; "
            "name its manifest with --manifest, or use another scheduler backend"
        )
    if snapshot.untouched and snapshot.backup is not None:
        return snapshot.backup
    return replace(current, content=_without_our_part(snapshot, current))


def config_source(base: SchedulerPod) -> str | None:
    """Returns the host's path of the configuration file that kube-scheduler uses without us.

    Raises NeedsPersonError when the file does not come from the host.
    """
    return manifest.host_path(base, base.config) if base.config else None


def install(
    snapshot: HostSnapshot, *, source: File | None, engine: EngineEntry, keys: Keys | None = None
) -> InstallPlan:
    """Returns the files of an installation; ``source`` is the file that ``config_source`` names.

    ``keys`` are needed for an https extender. Raises NeedsPersonError when the manifest or that file cannot
    be edited.
    """
    base = base_manifest(snapshot)
    scheduler = manifest.parse(base.content)
    key_files = _key_files(keys) if keys else {}
    if isinstance(engine, ExtenderEntry):
        _check_network(scheduler, engine)
        engine = _with_keys(engine, snapshot, key_files)
    config = _config_file(scheduler, source=source, engine=engine)
    config_name = _config_name(snapshot, config)
    edited = manifest_edit.add(
        scheduler,
        config=snapshot.paths.in_folder(config_name),
        keys=snapshot.paths.in_folder(SCHEDULER_FOLDER) if key_files else None,
        image=None if isinstance(engine, ExtenderEntry) else engine.image,
    )
    backup_name = f"{PurePosixPath(snapshot.paths.manifest).name}.{base.sha256[:12]}{BACKUP}"
    planned_record = InstallationRecord(
        manifest=snapshot.paths.manifest,
        original=Original(sha256=base.sha256, mode=base.mode, uid=base.uid, gid=base.gid),
        backup=backup_name,
        config=config_name,
        config_sha256=config.sha256,
        written=(checksum(edited),),
    )
    return InstallPlan(
        base=base,
        manifest=replace(snapshot.manifest or base, content=edited),
        config=config,
        backup_name=backup_name,
        config_name=config_name,
        key_files=key_files,
        record=planned_record,
    )


def digest_of_inputs(base: File, *, source: File | None, engine: EngineEntry, timeout: float) -> str:
    """Returns a digest, in hex, of everything that decides whether kube-scheduler serves with the edit.

    ``base`` is the manifest without us, ``source`` the configuration that it names. Another version of this
    program, or another ``timeout`` in seconds for kube-scheduler, is another input, too.
    """
    inputs = {
        "manifest": base.sha256,
        "config": source.sha256 if source else None,
        **engine.inputs(),
        "timeout": timeout,
        "version": VERSION,
    }
    return checksum(json.dumps(inputs, sort_keys=True).encode())


def is_installed(snapshot: HostSnapshot, plan: InstallPlan) -> bool:
    installed = snapshot.record
    return (
        installed is not None
        and replace(installed, pending=None) == plan.record
        and not changes_manifest(snapshot, plan)
        and snapshot.backup is not None
        and snapshot.has_file(plan.config_name, plan.config.content)
        and snapshot.key_files == plan.key_files
    )


def changes_manifest(snapshot: HostSnapshot, plan: InstallPlan) -> bool:
    """Returns whether the manifest's content has to change, which restarts kube-scheduler."""
    return snapshot.manifest is None or snapshot.manifest.content != plan.manifest.content


def write_ahead_record(
    snapshot: HostSnapshot, plan: InstallPlan, *, before: ProcessIdentity
) -> InstallationRecord:
    """Returns the record to store before the manifest is written: the earlier and the new manifest are ours.

    ``before`` is the process that serves now.
    """
    installed = snapshot.record
    earlier = installed.written if installed and installed.original == plan.record.original else ()
    written = tuple(dict.fromkeys((*earlier, *plan.record.written)))
    pending = PendingRestart(sha256=plan.manifest.sha256, before=before)
    return replace(plan.record, written=written, pending=pending)


def restore(snapshot: HostSnapshot) -> RestorePlan:
    """Raises NeedsPersonError when the manifest cannot be edited, or is missing and may come back edited."""
    current = snapshot.manifest
    if current is None:
        return _restore_missing(snapshot)
    if not manifest_edit.mentions_us(current.content, folder=snapshot.paths.folder):
        # Even a manifest that nobody can parse: there is nothing of ours to take out.
        return _restore_unedited(snapshot)
    base = base_manifest(snapshot)
    if base == current:
        return _restore_unedited(snapshot)
    if snapshot.untouched and base == snapshot.backup:
        return RestorePlan(
            result="Restored", message="the exact backup of the manifest is back", manifest=base
        )
    return RestorePlan(
        result="RestoredPartially",
        message="others have edited the manifest since, so only gpushare's part was removed from it",
        manifest=base,
    )


def _without_our_part(snapshot: HostSnapshot, current: File) -> bytes:
    scheduler = manifest.parse(current.content)
    folder = snapshot.paths.folder
    if not manifest_edit.has_our_edit(scheduler, folder=folder):
        return current.content
    content = manifest_edit.remove(scheduler, folder=folder)
    if snapshot.record is None:
        _check_backups(snapshot, manifest.parse(content))
    return content


def _check_backups(snapshot: HostSnapshot, base: SchedulerPod) -> None:
    """Raises NeedsPersonError when only a backup without a record knows a ``--config``: nobody can tell then
    whether somebody took it away on purpose."""
    for name, file in sorted(snapshot.files.items()):
        lost = manifest.raw_config(manifest.parse(file.content)) if name.endswith(BACKUP) else None
        if lost and not base.config:
            raise NeedsPersonError(
                f"{snapshot.paths.in_folder(name)} has --config={lost}, the manifest has not, and "
                f"{FILE_NAME} is missing, so nobody can tell which is right; add --config={lost} to "
                f"{snapshot.paths.manifest} or remove that backup, and run again"
            )


def _check_network(scheduler: SchedulerPod, extender: ExtenderEntry) -> None:
    host = urlsplit(extender.url).hostname or ""
    loopback = host in ("localhost", "::1") or host.startswith("127.")
    if loopback and scheduler.pod["spec"].get("hostNetwork") is not True:
        raise NeedsPersonError(
            "kube-scheduler's pod is not on the host's network, so it cannot reach the extender at "
            f"{extender.url}; set hostNetwork: true in the manifest, or use another scheduler backend"
        )


def _config_file(scheduler: SchedulerPod, *, source: File | None, engine: EngineEntry) -> File:
    if scheduler.config is None:
        return _readable(scheduler_config.from_flags(scheduler.flags, engine))
    if source is None:
        raise NeedsPersonError(
            f"kube-scheduler reads --config={scheduler.config}, on the host {config_source(scheduler)}, "
            "which cannot be read here; move the file below /etc/kubernetes, or use another scheduler backend"
        )
    return _readable(scheduler_config.merge(source.content, engine))


def _with_keys(
    extender: ExtenderEntry, snapshot: HostSnapshot, key_files: Mapping[str, File]
) -> ExtenderEntry:
    if not key_files:
        return extender
    client, trusted = (snapshot.paths.in_folder(f"{SCHEDULER_FOLDER}/{name}") for name in key_files)
    return replace(extender, tls=ClientTls(client=client, trusted=trusted))


def _key_files(keys: Keys) -> dict[str, File]:
    """Returns kube-scheduler's files, named by their content like its configuration."""
    contents = {"client": keys.client.encode(), "authorities": keys.trusted_pem}
    return {f"{name}-{checksum(content)[:12]}.pem": _readable(content) for name, content in contents.items()}


def _readable(content: bytes) -> File:
    """Any user may read it: container, pod, image or a user namespace may name the user of kube-scheduler.
    Only root gets past our folder, and only kube-scheduler sees what is mounted from it."""
    return File(content=content, mode=0o644, uid=0, gid=0)


def _config_name(snapshot: HostSnapshot, config: File) -> str:
    """Returns a name made from the content, and another where a file of that name was tampered with.

    kube-scheduler reads the file once: only a new name in the manifest makes the kubelet restart it.
    """
    installed = snapshot.record
    if installed and snapshot.has_file(installed.config, config.content):
        return installed.config
    name = _hashed_name(config.content)
    while name in snapshot.files and not snapshot.has_file(name, config.content):
        name = _hashed_name(name.encode() + snapshot.files[name].content)
    return name


def _hashed_name(content: bytes) -> str:
    return f"scheduler-config-{checksum(content)[:12]}.yaml"


def _restore_missing(snapshot: HostSnapshot) -> RestorePlan:
    """A manifest that was moved away to stop kube-scheduler is moved back, and then needs what it names."""
    if not snapshot.files:
        return RestorePlan(result="NothingToDo", message="there is no manifest and nothing of gpushare's")
    path, names = snapshot.paths.manifest, filter(is_configuration, sorted(snapshot.files))
    if needed := " ".join(map(snapshot.paths.in_folder, names)):
        raise NeedsPersonError(
            f"{path} is not there, and nothing was changed: if somebody moved it away, its"
            f" kube-scheduler needs {needed}: put it back, and it is restored; if it is gone for good, remove"
            f" {needed}, and the rest of gpushare's files is removed"
        )
    return RestorePlan(result="RestoredPartially", message=f"{path} is gone and was left so")


def _restore_unedited(snapshot: HostSnapshot) -> RestorePlan:
    if not snapshot.files:
        return RestorePlan(result="NothingToDo", message="there is nothing of gpushare's on this node")
    if snapshot.record is None or snapshot.is_original:
        return RestorePlan(result="Restored", message="the manifest is as it was before gpushare")
    return RestorePlan(
        result="RestoredPartially",
        message="others have rewritten the manifest since, and it has nothing of gpushare's; it was left so",
    )
