"""The control-plane node of a run: what lies there, and the writes of install and restore."""

import logging
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import PurePosixPath

from gpushare_hostctl.decide.run import plan, record
from gpushare_hostctl.decide.run.own_files import EXCHANGE, FOLDERS, SUM, is_ours, sums_of_exchange
from gpushare_hostctl.decide.run.record import InstallationRecord
from gpushare_hostctl.decide.run.snapshot import SCHEDULER_FOLDER, File, HostPaths, HostSnapshot
from gpushare_hostctl.decide.scheduler import manifest
from gpushare_hostctl.decide.scheduler.key_pairs import KEY_FILES
from gpushare_hostctl.errors import NeedsPersonError
from gpushare_hostctl.host.files import HostFiles, is_full
from gpushare_hostctl.host.scheduler_waiter import SchedulerWaiter

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class ControlPlaneNode:
    """All writes go through our folder, so that the manifests folder sees only renames."""

    files: HostFiles
    paths: HostPaths
    waiter: SchedulerWaiter

    def lock(self) -> AbstractContextManager[None]:
        """Locks the parent of our folder. Raises as ``HostFiles.lock``."""
        return self.files.lock(str(PurePosixPath(self.paths.folder).parent))

    def snapshot(self) -> HostSnapshot:
        """Raises NeedsPersonError when our folder belongs to another manifest, or its record is damaged."""
        snapshot = HostSnapshot(
            paths=self.paths,
            manifest=self.files.read(self.paths.manifest),
            files=self.files.read_folder(self.paths.folder),
            key_files=self.files.read_folder(self.paths.in_folder(SCHEDULER_FOLDER)),
        )
        installed = snapshot.record
        if installed is not None and installed.manifest != self.paths.manifest:
            raise NeedsPersonError(
                f"{self.paths.folder} belongs to {installed.manifest}, not to {self.paths.manifest}; "
                f"give --manifest {installed.manifest}"
            )
        return snapshot

    def read_config_source(self, base: File) -> File | None:
        """Returns the configuration file that a manifest without us names, if there is one.

        Raises NeedsPersonError when the file does not come from the host.
        """
        path = plan.config_source(manifest.parse(base.content))
        return self.files.read(path) if path else None

    def manifest_checksum(self) -> str | None:
        current = self.files.read(self.paths.manifest)
        return current.sha256 if current else None

    def make_folder(self, name: str = "", *, mode: int = 0o700, gid: int | None = None) -> None:
        """Makes our folder, or one in it, as HostFiles does."""
        self.files.make_folder(self.paths.in_folder(name), mode=mode, gid=gid)

    def read_keys(self) -> dict[str, File]:
        """Path in our folder -> file with keys."""
        files = {path: self.files.read(self.paths.in_folder(path)) for path in KEY_FILES}
        return {path: file for path, file in files.items() if file is not None}

    def write_in_folder(self, name: str, file: File) -> None:
        """``name``: path in our folder. The file gets the labels of its folder."""
        path = self.paths.in_folder(name)
        self.files.write(path, file, through=str(PurePosixPath(path).parent))

    def write_record(self, content: InstallationRecord) -> None:
        """The step that commits a change."""
        self.write_in_folder(record.FILE_NAME, File(content=content.encode(), mode=0o600, uid=0, gid=0))

    def note_record(self, content: InstallationRecord) -> None:
        """Stores a record that the next run does not need: on a full disk it is left out."""
        try:
            self.write_record(content)
        except OSError as error:
            if not is_full(error):
                raise
            _LOG.warning("the disk is full; %s is not up to date", record.FILE_NAME)

    def write_manifest(self, file: File, *, expected: File) -> None:
        """Replaces the manifest; the kubelet acts on it at once.

        On a full disk a copy in our folder takes its place, if there is one. Raises FileChangedError when the
        manifest is no longer ``expected``: what somebody else wrote is never lost.
        """
        # Whenever a run ends, the name tells whose text is there: ours, the expected one, or somebody else's.
        name = f"{self._manifest_name}.{file.sha256[:SUM]}.{expected.sha256[:SUM]}{EXCHANGE}"
        slot = self.paths.in_folder(name)
        self.files.move(self._staged(file), slot)
        self.files.replace(slot, self.paths.manifest, expected=expected.content)

    def settle(self) -> None:
        """Finishes an exchange of the manifest that was interrupted, so that nobody's text is lost."""
        for name, file in self.files.read_folder(self.paths.folder).items():
            sums = sums_of_exchange(name, manifest=self._manifest_name)
            if sums is None:
                continue
            current = self.manifest_checksum() or ""
            # A text that is neither ours nor the expected one came out of the exchange.
            if file.sha256[:SUM] not in sums and current[:SUM] == sums[0]:
                self._give_back(name)
            self._put_away(name, file)

    def _put_away(self, name: str, file: File) -> None:
        """Removes what came out, or gives the backup its name back, which a full disk has sent there."""
        path = self.paths.in_folder(name)
        snapshot = self.snapshot()
        installed = snapshot.record
        if installed and snapshot.backup is None and file.sha256 == installed.original.sha256:
            self.files.move(path, self.paths.in_folder(installed.backup))
        else:
            self.files.remove(path)

    def _give_back(self, name: str) -> None:
        current = self.files.read(self.paths.manifest)
        if current is not None:
            _LOG.warning("putting back %s as somebody else has written it", self.paths.manifest)
            self.files.give_back(self.paths.in_folder(name), self.paths.manifest, put=current.content)

    @property
    def _manifest_name(self) -> str:
        return PurePosixPath(self.paths.manifest).name

    def _staged(self, file: File) -> str:
        """Returns the path of a file that can be moved into the manifest's place."""
        staged = self.paths.in_folder(f"{self._manifest_name}.new")
        try:
            self.files.stage(staged, file, like=self.paths.manifest)
        except OSError as error:
            copies = self.files.read_folder(self.paths.folder)
            # The fallback first: the backup may be needed again.
            names = sorted(
                (name for name in copies if copies[name] == file), key=lambda name: name.endswith(plan.BACKUP)
            )
            if not is_full(error) or not names:
                raise
            _LOG.warning("the disk is full, so %s goes into the manifest's place", names[0])
            return self.paths.in_folder(names[0])
        return staged

    def write_copy(self, name: str, file: File) -> None:
        """Writes a copy of a manifest into our folder, ready to take the manifest's place."""
        staged = self.paths.in_folder(f"{name}.new")
        self.files.stage(staged, file, like=self.paths.manifest)
        self.files.move(staged, self.paths.in_folder(name))

    def write_fallback(self, file: File) -> None:
        """Writes what a rollback puts back: it has then only to be renamed."""
        self.write_copy(f"{self._manifest_name}.fallback", file)

    def require_manifest(self, expected: File) -> None:
        """Raises FileChangedError when the manifest is no longer ``expected``."""
        self.files.require(self.paths.manifest, expected.content)

    def write_key_files(self, files: Mapping[str, File]) -> None:
        """Writes kube-scheduler's keys beside those that it uses so far."""
        for name, file in files.items():
            # Any user may be kube-scheduler's; nobody else gets past our folder.
            self.make_folder(SCHEDULER_FOLDER, mode=0o755, gid=file.gid)
            self.write_in_folder(f"{SCHEDULER_FOLDER}/{name}", file)

    def keep_only(self, names: Iterable[str], *, key_files: Iterable[str] = ()) -> None:
        """Removes all files of ours except ``names``, and kube-scheduler's keys except ``key_files``."""
        kept = {*names, *(f"{SCHEDULER_FOLDER}/{name}" for name in key_files)}
        self._remove(path for path in self._own_files("", SCHEDULER_FOLDER) if path not in kept)
        if not key_files:
            self.files.remove_empty_folder(self.paths.in_folder(SCHEDULER_FOLDER))

    def remove_keys(self) -> None:
        """Removes the keys of mutual TLS. Their folders stay: an extender that still runs has one of them
        mounted, and would never see keys in a new one of that name."""
        self._remove(self._own_files(*(folder for folder in FOLDERS if folder != SCHEDULER_FOLDER)))

    def clear_folder(self) -> None:
        """Removes our files, and our folder unless an extender's keys are left in it."""
        self.keep_only(())
        self.files.remove_empty_folder(self.paths.folder)

    def remove_folder(self) -> list[str]:
        """Removes our files and our folder. Returns names in it that are not ours, and stay with it."""
        self._remove(self._own_files(*FOLDERS, ""))
        for folder in (*FOLDERS, ""):
            self.files.remove_empty_folder(self.paths.in_folder(folder))
        return self.files.names(self.paths.folder)

    def _own_files(self, *folders: str) -> list[str]:
        """Returns the paths of our files, half-written ones too, in these folders of our folder."""
        paths = [
            str(PurePosixPath(folder) / name)
            for folder in folders
            for name in self.files.names(self.paths.in_folder(folder))
        ]
        return [path for path in paths if is_ours(path, manifest=self._manifest_name)]

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.files.remove(self.paths.in_folder(path))
