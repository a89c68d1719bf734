"""JSON as the API server sends and takes it."""

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
"""Field name -> plain JSON value."""

MAX_REASON = 300
"""Characters of a reason that quotes what somebody else wrote: that may be a quarter of a megabyte."""

UNREADABLE_JSON = (ValueError, RecursionError)
"""Raised by ``msgspec`` and ``json`` for bytes that are no JSON, or JSON of another shape. Their own errors,
and ``UnicodeError``, are ``ValueError``."""
