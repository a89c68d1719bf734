"""What we remember on the node: ``state.json`` in our folder, the one commit point of every change."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

from gpushare_hostctl.errors import NeedsPersonError

VERSION = 1
NAME = "state.json"


@dataclass(frozen=True)
class File:
    """A file's exact content, permission bits and owner."""

    content: bytes
    mode: int
    uid: int
    gid: int

    @property
    def sha256(self) -> str:
        """Give the content's checksum in hex."""
        return checksum(self.content)


@dataclass(frozen=True)
class Original:
    """The manifest before us, whose bytes lie in the backup file."""

    sha256: str
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True)
class Pending:
    """A written manifest whose scheduler has not been seen yet.

    ``fingerprint`` is the certificate of the process that served before; None when none did.
    """

    sha256: str
    fingerprint: str | None


@dataclass(frozen=True)
class State:
    """The record of an installation.

    ``written`` holds the checksums of every manifest we may have put there: more than one only while a
    change is under way. ``previous_config`` is the value of ``--config`` before us.
    """

    manifest: str
    original: Original
    backup: str
    config: str
    config_sha256: str
    written: tuple[str, ...]
    previous_config: str | None = None
    pending: Pending | None = None

    def encode(self) -> bytes:
        """Give the file's content."""
        return (json.dumps({"version": VERSION, **asdict(self)}, indent=2) + "\n").encode()


def checksum(content: bytes) -> str:
    """Give the SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


def decode(content: bytes) -> State:
    """Read a state file. Raises NeedsPersonError: it is written atomically, so damage came from outside."""
    try:
        document = json.loads(content)
        if document["version"] != VERSION:
            raise ValueError(f"version {document['version']}, this program knows {VERSION}")
        return _state(document)
    except (ValueError, KeyError, TypeError) as error:
        raise NeedsPersonError(
            f"{NAME} cannot be read ({error!r}); put the backup beside it back by hand and remove the folder"
        ) from error


def _state(document: dict[str, Any]) -> State:
    fields = {key: value for key, value in document.items() if key != "version"}
    pending = fields.pop("pending")
    return State(
        **{
            **fields,
            "original": Original(**fields["original"]),
            "written": tuple(fields["written"]),
            "pending": Pending(**pending) if pending else None,
        }
    )
