"""What the API server takes of an Event of ``events.k8s.io/v1``: one that is longer is refused as a whole.

Source: ``ValidateEventCreate`` of ``k8s.io/kubernetes/pkg/apis/core/validation``.
"""

from gpushare_core.text.printable import printable

MAX_NAME = 253
MAX_NOTE = 1024
"""Bytes."""


def event_name(regarding: str, digest: str) -> str:
    """Returns the name of an Event about the object ``regarding``: as much of that name as fits, first."""
    beginning = regarding[: MAX_NAME - len(digest) - 1]
    return f"{beginning.rstrip('.-')}.{digest}"


def event_note(text: str) -> str:
    """Returns as much of ``text`` as fits, printable."""
    return printable(text, max_bytes=MAX_NOTE)
