"""What a view has to know of the place where it is read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPage:
    """``width``: columns of the terminal; a pipe has as many as a table needs."""

    width: int
    is_wide: bool = False
    """``-o wide``: columns that are seldom needed as well."""
    has_headers: bool = True
    is_ascii: bool = False
    """Nothing but ASCII: no bars of blocks, no dashes of Unicode."""
