"""The record of an installation, ``state.json`` in our folder: the one commit point of every change."""

import hashlib
import json
from dataclasses import asdict, dataclass

import msgspec

from gpushare_core.text.json_object import UNREADABLE_JSON
from gpushare_hostctl.decide.run.process_identity import ProcessIdentity
from gpushare_hostctl.errors import NeedsPersonError

VERSION = 2
"""Version of the record's format; a record of another version is refused."""

FILE_NAME = "state.json"


@dataclass(frozen=True)
class Original:
    """The manifest before us, whose bytes lie in the backup file."""

    sha256: str
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True)
class PendingRestart:
    """A manifest that was written, but whose kube-scheduler has not been seen yet."""

    sha256: str
    """Of the manifest."""
    before: ProcessIdentity
    """The process that served before."""


@dataclass(frozen=True)
class InstallationRecord:
    """What is installed on the node. Its fields are those of the file.

    ``manifest`` is a path on the host; ``backup`` and ``config`` are names in our folder. ``written`` holds
    the checksums of every manifest we may have put there: more than one only while a change is under way.
    """

    manifest: str
    original: Original
    backup: str
    config: str
    config_sha256: str
    written: tuple[str, ...]
    pending: PendingRestart | None = None

    def encode(self) -> bytes:
        return (json.dumps({"version": VERSION, **asdict(self)}, indent=2) + "\n").encode()


def checksum(content: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


def decode(content: bytes) -> InstallationRecord:
    """Raises NeedsPersonError for damage: it came from outside, for the file is written atomically."""
    try:
        stored = msgspec.json.decode(content, type=_Stored)
        if stored.version != VERSION:
            raise ValueError(f"version {stored.version}, this program knows {VERSION}")
        return msgspec.json.decode(content, type=InstallationRecord)
    except UNREADABLE_JSON as error:
        raise NeedsPersonError(
            f"{FILE_NAME} cannot be read ({error!r}); put the backup beside it back by hand and remove the "
            "folder"
        ) from error


class _Stored(msgspec.Struct):
    version: int
