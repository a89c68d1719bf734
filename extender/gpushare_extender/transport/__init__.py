"""Sockets, mutual TLS, HTTP/1.1 and HTTP/2. Knows nothing else of the extender."""
