"""The size of asyncio's TLS buffers. The only module that uses asyncio's internal ``SSLProtocol``."""

from asyncio.sslproto import SSLProtocol

BUFFER_SIZE = 32 * 1024
"""Bytes: two TLS records."""


def use_small_tls_buffers() -> None:
    """Makes every TLS connection of this process read ``BUFFER_SIZE`` at a time.

    asyncio has no setting for it and takes 256 KiB for each: the 500 connections of one burst of binds cost
    146 MiB with kube-scheduler, and 36 MiB with this; the process does not give that memory back.
    """
    SSLProtocol.max_size = BUFFER_SIZE
