"""Whether a node is installed, without us, or has drifted from what we wrote."""

from dataclasses import dataclass
from typing import Literal

from gpushare_hostctl.decide.run import record
from gpushare_hostctl.decide.run.record import InstallationRecord
from gpushare_hostctl.decide.run.snapshot import HostSnapshot
from gpushare_hostctl.decide.scheduler import manifest, manifest_edit

InstallationState = Literal["Installed", "Absent", "Drifted"]


@dataclass(frozen=True)
class Status:
    """The state of a node, and a message for people that says what is out of place."""

    state: InstallationState
    message: str


def read_status(snapshot: HostSnapshot) -> Status:
    """Raises NeedsPersonError for what cannot be read."""
    installed = snapshot.record
    if installed is None:
        return _status_without_record(snapshot)
    problems = _problems(snapshot, installed)
    if problems:
        return Status("Drifted", "; ".join(problems) + "; run install or restore")
    return Status("Installed", "kube-scheduler's manifest is as written by this program")


def _status_without_record(snapshot: HostSnapshot) -> Status:
    current = snapshot.manifest
    if current is None:
        return Status("Absent", f"there is no {snapshot.paths.manifest}")
    if manifest_edit.has_our_edit(manifest.parse(current.content), folder=snapshot.paths.folder):
        return Status(
            "Drifted",
            f"the manifest names gpushare's files but {record.FILE_NAME} is missing; run install or restore",
        )
    return Status("Absent", "kube-scheduler's manifest has nothing of gpushare's")


def _problems(snapshot: HostSnapshot, installed: InstallationRecord) -> list[str]:
    config = snapshot.files.get(installed.config)
    is_there = {
        "the manifest is missing": snapshot.manifest is None,
        "the manifest is not the one we wrote": snapshot.manifest is not None and not snapshot.untouched,
        "the backup is missing or damaged": snapshot.backup is None,
        "the scheduler configuration is missing or edited": config is None
        or config.sha256 != installed.config_sha256,
        "the last change was not finished": installed.pending is not None,
    }
    return [problem for problem, there in is_there.items() if there]
