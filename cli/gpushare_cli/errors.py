"""Why nothing can be found out."""


class CannotLookError(Exception):
    """Something that was asked for cannot be read; the text says what, why and what to do."""


def not_reached(error: Exception) -> str:
    """Returns what to say where no answer came: it has nothing to do with what was asked for."""
    return f"the API server is not reached: {error}; see whether it answers kubectl: kubectl version"


def not_known(said: object) -> str:
    """Returns what to say where the API server does not accept who asks. ``said``: by itself."""
    return f"the API server does not know you: {said}; log in again"
