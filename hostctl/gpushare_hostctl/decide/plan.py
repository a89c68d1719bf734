"""What to write: pure decisions from what lies on the host to the files of a change.

Files in our folder are named by their content, so none is ever overwritten: a manifest that is put back
finds the configuration it was written for, and ``state.json`` switches from one set of files to the next.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import urlsplit

from gpushare_hostctl.decide import configuration, manifest, state
from gpushare_hostctl.decide.configuration import Extender
from gpushare_hostctl.decide.manifest import SchedulerPod
from gpushare_hostctl.decide.state import File, Original, Pending, State, checksum
from gpushare_hostctl.errors import NeedsPersonError

Condition = Literal["Installed", "Absent", "Drifted"]


@dataclass(frozen=True)
class Location:
    """Paths on the host: the manifest and the folder that is ours."""

    manifest: str
    folder: str

    def inside(self, name: str) -> str:
        """Give the path of a file in our folder."""
        return str(PurePosixPath(self.folder) / name)


@dataclass(frozen=True)
class Snapshot:
    """What lies on the host: the manifest (None when missing) and the files of our folder by name."""

    location: Location
    manifest: File | None
    files: Mapping[str, File]

    @property
    def state(self) -> State | None:
        """Give the record of our installation, None when there is none. Raises NeedsPersonError."""
        content = self.files.get(state.NAME)
        return state.decode(content.content) if content else None

    @property
    def backup(self) -> File | None:
        """Give the manifest before us, None when there is none or the file does not have its checksum."""
        known = self.state
        kept = self.files.get(known.backup) if known else None
        if known is None or kept is None or kept.sha256 != known.original.sha256:
            return None
        original = known.original
        return File(content=kept.content, mode=original.mode, uid=original.uid, gid=original.gid)

    @property
    def untouched(self) -> bool:
        """Tell whether the manifest is exactly one that we wrote."""
        known = self.state
        return known is not None and self.manifest is not None and self.manifest.sha256 in known.written


@dataclass(frozen=True)
class InstallPlan:
    """The files of an installation. ``manifest`` equals the current one when nothing has to be edited."""

    base: File
    manifest: File
    config: File
    backup_name: str
    config_name: str
    state: State


@dataclass(frozen=True)
class RestorePlan:
    """What a removal does. ``manifest`` is None when the manifest stays as it is."""

    result: Literal["Restored", "RestoredPartially", "NothingToDo"]
    message: str
    manifest: File | None = None


def base_manifest(snapshot: Snapshot) -> File:
    """Give the manifest without us, which an installation starts from and a removal ends with.

    The exact backup while the manifest is what we wrote; otherwise the current text less our part, so that
    what others changed since (a kubeadm upgrade, say) is kept. Raises NeedsPersonError.
    """
    current = snapshot.manifest
    if current is None:
        raise NeedsPersonError(
            f"there is no {snapshot.location.manifest}: this node runs no kube-scheduler as a static pod; "
            "name its manifest with --manifest, or use another scheduler backend"
        )
    if snapshot.untouched and snapshot.backup is not None:
        return snapshot.backup
    return replace(current, content=_stripped(snapshot, current))


def config_source(base: SchedulerPod) -> str | None:
    """Give the path on the host of the configuration file the scheduler uses without us, None without one."""
    return manifest.host_path(base, base.config) if base.config else None


def install(snapshot: Snapshot, *, source: File | None, extender: Extender) -> InstallPlan:
    """Decide the files of an installation; ``source`` is the file that ``config_source`` names.

    Raises NeedsPersonError.
    """
    base = base_manifest(snapshot)
    scheduler = manifest.parse(base.content)
    _check_network(scheduler, extender)
    config = _config_file(scheduler, source=source, extender=extender)
    config_name = _config_name(snapshot, config)
    edited = manifest.add(scheduler, config=snapshot.location.inside(config_name))
    backup_name = f"{PurePosixPath(snapshot.location.manifest).name}.{base.sha256[:12]}.backup"
    plan_state = State(
        manifest=snapshot.location.manifest,
        original=Original(sha256=base.sha256, mode=base.mode, uid=base.uid, gid=base.gid),
        backup=backup_name,
        config=config_name,
        config_sha256=config.sha256,
        written=(checksum(edited),),
        previous_config=manifest.raw_config(scheduler),
    )
    return InstallPlan(
        base=base,
        manifest=replace(snapshot.manifest or base, content=edited),
        config=config,
        backup_name=backup_name,
        config_name=config_name,
        state=plan_state,
    )


def is_installed(snapshot: Snapshot, plan: InstallPlan) -> bool:
    """Tell whether the manifest and the files of our folder are already as planned."""
    known = snapshot.state
    return (
        known is not None
        and replace(known, pending=None) == plan.state
        and not is_edit(snapshot, plan)
        and snapshot.backup is not None
        and _has_content(snapshot, plan.config_name, plan.config)
    )


def is_edit(snapshot: Snapshot, plan: InstallPlan) -> bool:
    """Tell whether the manifest's content has to change, which restarts the scheduler."""
    return snapshot.manifest is None or snapshot.manifest.content != plan.manifest.content


