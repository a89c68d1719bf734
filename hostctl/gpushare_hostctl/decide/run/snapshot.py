"""What lies on the host when a run begins: the scheduler's manifest and the files of our folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from gpushare_hostctl.decide.run import record
from gpushare_hostctl.decide.run.record import InstallationRecord, Original, checksum

SCHEDULER_FOLDER = "scheduler"
"""In our folder: kube-scheduler's keys, mounted into its pod."""


@dataclass(frozen=True)
class File:
    """A file's exact content, permission bits and owner."""

    content: bytes
    mode: int
    uid: int
    gid: int

    @property
    def sha256(self) -> str:
        return checksum(self.content)


@dataclass(frozen=True)
class HostPaths:
    """Absolute paths on the host: the scheduler's manifest and the folder that is ours."""

    manifest: str
    folder: str

    def in_folder(self, name: str) -> str:
        return str(PurePosixPath(self.folder) / name)


@dataclass(frozen=True)
class HostSnapshot:
    """The manifest, None when it is missing, and the files of our folder and of SCHEDULER_FOLDER by name."""

    paths: HostPaths
    manifest: File | None
    files: Mapping[str, File]
    key_files: Mapping[str, File] = field(default_factory=dict)

    @property
    def record(self) -> InstallationRecord | None:
        """Of our installation. Raises NeedsPersonError for a damaged one."""
        file = self.files.get(record.FILE_NAME)
        return record.decode(file.content) if file else None

    @property
    def backup(self) -> File | None:
        """The manifest before us; None where the backup is missing or has another checksum."""
        installed = self.record
        backup = self.files.get(installed.backup) if installed else None
        if installed is None or backup is None or backup.sha256 != installed.original.sha256:
            return None
        original = installed.original
        return File(content=backup.content, mode=original.mode, uid=original.uid, gid=original.gid)

    @property
    def is_original(self) -> bool:
        """Whether the manifest is the one before us, with or without its backup."""
        installed, current = self.record, self.manifest
        if installed is None or current is None:
            return False
        seen = Original(sha256=current.sha256, mode=current.mode, uid=current.uid, gid=current.gid)
        return seen == installed.original

    @property
    def untouched(self) -> bool:
        """Whether the manifest is exactly one that we wrote."""
        installed = self.record
        if installed is None or self.manifest is None:
            return False
        return self.manifest.sha256 in installed.written

    def has_file(self, name: str, content: bytes) -> bool:
        return name in self.files and self.files[name].content == content
