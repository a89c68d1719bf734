"""What the program says at its end: one line of JSON, for the operator and for people."""

import json
import logging
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from gpushare_hostctl.decide.run.snapshot import HostSnapshot
from gpushare_hostctl.decide.run.status import Status
from gpushare_hostctl.errors import ExitCode

_LOG = logging.getLogger(__name__)

Result = Literal[
    "KeysMade",
    "KeysPresent",
    "Installed",
    "AlreadyInstalled",
    "Restored",
    "RestoredPartially",
    "NothingToDo",
    "RolledBack",
    "Failed",
]

_UNPRINTABLE = re.compile(r"[^ -~]")
_MAX_MESSAGE = 1500
"""Characters: the kubelet keeps 4096 bytes of a termination message, and cut JSON is of no use."""


@dataclass(frozen=True)
class Report:
    """What install, keys or restore came to."""

    result: Result
    message: str
    exit_code: ExitCode = ExitCode.OK
    inputs: str | None = None
    """Digest of what an installation was made from; None where it did not come so far."""
    renew_after: datetime | None = None
    """When the keys are to be renewed; None where there are none."""
    sha256_before: str | None = None
    """Of the manifest, in hex; None while there is none or it was not read."""
    sha256_after: str | None = None

    def encode(self) -> str:
        """Returns the line; it is shorter than the kubelet's limit, whatever the message."""
        # Printable ASCII is at most doubled by JSON's escapes.
        message = _UNPRINTABLE.sub("?", " ".join(self.message.split()))[:_MAX_MESSAGE]
        return json.dumps(
            {
                "result": self.result,
                "message": message,
                "sha256Before": self.sha256_before,
                "sha256After": self.sha256_after,
                "inputs": self.inputs,
                "renewAfter": self.renew_after.isoformat() if self.renew_after else None,
            }
        )

    def publish(self, termination_log: Path | None) -> None:
        """Prints the line, and writes it to the file; a failure to write is only logged."""
        line = self.encode()
        print(line, flush=True)
        if termination_log is None:
            return
        try:
            termination_log.write_text(line)
        except OSError as error:
            _LOG.warning("cannot write %s: %s", termination_log, error.strerror)


def encode_status(status: Status, snapshot: HostSnapshot) -> str:
    """The line of the command ``status``: paths of the host, checksums of the manifest."""
    installed = snapshot.record
    return json.dumps(
        {
            "state": status.state,
            "message": status.message,
            "manifest": snapshot.paths.manifest,
            "sha256": snapshot.manifest.sha256 if snapshot.manifest else None,
            "sha256Original": installed.original.sha256 if installed else None,
            "sha256Written": installed.written[-1] if installed else None,
            "backup": snapshot.paths.in_folder(installed.backup) if installed else None,
            "config": snapshot.paths.in_folder(installed.config) if installed else None,
        }
    )


def encode_unknown_status(message: str, *, sha256: str | None) -> str:
    """The line of the command ``status`` where the manifest or the record cannot be read."""
    return json.dumps({"state": "Unknown", "message": message, "sha256": sha256})