def write_ahead(snapshot: Snapshot, plan: InstallPlan, *, fingerprint: str | None) -> State:
    """Give the state to store before the manifest is written: both the earlier and the new one are ours."""
    known = snapshot.state
    earlier = known.written if known and known.original == plan.state.original else ()
    written = tuple(dict.fromkeys((*earlier, *plan.state.written)))
    return replace(
        plan.state, written=written, pending=Pending(sha256=plan.manifest.sha256, fingerprint=fingerprint)
    )


def restore(snapshot: Snapshot) -> RestorePlan:
    """Decide how our part is taken away. Raises NeedsPersonError."""
    current = snapshot.manifest
    if current is None:
        return _restore_missing(snapshot)
    base = base_manifest(snapshot)
    if base == current:
        return _restore_unedited(snapshot)
    if snapshot.untouched and base == snapshot.backup:
        return RestorePlan(
            result="Restored", message="the exact backup of the manifest is back", manifest=base
        )
    return RestorePlan(
        result="RestoredPartially",
        message="the manifest was edited by others since, so only our part was removed from it",
        manifest=base,
    )


def status(snapshot: Snapshot) -> tuple[Condition, str]:
    """Judge what lies on the host, with a message that says what is out of place."""
    known = snapshot.state
    if known is None:
        return _status_without_state(snapshot)
    problems = _problems(snapshot, known)
    if problems:
        return "Drifted", "; ".join(problems) + "; run install or restore"
    return "Installed", "kube-scheduler's manifest is as written by this program"


def _stripped(snapshot: Snapshot, current: File) -> bytes:
    scheduler = manifest.parse(current.content)
    folder = snapshot.location.folder
    if not manifest.carries(scheduler, folder=folder):
        return current.content
    known = snapshot.state
    return manifest.remove(scheduler, folder=folder, previous=known.previous_config if known else None)


def _check_network(scheduler: SchedulerPod, extender: Extender) -> None:
    host = urlsplit(extender.url).hostname or ""
    loopback = host in ("localhost", "::1") or host.startswith("127.")
    if loopback and scheduler.pod["spec"].get("hostNetwork") is not True:
        raise NeedsPersonError(
            "kube-scheduler's pod is not on the host's network, so it cannot reach the extender at "
            f"{extender.url}; set hostNetwork: true in the manifest, or use another scheduler backend"
        )


def _config_file(scheduler: SchedulerPod, *, source: File | None, extender: Extender) -> File:
    if scheduler.config is None:
        content = configuration.from_flags(scheduler.command_line, extender)
        # Without --config there is nothing secret in it, and the scheduler may run as any user.
        return File(content=content, mode=0o644, uid=0, gid=0)
    if source is None:
        raise NeedsPersonError(
            f"kube-scheduler reads --config={scheduler.config}, on the host {config_source(scheduler)}, "
            "which cannot be read here; move the file below /etc/kubernetes, or use another scheduler backend"
        )
    return replace(source, content=configuration.merge(source.content, extender))


def _config_name(snapshot: Snapshot, config: File) -> str:
    """Name the configuration by its content, and anew where a file of that name was tampered with.

    kube-scheduler reads the file once. Only a new name in the manifest makes the kubelet restart it.
    """
    known = snapshot.state
    if known and _has_content(snapshot, known.config, config):
        return known.config
    name = _hashed_name(config.content)
    while name in snapshot.files and not _has_content(snapshot, name, config):
        name = _hashed_name(name.encode() + snapshot.files[name].content)
    return name


def _has_content(snapshot: Snapshot, name: str, file: File) -> bool:
    return name in snapshot.files and snapshot.files[name].content == file.content


def _hashed_name(content: bytes) -> str:
    return f"scheduler-config-{checksum(content)[:12]}.yaml"


def _restore_missing(snapshot: Snapshot) -> RestorePlan:
    if not snapshot.files:
        return RestorePlan(result="NothingToDo", message="there is no manifest and nothing of ours")
    return RestorePlan(
        result="RestoredPartially", message=f"{snapshot.location.manifest} is gone and was left so"
    )


def _restore_unedited(snapshot: Snapshot) -> RestorePlan:
    if not snapshot.files:
        return RestorePlan(result="NothingToDo", message="there is nothing of ours on this node")
    if snapshot.state is None or snapshot.manifest == snapshot.backup:
        return RestorePlan(result="Restored", message="the manifest is as it was before us")
    return RestorePlan(
        result="RestoredPartially",
        message="the manifest was rewritten by others since and has nothing of ours; it was left so",
    )


def _status_without_state(snapshot: Snapshot) -> tuple[Condition, str]:
    current = snapshot.manifest
    if current is None:
        return "Absent", f"there is no {snapshot.location.manifest}"
    if manifest.carries(manifest.parse(current.content), folder=snapshot.location.folder):
        return "Drifted", f"the manifest names our files but {state.NAME} is missing; run install or restore"
    return "Absent", "kube-scheduler's manifest has nothing of ours"


def _problems(snapshot: Snapshot, known: State) -> list[str]:
    config = snapshot.files.get(known.config)
    found = {
        "the manifest is missing": snapshot.manifest is None,
        "the manifest is not the one we wrote": snapshot.manifest is not None and not snapshot.untouched,
        "the backup is missing or damaged": snapshot.backup is None,
        "the scheduler configuration is missing or edited": config is None
        or config.sha256 != known.config_sha256,
        "the last change was not finished": known.pending is not None,
    }
    return [problem for problem, there in found.items() if there]
