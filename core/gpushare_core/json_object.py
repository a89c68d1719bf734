"""The type of a JSON object as the API server sends and takes it."""

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
"""Field name -> plain JSON value."""
