"""Why there is no release."""


class ReleaseError(Exception):
    """No release was made; the text says why, for people."""
