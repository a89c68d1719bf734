"""Which URLs name a server."""

from urllib.parse import SplitResult, urlsplit


def checked_server(url: str) -> tuple[str, SplitResult]:
    """Returns the host in ``url``, and its parts. Raises ``ValueError`` for what is no URL of a server."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError(f"{url!r} is no URL of a server")
    return checked_host(parts.hostname), parts


def checked_host(name: str) -> str:
    """Returns ``name``. Raises ``ValueError`` where no host can have that name."""
    try:
        name.encode("idna")  # as every connection does
    except UnicodeError as error:
        raise ValueError(f"{name!r} is no URL of a server, nor of its host: {error}") from error
    return name
