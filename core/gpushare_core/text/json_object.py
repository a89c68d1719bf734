"""JSON as the API server sends and takes it."""

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
"""Field name -> plain JSON value."""

MAX_REASON = 300
"""Characters of a reason that has what somebody else wrote in it: that may be a quarter of a megabyte."""

UNREADABLE_JSON = (ValueError, RecursionError)
"""What ``msgspec`` and ``json`` raise for bytes that are no JSON, or not of the shape that was asked for;
their own errors and ``UnicodeError`` are of the first kind."""
