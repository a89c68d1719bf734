"""What the program says at its end: one JSON object for the operator."""

import json
import re
from dataclasses import dataclass
from typing import Literal

Result = Literal["Installed", "AlreadyInstalled", "Restored", "RestoredPartially", "NothingToDo", "Failed"]

_UNPRINTABLE = re.compile(r"[^ -~]")
_LONGEST_MESSAGE = 1500
"""Characters: the kubelet keeps 4096 bytes of a termination message, and cut JSON is of no use."""


@dataclass(frozen=True)
class Report:
    """The outcome. Checksums are of the manifest, None while there is none or it was not read."""

    result: Result
    message: str
    sha256_before: str | None = None
    sha256_after: str | None = None

    def encode(self) -> str:
        """Give the line, shorter than the kubelet's limit whatever the message."""
        # Printable ASCII is at most doubled by JSON's escapes.
        message = _UNPRINTABLE.sub("?", " ".join(self.message.split()))[:_LONGEST_MESSAGE]
        return json.dumps(
            {
                "result": self.result,
                "message": message,
                "sha256Before": self.sha256_before,
                "sha256After": self.sha256_after,
            }
        )
