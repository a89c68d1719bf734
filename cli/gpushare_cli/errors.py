"""Why an audit is not possible."""


class CannotLookError(Exception):
    """Something that was asked for cannot be read; the text says what, why and what to do."""
