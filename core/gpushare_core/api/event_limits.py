"""Limits of an Event of ``events.k8s.io/v1``: the API server refuses a longer one.

Source: ``ValidateEventCreate`` of ``k8s.io/kubernetes/pkg/apis/core/validation``.
"""

from gpushare_core.text.printable import printable

MAX_NAME = 253
MAX_NOTE = 1024
"""Bytes."""


def event_name(regarding: str, digest: str) -> str:
    """Returns the name of an Event: as much of the name of the object ``regarding`` as fits, and
    ``digest``."""
    beginning = regarding[: MAX_NAME - len(digest) - 1]
    return f"{beginning.rstrip('.-')}.{digest}"


def event_note(text: str) -> str:
    return printable(text, max_bytes=MAX_NOTE)
