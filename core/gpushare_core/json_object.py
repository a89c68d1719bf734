"""JSON as the API server sends and takes it."""

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
"""Field name -> plain JSON value."""

UNREADABLE_JSON = (ValueError, RecursionError)
"""What ``msgspec`` and ``json`` raise for bytes that are no JSON, or not of the shape that was asked for;
their own errors and ``UnicodeError`` are of the first kind."""
