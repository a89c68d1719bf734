"""What keeps a book from being read."""


class CannotLookError(Exception):
    """A book that was asked for cannot be read; the text says which, why and what to do."""
