"""The control-plane node as the actions see it: what lies there, and the writes they are made of."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from gpushare_hostctl.decide import manifest, plan, state
from gpushare_hostctl.decide.plan import Location, Snapshot
from gpushare_hostctl.decide.state import File, State
from gpushare_hostctl.errors import NeedsPersonError
from gpushare_hostctl.host.files import Host
from gpushare_hostctl.host.probe import Waiter
from gpushare_hostctl.report import Result


@dataclass(frozen=True)
class Outcome:
    """What an action came to."""

    result: Result
    message: str


@dataclass(frozen=True)
class Node:
    """One control-plane node. All writes go through our folder, so the manifests folder sees only renames."""

    host: Host
    location: Location
    waiter: Waiter

    def snapshot(self) -> Snapshot:
        """Read everything a decision needs. Raises NeedsPersonError."""
        snapshot = Snapshot(
            location=self.location,
            manifest=self.host.read(self.location.manifest),
            files=self.host.read_folder(self.location.folder),
        )
        known = snapshot.state
        if known is not None and known.manifest != self.location.manifest:
            raise NeedsPersonError(
                f"{self.location.folder} belongs to {known.manifest}, not to {self.location.manifest}; "
                f"give --manifest {known.manifest}"
            )
        return snapshot

    def read_source(self, base: File) -> File | None:
        """Read the configuration file that a manifest without us names. Raises NeedsPersonError."""
        path = plan.config_source(manifest.parse(base.content))
        return self.host.read(path) if path else None

    def checksum(self) -> str | None:
        """Give the checksum of the manifest; None when it is missing."""
        current = self.host.read(self.location.manifest)
        return current.sha256 if current else None

    def make_folder(self) -> None:
        """Make our folder unless it is there."""
        self.host.make_folder(self.location.folder)

    def write_own(self, name: str, file: File) -> None:
        """Write a file into our folder."""
        self.host.write(self.location.inside(name), file, through=self.location.folder)

    def write_state(self, content: State) -> None:
        """Store the record of the installation: the step that makes a change count."""
        self.write_own(state.NAME, File(content=content.encode(), mode=0o600, uid=0, gid=0))

    def write_manifest(self, file: File) -> None:
        """Replace the manifest, which the kubelet acts upon at once."""
        self.host.write(self.location.manifest, file, through=self.location.folder)

    def keep_only(self, names: Iterable[str]) -> None:
        """Remove every file in our folder but these."""
        for name in self.host.read_folder(self.location.folder).keys() - set(names):
            self.host.remove(self.location.inside(name))

    def remove_folder(self) -> None:
        """Remove our folder with everything in it."""
        self.host.remove_folder(self.location.folder)

    @property
    def parent(self) -> str:
        """Give the folder that holds ours, which has to be there."""
        return str(PurePosixPath(self.location.folder).parent)
