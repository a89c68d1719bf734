"""For clients of servers that speak no TLS, or whose certificate nobody looks at."""

import ssl

_CONTEXT = ssl.create_default_context()


def system_tls() -> ssl.SSLContext:
    """Returns the same context every time: one that trusts whom the system does."""
    return _CONTEXT
